"""Expected keys and fingerprints by name, for the harness.

Every contract whose cases compare keys has a module `derive`: one of holdfast in its package here. It is written from
the contract and never from the reference implementation, so that both do not share one error. A name is `WORD.KEY`:
`WORD` is the first word of the contract's name, or all of it, and the module's `DERIVATIONS` maps each `KEY` to the
function that computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from holdfast.specs.registry import contracts


def names() -> tuple[str, ...]:
    """Every name that `derive` knows, with a first word, in order. Those of other distributions are imported."""
    listed = {module: word for word, module in _modules().items()}
    return tuple(sorted(f"{word}.{key}" for module, word in listed.items() for key in _derivations(module)))


@cache
def _modules() -> Mapping[str, str]:
    having = {one: one.name.partition("-")[0] for one in contracts().values() if one.vectors.part("derive") is not None}
    found: dict[str, str] = {}
    for one, word in having.items():
        # Contracts of other distributions share no word, and take none from those of holdfast.
        own = one.distribution is None or list(having.values()).count(word) == 1
        for name in (one.name, word) if own else (one.name,):
            found[name] = f"{one.vectors.name}.derive"
    return found


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
