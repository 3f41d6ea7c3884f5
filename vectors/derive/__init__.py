"""Expected keys and fingerprints by name, for the harness.

Every contract whose cases compare keys has one module here, written from the contract and never from the reference
implementation, so that one misreading cannot hide in both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vectors.derive import rs4a

_DERIVATIONS: dict[str, Callable[[Any], str]] = {
    "rs4a.logical_request_key": rs4a.logical_request_key,
    "rs4a.replay_key": rs4a.replay_key,
}


def names() -> tuple[str, ...]:
    """Every name that `derive` knows, in order."""
    return tuple(sorted(_DERIVATIONS))


def derive(name: str, value: Any) -> str:
    """The expected key `name` of `value`, as text.

    Raises ValueError for an unknown name and for a value that has no such key.
    """
    derivation = _DERIVATIONS.get(name)
    if derivation is None:
        raise ValueError(f"no derivation is called {name!r}; known names: {', '.join(names())}")
    return derivation(value)


__all__ = ["derive", "names"]
