"""The near misses by name: subclasses of the honest canonicaliser, each with one guard overridden."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from tests.vectors.nearmiss.honest import Honest

NEAR_MISSES: dict[str, type[Honest]] = {}


def near_miss(name: str) -> Callable[[type[Honest]], type[Honest]]:
    """Enter a near miss under its name. Its docstring says what its habit is."""

    def enter(kind: type[Honest]) -> type[Honest]:
        if name in NEAR_MISSES:
            raise ValueError(f"two near misses are called {name}")
        kind.name = name
        NEAR_MISSES[name] = kind
        return kind

    return enter


def habit(name: str) -> str:
    """The habit of a near miss, in a sentence."""
    return " ".join((inspect.getdoc(NEAR_MISSES[name]) or "").split())
