"""Which package implements which contract. A new contract is one more line here and nothing in the adapter."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import MappingProxyType

from reference_impl.session import Implementation

# Imported only when asked for: an adapter that serves one contract does not pay for the others.
_MODULES = MappingProxyType({"rs4a-replay": "reference_impl.rs4a_replay.entry"})


def contract_names() -> tuple[str, ...]:
    """Every contract that has a reference implementation."""
    return tuple(_MODULES)


def entry_module(contract: str) -> str:
    """The module of `contract` that offers `implementation` and `launch`. Raises KeyError for an unknown contract."""
    return _MODULES[contract]


def implementation(contract: str, *, mutant: str | None = None) -> Implementation:
    """The implementation of `contract`, with the planted bug `mutant` if one is named."""
    make: Callable[..., Implementation] = import_module(entry_module(contract)).implementation
    return make(mutant=mutant)
