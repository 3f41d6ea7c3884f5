"""`mutants.yaml` of a contract: what each planted bug is, what it must break, and what it may break besides.

The types below are the file's schema, its reader and its writer. The body of a bug is its patch, or a class of the
reference (`reference_impl/<contract>/mutants/`) under the bug's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml

from holdfast.specs.entry import CaseId, ClauseId, ContractName, Entry, Text
from holdfast.specs.loader import contract_folders, of_contract

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


class Allowed(Entry, frozen=True):
    """Clauses that a bug may break besides, with one reason for all of them.

    `selfcheck --full --update` writes new ones with an empty reason, which a person fills in.
    """

    why: str
    clauses: Annotated[tuple[ClauseId, ...], msgspec.Meta(min_length=1)]


class Patch(Entry, frozen=True):
    """A change of the reference's source: in the function, class or module `at`, the text `was` becomes `now`.

    `at` is a dotted name below the package of references, as `jcs.reader.Reader.read`. `was` has to stand there once.
    Of a text of several lines, the first is not indented, and the others are as they are to it.
    """

    at: Text
    was: str
    now: str


class Mutant(Entry, frozen=True, omit_defaults=True):
    """One planted bug.

    `must_fail` maps clauses to the verdict that each must get. `faults` maps fault cases that are injected into it to
    their verdicts: most bugs need none, and each takes time. All that is in neither these nor `may_fail` must conform.
    `store` is given where it is not the file's. Its body is the `patch`, or a class of the reference under its name.
    """

    name: Name
    title: Text
    must_fail: Annotated[Mapping[ClauseId, Caught], msgspec.Meta(min_length=1)]
    may_fail: tuple[Allowed, ...] = ()
    faults: Mapping[CaseId, Caught] = {}
    store: Text | None = None
    patch: tuple[Patch, ...] = ()

    @property
    def reasons(self) -> Mapping[str, str]:
        """Each clause that may fail, with the reason; empty where a person has not given one yet."""
        return {clause: group.why for group in self.may_fail for clause in group.clauses}


class Choice(Entry, frozen=True, omit_defaults=True):
    """A choice that a clause leaves open, and which the reference does not make. A variant of the reference makes it.

    `permitted` are the words of the first of its `clauses` that permit it. The variant's body stands beside those of
    the bugs, under the same name; no case may accuse it.
    """

    name: Name
    permitted: Text
    clauses: Annotated[tuple[ClauseId, ...], msgspec.Meta(min_length=1)]
    store: Text | None = None
    patch: tuple[Patch, ...] = ()

    @property
    def variant(self) -> Mutant:
        """The variant, as a bug that must not break anything."""
        return Mutant(self.name, self.permitted, {}, store=self.store, patch=self.patch)


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
    path = contract_folders()[contract] / FILE
    return read_mutants(path) if path.exists() else Mutants(contract)


def declared_names() -> list[str]:
    """The names of all planted bugs and sound variants. Raises SpecError."""
    return [each.name for contract in contract_folders() for each in load_mutants(contract).planted]


def read_mutants(path: Path) -> Mutants:
    """The file at `path`. Raises SpecError."""
    return msgspec.convert(of_contract(path, "planted", path.parent.name), Mutants)


def written(mutants: Mutants) -> str:
    """The file's text."""
    data = msgspec.to_builtins(mutants)
    for mutant in data.get("mutants", ()):
        mutant["must_fail"] = _Line(mutant["must_fail"])
        for group in mutant.get("may_fail", ()):
            group["clauses"] = _Items(group["clauses"])
    for each in (*data.get("mutants", ()), *data.get("choices", ())):
        each["patch"] = [{name: _Code(text) for name, text in patch.items()} for patch in each.get("patch", ())]
        if not each["patch"]:
            del each["patch"]
    for choice in data.get("choices", ()):
        choice["clauses"] = _Items(choice["clauses"])
    return _HEAD + yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=118)


_HEAD = "# Written by `holdfast selfcheck --full --update`, which keeps reasons and no other comment.\n"


class _Code(str):
    """A text of several lines as it stands."""

    __slots__ = ()


class _Line(dict[str, Any]):
    """A mapping in one line."""


class _Items(list[str]):
    """A list in one line."""


class _Dumper(yaml.SafeDumper):
    # The signature is PyYAML's.
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        super().increase_indent(flow, False)


def _code(dumper: yaml.SafeDumper, text: _Code) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|" if "\n" in text else None)


_Dumper.add_representer(_Code, _code)
_Dumper.add_representer(
    _Line, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=True)
)
_Dumper.add_representer(
    _Items, lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)
)
