"""Which cells the matrix of a contract has, and the checks of matrix.yaml that its schema cannot express.

A cell applies unless a property of the contract or of the operation excludes it:

    stateless contract               neighbours, formats, boundaries and retries in one process are left
    changes nothing (`read-only`)    no kill, power loss, failing call or full disk, and no race with itself
    has no store (`storeless`)       neither those, nor a store that is lost, nor retries elsewhere, nor volume
    reads no clock (`timeless`)      no clock that is stepped, and no retry after the horizon

An operation whose only effect is `prior` changes nothing. Each command is a process of its own, so no retry of it is in
the same one. A cell of a leaf, a parameter, a rival or a reason is there
for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

from msgspec import structs

from holdfast.specs.consistency import step_facts
from holdfast.specs.leaves import leaves
from holdfast.specs.matrix import LATER, WHILE, Attack, Matrix, Row, attack_of, cell, grouped
from holdfast.specs.model import Contract, Group, Method
from holdfast.specs.mutants import Mutants

# Of an attack in a second session, or while it runs, the one in a first session, or before it starts.
_FIRST = {second: first for first, second in (*LATER.items(), *WHILE.items())}
# The subject of `inert` and `disclosure` for a command, which has an exit status in place of a reason.
FAILED = "failed"
_UNFILLED = "no case does it yet"


def rows_of(contract: Contract, matrix: Matrix) -> Mapping[str, Row]:
    """Each row that the matrix has to have: every operation, and every command that stands in it."""
    operations = [method.name for method in contract.methods.values() if method.group is Group.OPERATION]
    commands = [name for name in matrix.operations if " " in name]
    return {name: matrix.operations.get(name, Row()) for name in (*operations, *commands)}


def cells_of(contract: Contract, name: str, row: Row, *, horizon: str | None) -> tuple[str, ...]:
    """The cells of one row, in the order of the attacks."""
    return tuple(_cells(contract, contract.methods.get(name), row, horizon=horizon))


def _cells(contract: Contract, method: Method | None, row: Row, *, horizon: str | None) -> Iterator[str]:
    stateless = (contract.inertness if method is None else contract.inertness_of(method)) is None
    storeless = stateless or "storeless" in row.declared
    timeless = stateless or "timeless" in row.declared
    unchanging = storeless or "read-only" in row.declared or (method is not None and set(method.effects) == {"prior"})
    leaf_names = [] if method is None else [place.path for place in leaves(method.args.schema)]
    reasons = (FAILED,) if method is None else method.reasons
    for attack in (Attack.NEIGHBOUR, Attack.FORMAT):
        yield from (cell(attack, leaf) for leaf in leaf_names)
    yield from (cell(Attack.BOUNDARY, parameter) for parameter in row.parameters)
    if method is not None:
        yield cell(Attack.RETRY_HERE)
    if not storeless:
        yield cell(Attack.RETRY_ELSEWHERE)
        yield cell(Attack.RETRY_RESTARTED)
        if horizon is not None and not timeless:
            yield cell(Attack.RETRY_LATER)
    if not unchanging:
        yield cell(Attack.CONCURRENT)
    yield from (cell(Attack.BESIDE, rival) for rival in row.rivals)
    if not unchanging:
        yield from (cell(attack) for attack in (*LATER, *LATER.values()))
    if not storeless:
        yield from (cell(attack) for attack in (*WHILE, *WHILE.values()))
        yield cell(Attack.VOLUME)
    if not timeless:
        yield cell(Attack.CLOCK_FORWARD)
        yield cell(Attack.CLOCK_BACK)
    if not stateless:
        yield from (cell(Attack.INERT, reason) for reason in reasons)
        yield cell(Attack.DISCLOSURE)


def fitted(contract: Contract, matrix: Matrix, known: Set[str]) -> Matrix:
    """The matrix with the cells that the contract has: of the cases those that are `known`, and open what has none."""
    rows = {}
    for name, row in rows_of(contract, matrix).items():
        due, excepted = cells_of(contract, name, row, horizon=matrix.horizon), row.excepted()
        cells = {each: ids for each in due if (ids := tuple(one for one in row.cells.get(each, ()) if one in known))}
        rest = [each for each in due if each not in cells]
        left = {**row.left(), **{each: row.left().get(each, _UNFILLED) for each in rest if each not in excepted}}
        rows[name] = structs.replace(
            row,
            cells=cells,
            exceptions=grouped((each, why) for each, why in excepted.items() if each in rest),
            open=grouped((each, why) for each, why in left.items() if each in rest),
        )
    return structs.replace(matrix, operations=rows)


def covered(matrix: Matrix, conforming: Set[str]) -> Set[tuple[str, str]]:
    """The rows and cells that a case fills which conforms."""
    cells = ((name, each, ids) for name, row in matrix.operations.items() for each, ids in row.cells.items())
    return {(name, each) for name, each, ids in cells if not conforming.isdisjoint(ids)}


def coverage(contract: Contract, matrix: Matrix, conforming: Set[str]) -> str:
    """How many cells have a case that conforms, for a person."""
    rows = rows_of(contract, matrix)
    total = sum(len(cells_of(contract, name, row, horizon=matrix.horizon)) for name, row in rows.items())
    beside = {
        "open": sum(len(row.left()) for row in rows.values()),
        "excepted": sum(len(row.excepted()) for row in rows.values()),
    }
    more = ", ".join(f"{count} {what}" for what, count in beside.items() if count)
    told = f"{contract.name}: matrix: {len(covered(matrix, conforming))} of {total} cells have a case that conforms"
    return f"{told} ({more})" if more else told


def called_by(contract: Contract, matrix: Matrix) -> Mapping[str, Set[str]]:
    """The rows that each scripted case and each fault calls. Of a suite test only a run shows it."""
    found: dict[str, Set[str]] = {
        case.id: set(filter(None, (row_of(step, matrix) for step in (*case.given, *case.when, *case.then))))
        for case in contract.cases
    }
    for fault in contract.faults:
        load = contract.work_of(fault)
        asked = {fact["ask"] for fact in load.facts.values() if "ask" in fact}
        asked |= {each["ask"] for step in load.steps for each in step.get("told", {}).values() if "ask" in each}
        steps = (*load.steps, *(step for number in range(1, load.asked) for step in load.prepared(number)))
        found[fault.id] = asked | set(filter(None, (row_of(step, matrix) for step in steps)))
    return found


def row_of(step: Mapping[str, Any], matrix: Matrix) -> str | None:
    """The row that a step calls: its operation, or the command that a provocation runs; None for any other step."""
    calling = [kind for kind, group in step_facts("method").items() if group == Group.OPERATION.value]
    provoked = step.get("command") or step.get("provoke", "")
    argument = matrix.commands.get(provoked)
    if argument is not None:
        return f"{provoked} {step.get('args', {}).get(argument, ['?'])[0]}"
    return next((step[kind] for kind in calling if kind in step), None)


def matrix_problems(
    contract: Contract,
    matrix: Matrix,
    *,
    mutants: Mutants,
    suite: Mapping[str, tuple[str, ...]],
    generators: Set[str],
) -> Iterable[str]:
    """Every problem of a matrix. `suite` has the clauses of each suite test, `generators` what is generated."""
    rows = rows_of(contract, matrix)
    yield from _names(contract, matrix, rows)
    calls = called_by(contract, matrix)
    shared = shared_faults(contract)
    clauses = {**suite, **{fault.id: fault.clauses for fault in contract.faults}}
    for name in rows.keys() - matrix.operations.keys():
        yield f"matrix: operation {name} has no row; `holdfast lint specs --update` writes it"
    for name, row in matrix.operations.items():
        if name not in rows:
            yield f"matrix: {name} is no operation"
            continue
        due = cells_of(contract, name, row, horizon=matrix.horizon)
        yield from (f"matrix: {name}: {problem}" for problem in _of_row(row, due))
        for cell_name, ids in row.cells.items():
            for each in ids:
                if each not in calls and each not in suite:
                    yield f"matrix: {name}, {cell_name}: {each} does not exist"
                elif each in calls and name not in calls[each]:
                    yield f"matrix: {name}, {cell_name}: {each} does not call it"
            if (
                cell_name in due
                and set(ids) <= generators
                and not proven(row, cell_name, ids, mutants, clauses, shared)
            ):
                yield (
                    f"matrix: {name}, {cell_name}: only generators fill it ({', '.join(ids)}), and no bug shows that "
                    f"they find one; name it under `mutants`, or move the cell to `open`"
                )
        for attack in row.mutants.keys() - {each.value for each in Attack}:
            yield f"matrix: {name}: mutants name the attack {attack}, which does not exist"
        for bug in {bug for bugs in row.mutants.values() for bug in bugs} - {known.name for known in mutants.mutants}:
            yield f"matrix: {name}: the mutant {bug} does not exist"


def shared_faults(contract: Contract) -> Set[str]:
    """The faults that strike several operations."""
    return {fault.id for fault in contract.faults if len(contract.work_of(fault).steps) > 1}


def proven(
    row: Row,
    name: str,
    ids: Iterable[str],
    mutants: Mutants,
    clauses: Mapping[str, tuple[str, ...]],
    shared: Set[str],
) -> bool:
    """Whether a bug shows the teeth of these generators for this cell.

    It is one that is declared to die by a fault of them, or one that the row names for the attack, if it breaks a
    clause that one of them proves. Of a fault that strikes several operations the row names those that are its own.
    """
    attack = attack_of(name)
    named = {bug for one in (attack, _FIRST.get(attack, attack)) for bug in row.mutants.get(one.value, ())}
    return any(
        (each in mutant.faults and (each not in shared or mutant.name in named))
        or (each not in shared and mutant.name in named and mutant.must_fail.keys() & set(clauses.get(each, ())))
        for each in ids
        for mutant in mutants.mutants
    )


def _of_row(row: Row, due: tuple[str, ...]) -> Iterator[str]:
    places = {"cells": row.cells, "exceptions": row.excepted(), "open": row.left()}
    for place, cells in places.items():
        for name in cells.keys() - set(due):
            yield f"{name} stands under `{place}`, and does not apply"
    for first, second in (("cells", "exceptions"), ("cells", "open"), ("exceptions", "open")):
        for name in places[first].keys() & places[second].keys():
            yield f"{name} stands under `{first}` and under `{second}`; drop one of the two"
    for place in ("exceptions", "open"):
        for name, why in places[place].items():
            if not why:
                yield f"{name} stands under `{place}` for no reason; write one after `why`"
    for name in due:
        if not any(name in cells for cells in places.values()):
            yield f"{name} is blank; name a case in lock.json, or say under `open` what is missing"


def _names(contract: Contract, matrix: Matrix, rows: Mapping[str, Row]) -> Iterator[str]:
    drawn = {parameter for row in rows.values() for parameter in row.parameters}
    for name in {*drawn, *matrix.unbounded, *filter(None, (matrix.horizon,))} - contract.parameters.keys():
        yield f"matrix: {name} is no parameter"
    for parameter in contract.parameters.values():
        is_number = isinstance(parameter.value, int) or parameter.unit is not None
        if is_number and (parameter.name in drawn) == (parameter.name in matrix.unbounded):
            yield (
                f"matrix: parameter {parameter.name}: expected an operation that draws its boundary, or a reason under "
                f"`unbounded` why none does"
            )
    for name, row in rows.items():
        for rival in row.rivals:
            if rival not in rows:
                yield f"matrix: {name}: its rival {rival} is no row"
            elif name not in rows[rival].rivals:
                yield f"matrix: {name} is a rival of {rival}, and not the other way round"
    for name in (*matrix.commands, *(row.partition(" ")[0] for row in rows if " " in row)):
        method = contract.methods.get(name)
        if method is None or method.group is not Group.PROVOCATION:
            yield f"matrix: {name} is no provocation"
