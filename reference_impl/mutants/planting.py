"""How a bug is planted, in every contract alike: one part of its blueprint replaced, or one loaded value changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from holdfast.reference_impl.mutants.catalogue import Mutant
from holdfast.specs import load_terms

# From the contract's blueprint to the mutated one.
Bug = Callable[[Any], Any]
# Stands for every clause, where a bug changes every answer.
EVERYTHING = "EVERYTHING"

_Loaded = TypeVar("_Loaded")


def part(**parts: type[Any]) -> Bug:
    """Replace one part by a subclass that overrides one method."""
    return lambda blueprint: replace(blueprint, **parts)


def also(reason: str, clauses: str) -> dict[str, str]:
    """Clauses, spaces between them, that a bug breaks as well, and the one reason for all of them."""
    return dict.fromkeys(clauses.split(), reason)


@dataclass(frozen=True, slots=True)
class Planting(Generic[_Loaded]):
    """What the mutants of one contract have in common; `_Loaded` is what its blueprint loads.

    `prefix` is that of its clause ids, `store` where a bug is planted unless it says otherwise, and `unshaken` are
    the clauses that EVERYTHING leaves out.
    """

    contract: str
    prefix: str
    store: str = "none"
    unshaken: tuple[str, ...] = ()

    def value(self, change: Callable[[_Loaded], _Loaded]) -> Bug:
        """Change one loaded value."""
        return lambda blueprint: replace(blueprint, loaded=change)

    def mutant(
        self,
        name: str,
        title: str,
        bug: Bug,
        must_fail: Mapping[str, str],
        may_fail: Mapping[str, str] | None = None,
        *,
        store: str | None = None,
        faults: Mapping[str, str] | None = None,
    ) -> Mutant:
        """One planted bug; clause ids without the prefix, EVERYTHING for all that it need not break.

        `faults` are those that show it, by the last part of their ids.
        """
        may = dict(may_fail or {})
        if EVERYTHING in may:
            reason = may.pop(EVERYTHING)
            every = (clause.removeprefix(self.prefix) for clause in load_terms(self.contract).clauses)
            may = {each: reason for each in every if each not in (*self.unshaken, *must_fail)} | may
        return Mutant(
            name=name,
            contract=self.contract,
            title=title,
            must_fail={f"{self.prefix}{clause}": verdict for clause, verdict in must_fail.items()},
            may_fail={f"{self.prefix}{clause}": reason for clause, reason in may.items()},
            apply=bug,
            faults={f"{self.contract}/faults/{name}": verdict for name, verdict in (faults or {}).items()},
            store=store or self.store,
        )
