"""The engine of attacks: what a script cannot express, as pytest tests marked with the clauses they prove."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])
_ATTRIBUTE = "__holdfast_clause__"


@dataclass(frozen=True, slots=True)
class ClauseMark:
    """The clauses a suite test proves and the provocations it needs.

    `drawn`: Hypothesis generates what the test asks, and takes odd values from the modules that are loaded. So another
    process may ask something else, and the test cannot be judged again from its exchanges.

    `whole`: it is held against a model of the whole contract, so a bug in any clause may fail it. `written`: its steps
    stand in it all the same, and are not generated.

    `roles`: the roles of an adapter that is asked, where they are not those of the clauses.
    """

    clauses: tuple[str, ...]
    provocations: tuple[str, ...]
    drawn: bool = False
    whole: bool = False
    written: bool = False
    roles: tuple[str, ...] = ()


def clause(
    *ids: str,
    provocations: tuple[str, ...] = (),
    drawn: bool = False,
    whole: bool = False,
    written: bool = False,
    roles: tuple[str, ...] = (),
) -> Callable[[_F], _F]:
    """Mark a suite test with the clauses it proves, the main one first. See `ClauseMark` for the rest."""
    if not ids:
        raise ValueError("a suite test proves at least one clause; name it")

    def mark(function: _F) -> _F:
        setattr(function, _ATTRIBUTE, ClauseMark(ids, provocations, drawn, whole, written, roles))
        return function

    return mark


def tabled(
    module: str, run: Callable[..., None], **rows: tuple[Sequence[str], Sequence[Any]]
) -> dict[str, Callable[..., None]]:
    """Suite tests of a module, by their names: each proves its clauses by a run with its arguments."""

    return {name: named(module, name, run, args, *clauses) for name, (clauses, args) in rows.items()}


def named(
    module: str, name: str, run: Callable[..., None], args: Sequence[Any], *clauses: str, **marks: Any
) -> Callable[..., None]:
    """A suite test of this name, which is a run with these arguments. `marks` as of `clause`."""

    @clause(*clauses, **marks)
    def test(bench: Any) -> None:
        run(bench, *args)

    test.__module__, test.__name__, test.__qualname__, test.__doc__ = module, name, name, run.__doc__
    return test


def mark_of(function: Callable[..., Any]) -> ClauseMark | None:
    """The mark of a suite test, if it has one."""
    found: ClauseMark | None = getattr(function, _ATTRIBUTE, None)
    return found
