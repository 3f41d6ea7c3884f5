"""Suites: what a script cannot say, as pytest tests marked with the clauses they prove."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])
_ATTRIBUTE = "__holdfast_clause__"


@dataclass(frozen=True, slots=True)
class ClauseMark:
    """The clauses a suite test proves and the provocations it needs."""

    clauses: tuple[str, ...]
    provocations: tuple[str, ...]


def clause(*ids: str, provocations: tuple[str, ...] = ()) -> Callable[[_F], _F]:
    """Mark a suite test with the clauses it proves, the main one first."""
    if not ids:
        raise ValueError("a suite test proves at least one clause; name it")

    def mark(function: _F) -> _F:
        setattr(function, _ATTRIBUTE, ClauseMark(ids, provocations))
        return function

    return mark


def mark_of(function: Callable[..., Any]) -> ClauseMark | None:
    """The mark of a suite test, if it has one."""
    found: ClauseMark | None = getattr(function, _ATTRIBUTE, None)
    return found
