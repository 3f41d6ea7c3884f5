"""Every value a device works with: from the contract, overridden by the session's config, never from here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.reference_impl.hx_sync.algorithms import Algorithms
from holdfast.reference_impl.hx_sync.layout import UUID
from holdfast.reference_impl.hx_sync.terms import COMPRESSIONS, CONTRACT, check_reasons
from holdfast.reference_impl.session import OpenError
from holdfast.specs import kept_terms

# `config` may also hold the folder of the provisioned template, besides the contract's parameters by name.
TEMPLATE_KEY = "template"
# A run has one config for all its contracts. These keys place the state of other contracts.
_OF_OTHERS = ("store", "dsn")
_NODES = ("a", "b", "c")


@dataclass(frozen=True, slots=True)
class Settings:
    """Loaded values. `nodes` are the devices that a template has, each with its id; sizes are in bytes."""

    vault_id: str
    vault_key: str = field(repr=False)
    nodes: Mapping[str, str]
    algorithm: str
    compression: str
    store_folder: str
    max_object_bytes: int
    max_header_bytes: int
    max_blob_bytes: int


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise OpenError(f"config {name}: expected a whole number as text, got {text[:64]!r}") from error


def _id(name: str, text: str) -> str:
    if UUID.fullmatch(text) is None:
        raise OpenError(f"config {name}: expected a UUID in lower case, got {text[:64]!r}")
    return text


def _one_of(name: str, text: str, known: Collection[str]) -> str:
    if text not in known:
        raise OpenError(f"config {name}: expected one of {', '.join(known)}, got {text[:64]!r}")
    return text


def load_settings(config: Mapping[str, str]) -> Settings:
    """Read the contract and apply `config`. Raises OpenError for a key or a value that makes no sense.

    The vault key is not checked here. The operations that need it check it.
    """
    contract = kept_terms(CONTRACT)
    check_reasons(contract.reasons)
    values: dict[str, Any] = {name: parameter.value for name, parameter in contract.parameters.items()}
    for name, text in config.items():
        if name == TEMPLATE_KEY or name in _OF_OTHERS:
            continue
        if name not in values:
            raise OpenError(f"config {name}: no such key; known keys: {', '.join((TEMPLATE_KEY, *values))}")
        values[name] = text if isinstance(values[name], str) else _number(name, text)
    return Settings(
        vault_id=_id("vault_id", values["vault_id"]),
        vault_key=values["vault_key"],
        nodes={name: _id(f"node_{name}", values[f"node_{name}"]) for name in _NODES},
        algorithm=_one_of("algorithm", values["algorithm"], Algorithms().by_name()),
        compression=_one_of("compression", values["compression"], COMPRESSIONS),
        store_folder=values["store_folder"],
        max_object_bytes=values["max_object_bytes"],
        max_header_bytes=values["max_header_bytes"],
        max_blob_bytes=values["max_blob_bytes"],
    )
