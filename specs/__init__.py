"""The contracts as data, and the one loader that reads them."""

from holdfast.specs.errors import SpecError
from holdfast.specs.loader import kept_terms, load_contract, load_terms, version_of
from holdfast.specs.model import (
    Case,
    Clause,
    Column,
    Contract,
    Method,
    Parameter,
    Reason,
    Relation,
    Twin,
)
from holdfast.specs.registry import contract_names

__all__ = [
    "Case",
    "Clause",
    "Column",
    "Contract",
    "Method",
    "Parameter",
    "Reason",
    "Relation",
    "SpecError",
    "Twin",
    "contract_names",
    "kept_terms",
    "load_contract",
    "load_terms",
    "version_of",
]
