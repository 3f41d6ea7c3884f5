"""Expected keys and fingerprints by name, for the harness.

Every contract whose cases compare keys has a module `derive` in its package here. It is written from the contract and
never from the reference implementation, so that both do not share one error. A name is `WORD.KEY`: `WORD` is the first
word of the contract's name, and the module's `DERIVATIONS` maps each `KEY` to the function that computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

from holdfast import vectors


def names() -> tuple[str, ...]:
    """Every name that `derive` knows, in order."""
    return tuple(f"{word}.{key}" for word, module in _modules().items() for key in sorted(_derivations(module)))


@cache
def _modules() -> Mapping[str, str]:
    packages = (module.name for module in iter_modules(vectors.__path__, prefix=f"{vectors.__name__}.") if module.ispkg)
    found = {package.rpartition(".")[2].partition("_")[0]: f"{package}.derive" for package in packages}
    return {word: module for word, module in sorted(found.items()) if find_spec(module) is not None}


def _derivations(module: str) -> Mapping[str, Callable[[Any], Any]]:
    found: Mapping[str, Callable[[Any], Any]] = import_module(module).DERIVATIONS
    return found


def derive(name: str, value: Any) -> Any:
    """The expected key `name` of `value`: text, or any JSON value for a derivation that takes data apart.

    Raises ValueError for an unknown name and for a value that has no such key.
    """
    word, _, key = name.partition(".")
    derivation = _derivations(_modules()[word]).get(key) if word in _modules() else None
    if derivation is None:
        raise ValueError(f"no derivation is called {name!r}; known names: {', '.join(names())}")
    return derivation(value)


__all__ = ["derive", "names"]
