"""Expected keys and fingerprints by name, for the harness.

Every contract whose cases compare keys has one module here, written from the contract and never from the reference
implementation, so that one misreading cannot hide in both. A name is `MODULE.KEY`; the module's `DERIVATIONS` maps
each key to the function that computes it.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any


def names() -> tuple[str, ...]:
    """Every name that `derive` knows, in order."""
    return tuple(f"{module}.{key}" for module in _modules() for key in sorted(_derivations(module)))


@cache
def _modules() -> tuple[str, ...]:
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def _derivations(module: str) -> Mapping[str, Callable[[Any], Any]]:
    found: Mapping[str, Callable[[Any], Any]] = import_module(f"{__name__}.{module}").DERIVATIONS
    return found


def derive(name: str, value: Any) -> Any:
    """The expected key `name` of `value`: text, or of what is taken apart any JSON value.

    Raises ValueError for an unknown name and for a value that has no such key.
    """
    module, _, key = name.partition(".")
    derivation = _derivations(module).get(key) if module in _modules() else None
    if derivation is None:
        raise ValueError(f"no derivation is called {name!r}; known names: {', '.join(names())}")
    return derivation(value)


__all__ = ["derive", "names"]
