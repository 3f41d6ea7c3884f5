"""`matrix.yaml` of a contract: every operation against every attack, and what fills each cell.

The types below are the file's schema, its reader and its writer. Which cells there are follows from the contract
(`holdfast.specs.cells`); which cases fill them stands in lock.json. The file is outside the digests of a contract: it
says what is tested, and changes no question and no verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum, unique
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
import yaml
from msgspec import structs

from holdfast.specs.entry import DISTINCT, CaseId, CellName, ContractName, Entry, Label, Name, PlacedMeta, RowName, Text
from holdfast.specs.loader import read_file
from holdfast.specs.lock import load_lock
from holdfast.specs.registry import contracts

FILE = "matrix.yaml"


@unique
class Attack(Enum):
    """What is done to an operation. Those with a subject have a cell for each."""

    NEIGHBOUR = "neighbour"
    FORMAT = "format"
    BOUNDARY = "boundary"
    RETRY_HERE = "retry-here"
    RETRY_ELSEWHERE = "retry-elsewhere"
    RETRY_RESTARTED = "retry-restarted"
    RETRY_LATER = "retry-later"
    CONCURRENT = "concurrent"
    BESIDE = "beside"
    KILL = "kill"
    POWER_LOSS = "power-loss"
    FAILING_CALLS = "failing-calls"
    FULL_DISK = "full-disk"
    KILL_LATER = "kill-in-a-second-session"
    POWER_LOSS_LATER = "power-loss-in-a-second-session"
    FAILING_CALLS_LATER = "failing-calls-in-a-second-session"
    FULL_DISK_LATER = "full-disk-in-a-second-session"
    MISSING = "store-missing"
    DAMAGED = "store-damaged"
    REPLACED = "store-replaced"
    MISSING_WHILE = "store-missing-while-it-runs"
    DAMAGED_WHILE = "store-damaged-while-it-runs"
    REPLACED_WHILE = "store-replaced-while-it-runs"
    VOLUME = "volume"
    CLOCK_FORWARD = "clock-forward"
    CLOCK_BACK = "clock-back"
    INERT = "inert"
    DISCLOSURE = "disclosure"


# The same attack in a second session of the store, and while the process runs.
LATER: Mapping[Attack, Attack] = {
    attack: Attack(f"{attack.value}-in-a-second-session")
    for attack in (Attack.KILL, Attack.POWER_LOSS, Attack.FAILING_CALLS, Attack.FULL_DISK)
}
WHILE: Mapping[Attack, Attack] = {
    attack: Attack(f"{attack.value}-while-it-runs") for attack in (Attack.MISSING, Attack.DAMAGED, Attack.REPLACED)
}


def cell(attack: Attack, subject: str = "") -> str:
    """The name of a cell in its row."""
    return f"{attack.value} {subject}" if subject else attack.value


def attack_of(name: str) -> Attack:
    """The attack of a cell. Raises ValueError."""
    return Attack(name.partition(" ")[0])


# What cannot be derived from a contract about one operation: it changes nothing, it has no store, it reads no clock.
Property = Literal["read-only", "storeless", "timeless"]


class Reasoned(Entry, frozen=True):
    """Cells that nothing fills, with one reason for all of them; empty where a person has not given it yet."""

    why: str
    cells: Annotated[tuple[CellName, ...], msgspec.Meta(min_length=1)]


class Row(Entry, frozen=True, omit_defaults=True):
    """One operation, or one command for operators.

    `declared` is what cannot be derived; `rivals` touch the same rows; `parameters` are those whose boundary it draws.
    `mutants` names for an attack the bugs that show the teeth of the generators that alone fill its cells. `cells` maps
    each cell to some of the cases that fill it; it stands in lock.json. `exceptions` are reviewed; `open` is work that
    is left.
    """

    declared: Annotated[tuple[Property, ...], DISTINCT] = ()
    rivals: Annotated[tuple[RowName, ...], DISTINCT] = ()
    parameters: Annotated[tuple[Name, ...], DISTINCT] = ()
    mutants: Mapping[Label, Annotated[tuple[ContractName, ...], msgspec.Meta(min_length=1)]] = {}
    cells: Annotated[Mapping[CellName, tuple[CaseId, ...]], PlacedMeta] = {}
    exceptions: tuple[Reasoned, ...] = ()
    open: tuple[Reasoned, ...] = ()

    def excepted(self) -> Mapping[str, str]:
        """The reason of each exception, by cell."""
        return {name: group.why for group in self.exceptions for name in group.cells}

    def left(self) -> Mapping[str, str]:
        """The reason of each open cell."""
        return {name: group.why for group in self.open for name in group.cells}


class Matrix(Entry, frozen=True, omit_defaults=True):
    """matrix.yaml: every operation against every attack, and what fills each cell.

    `horizon` is the parameter after which a retry is late. `commands` maps a provocation that runs a command of
    operators to the argument that holds its words. `unbounded` gives the reason for each number among the parameters
    that no operation draws a boundary by.
    """

    contract: ContractName
    horizon: Name | None = None
    commands: Mapping[Name, Name] = {}
    unbounded: Mapping[Name, Text] = {}
    operations: Mapping[RowName, Row] = {}


@cache
def load_matrix(contract: str) -> Matrix | None:
    """The matrix of `contract`; None where it has none. Raises SpecError."""
    found = contracts().get(contract)
    matrix = None if found is None else read_file(found.folder / FILE, "matrix", Matrix, contract)
    if found is None or matrix is None:
        return None
    cells = load_lock(found.folder, contract).cells
    rows = {name: structs.replace(row, cells=cells.get(name, {})) for name, row in matrix.operations.items()}
    return structs.replace(matrix, operations=rows)


def written(matrix: Matrix) -> str:
    """The file's text, without the cells, which stand in lock.json."""
    data = msgspec.to_builtins(matrix)
    for row in data.get("operations", {}).values():
        row.pop("cells", None)
        if "mutants" in row:
            row["mutants"] = {name: _Items(ids) for name, ids in row["mutants"].items()}
        for member in ("declared", "rivals", "parameters"):
            if member in row:
                row[member] = _Items(row[member])
        for group in (*row.get("exceptions", ()), *row.get("open", ())):
            group["cells"] = _Items(group["cells"])
    return _HEAD + yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=118)


def grouped(reasons: Iterator[tuple[str, str]]) -> tuple[Reasoned, ...]:
    """Cells with their reasons, those of one reason together, in the order in which they come."""
    groups: dict[str, list[str]] = {}
    for name, why in reasons:
        groups.setdefault(why, []).append(name)
    return tuple(Reasoned(why, tuple(names)) for why, names in groups.items())


_HEAD = "# `holdfast lint specs --update` writes this file; it keeps no comment.\n"


class _Items(list[str]):
    """A list in one line."""


class _Dumper(yaml.SafeDumper):
    # The signature is PyYAML's.
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


_Dumper.add_representer(
    _Items, lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)
)
