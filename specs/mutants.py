"""`mutants.yaml` of a contract: what each planted bug is, and what it must break.

The types below are the file's schema and its reader. The reference is changed at import
(`reference_impl/altered.py`), and has no part of a bug.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal

import msgspec

from holdfast.specs.entry import CaseId, ClauseId, ContractName, Entry, Text
from holdfast.specs.loader import read_file
from holdfast.specs.registry import contract_names, folder_of

FILE = "mutants.yaml"

# The verdicts that a bug may be caught with.
Caught = Literal[
    "fail_open",
    "state_leak",
    "lost_durability",
    "wrong_reason",
    "over_refusal",
    "no_verdict",
    "not_reached",
    "indeterminate",
    "unsupported",
]
# Written as the name of a contract is.
Name = ContractName


class Patch(Entry, frozen=True, omit_defaults=True):
    """A change of the reference's source: in the function, class or module `at`, the text `was` becomes `now`.

    `at` is a dotted name below the package of references, as `acme_store.store.Store.put`; of a contract of another
    distribution below its package, as `reference.Store.put`. `was` has to stand there once.
    Of a text of several lines, the first is not indented, and the others are as they are to it. In place of `now`,
    `before` and `after` are lines that are put around what was there.
    """

    at: Text
    was: str
    now: str | None = None
    before: str | None = None
    after: str | None = None

    def __post_init__(self) -> None:
        if (self.now is None) is (self.before is None and self.after is None):
            raise ValueError(f"patch at {self.at}: expected either `now`, or `before` and `after` or one of them")

    @property
    def text(self) -> str:
        """What stands there afterwards."""
        if self.now is not None:
            return self.now
        parts = (self.before, self.was, self.after)
        return "\n".join(part.rstrip("\n") for part in parts if part is not None)


class Patched(Entry, frozen=True, kw_only=True, omit_defaults=True):
    """What is a `patch` of the reference. One that is a single change may be written without a list, as that change."""

    listed: tuple[Patch, ...] = msgspec.field(name="patch", default=())
    at: Text | None = None
    was: str = ""
    now: str | None = None
    before: str | None = None
    after: str | None = None

    def __post_init__(self) -> None:
        if self.at is None:
            if self.was or {self.now, self.before, self.after} != {None}:
                raise ValueError("a change without a place; say where it is made: `at: NAME`")
        elif self.listed:
            raise ValueError(f"a change at {self.at} beside a patch; write it in the list `patch`")
        # One that is no change is refused where it is read.
        _ = self.patch

    @property
    def patch(self) -> tuple[Patch, ...]:
        """The changes that are made together; none of a bug whose body is a class."""
        alone = () if self.at is None else (Patch(self.at, self.was, self.now, self.before, self.after),)
        return self.listed or alone


class Mutant(Patched, frozen=True, omit_defaults=True):
    """One planted bug.

    `must_fail` maps clauses to the verdict that each must get. `faults` maps fault cases that are injected into it to
    their verdicts: most bugs need none, and each takes time. What else a bug breaks is measured, not declared.
    `store` is given where it is not the file's. The lint refuses a bug without one.
    """

    name: Name
    title: Text
    must_fail: Annotated[Mapping[ClauseId, Caught], msgspec.Meta(min_length=1)]
    faults: Mapping[CaseId, Caught] = {}
    store: Text | None = None


class Choice(Patched, frozen=True, omit_defaults=True):
    """A choice that a clause leaves open, and which the reference does not make. A variant of the reference makes it.

    `permitted` are the words of the first of its `clauses` that permit it. The `patch` makes the variant, and no case
    may accuse it.
    """

    name: Name
    permitted: Text
    clauses: Annotated[tuple[ClauseId, ...], msgspec.Meta(min_length=1)]
    store: Text | None = None

    @property
    def variant(self) -> Mutant:
        """The variant, as a bug that must not break anything."""
        return Mutant(self.name, self.permitted, {}, store=self.store, listed=self.patch)


class Mutants(Entry, frozen=True, omit_defaults=True):
    """All planted bugs of one contract. `unbreakable` says of a clause why no bug can break it.

    `choices` are its sound variants; `no_choice` says of a clause whose words permit something why it has none.
    """

    contract: ContractName
    store: Text = "none"
    unbreakable: Mapping[ClauseId, Text] = {}
    mutants: tuple[Mutant, ...] = ()
    choices: tuple[Choice, ...] = ()
    no_choice: Mapping[ClauseId, Text] = {}

    def store_of(self, mutant: Mutant) -> str:
        """The store with which this bug is run."""
        return mutant.store or self.store

    @property
    def planted(self) -> tuple[Mutant, ...]:
        """All that a run of `selfcheck` plants: the bugs, and the sound variants."""
        return *self.mutants, *(choice.variant for choice in self.choices)

    def due(self, mutant: Mutant) -> frozenset[str]:
        """The clauses whose cases it meets: those that it must break, of a sound variant those of its choice."""
        of = (choice.clauses for choice in self.choices if choice.name == mutant.name)
        return frozenset(mutant.must_fail).union(*of)

    def breaking(self, clause: str) -> tuple[Mutant, ...]:
        """The bugs that must break this clause."""
        return tuple(mutant for mutant in self.mutants if clause in mutant.must_fail)


@cache
def load_mutants(contract: str) -> Mutants:
    """The bugs planted in `contract`; none where it has no file of them. Raises SpecError."""
    return read_file(folder_of(contract) / FILE, "planted", Mutants, contract) or Mutants(contract)


def declared_names() -> list[str]:
    """The names of all planted bugs and sound variants. Raises SpecError."""
    return [each.name for contract in contract_names() for each in load_mutants(contract).planted]
