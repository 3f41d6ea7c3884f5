"""`python -m holdfast.conformance.matrix RUN…`: writes into lock.json which cases filled which cells in these runs.

The runs are of the reference. What a person wrote stays, above all reasons. Of a fault that no run has tried its layer
says what it fills. A cell that nothing fills any more, and one that only generators fill and no bug shows the teeth of,
goes to `open`. The name of a contract in place of a run fits its matrix to the contract as it is, and keeps what filled
the cells that there still are.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from pathlib import Path

from msgspec import structs

from holdfast.conformance.matrix.count import by_case
from holdfast.conformance.matrix.sent import Pairs, keys_of
from holdfast.conformance.run.plan import generators_of, plan_of
from holdfast.reports.evidence import read_evidence
from holdfast.specs import Contract, contract_names, load_contract
from holdfast.specs.cells import cells_of, proven, rows_of, shared_faults
from holdfast.specs.loader import contract_folders
from holdfast.specs.lock import load_lock, write_lock
from holdfast.specs.matrix import FILE, Matrix, Row, grouped, load_matrix, written
from holdfast.specs.mutants import Mutants, load_mutants

# How many of the cases that fill a cell are named; `holdfast explain CONTRACT --matrix --evidence RUN` counts all.
_NAMED = 3
_UNFILLED = "no case of the reference's run does it"
_UNPROVEN = "no bug of this operation and attack is known to die by the generator that alone fills it"
# By the row and the cell, the cases that fill it and their pairs.
Filling = Mapping[tuple[str, str], Mapping[str, int]]


def updated(contract: Contract, matrix: Matrix, filling: Filling, mutants: Mutants) -> Matrix:
    """The matrix with the cases that fill its cells."""
    planned = {case.id: case.clauses for case in plan_of(contract)}
    generators = generators_of(contract)
    rows = {
        name: _row(contract, matrix, name, row, filling, mutants, planned, generators)
        for name, row in rows_of(contract, matrix).items()
    }
    return structs.replace(matrix, operations=rows)


def _row(
    contract: Contract,
    matrix: Matrix,
    name: str,
    row: Row,
    filling: Filling,
    mutants: Mutants,
    planned: Mapping[str, tuple[str, ...]],
    generators: Set[str],
) -> Row:
    cells: dict[str, tuple[str, ...]] = {}
    left: list[tuple[str, str]] = []
    excepted, shared = row.excepted(), shared_faults(contract)
    for each in cells_of(contract, name, row, horizon=matrix.horizon):
        found = filling.get((name, each), {})
        ids = _named(found, row.cells.get(each, ()), generators)
        if set(ids) & generators == set(ids) and ids:
            ids = tuple(one for one in ids if proven(row, each, [one], mutants, planned, shared))[:_NAMED]
        if ids:
            cells[each] = ids
        elif each not in excepted:
            left.append((each, row.left().get(each) or (_UNPROVEN if found else _UNFILLED)))
    kept = [(each, why) for each, why in excepted.items() if each not in cells]
    return structs.replace(row, cells=cells, exceptions=grouped(iter(kept)), open=grouped(iter(left)))


def _named(found: Mapping[str, int], before: Iterable[str], generators: Set[str]) -> tuple[str, ...]:
    """The cases to name: written ones first, then those that are named already, then those with the most pairs.

    Of generated ones all are looked at, because not each of them has a bug that shows its teeth.
    """
    place = {case: number for number, case in enumerate(before)}
    order = sorted(found, key=lambda case: (case in generators, place.get(case, len(place)), -found[case], case))
    written_ones = [case for case in order if case not in generators]
    return tuple(written_ones[:_NAMED] or order)


def filling_of(runs: Iterable[Mapping[str, Pairs]]) -> Filling:
    """The pairs of several runs by row, cell and case."""
    found: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for run in runs:
        for case, pairs in run.items():
            for key, count in pairs.items():
                found[key][case] = max(found[key][case], count)
    return found


def _undone(contract: Contract, matrix: Matrix, runs: Iterable[Mapping[str, Pairs]]) -> Mapping[str, Pairs]:
    """What the faults fill that no run has tried."""
    tried = {case for run in runs for case in run}
    left = {fault.id: keys_of(contract, matrix, fault) for fault in contract.faults if fault.id not in tried}
    return {case: Counter([*first, *later]) for case, (first, later) in left.items()}


def _as_written(contract: Contract, matrix: Matrix) -> Mapping[str, Pairs]:
    """What the matrix says of the cases that there still are."""
    planned = {case.id for case in plan_of(contract)}
    found: defaultdict[str, Pairs] = defaultdict(Counter)
    for name, row in matrix.operations.items():
        for each, ids in row.cells.items():
            for case in planned & {*ids}:
                found[case][name, each] = 1
    return found


def main(words: Iterable[str]) -> None:
    """Read the runs, and write the matrix of each contract in them."""
    by_contract: defaultdict[str, list[Mapping[str, Pairs]]] = defaultdict(list)
    for word in words:
        if word in contract_names():
            by_contract[word].append(_as_written(load_contract(word), load_matrix(word) or Matrix(word)))
            continue
        run = read_evidence(Path(word))
        if run.defects or run.header is None:
            raise SystemExit(f"{word}: expected a whole run or a contract, got {run.defects[:1] or 'no header'}")
        for pin in run.header.contracts:
            contract = load_contract(pin.contract)
            by_contract[pin.contract].append(by_case(contract, load_matrix(pin.contract) or Matrix(pin.contract), run))
    for name, runs in by_contract.items():
        contract = load_contract(name)
        before = load_matrix(name) or Matrix(name)
        filling = filling_of([*runs, _undone(contract, before, runs)])
        matrix = updated(contract, before, filling, load_mutants(name))
        folder = contract_folders()[name]
        (folder / FILE).write_text(written(matrix), encoding="utf-8")
        cells_now = {row: each.cells for row, each in matrix.operations.items() if each.cells}
        write_lock(folder, structs.replace(load_lock(folder), cells=cells_now))
        cells = [each for row in matrix.operations.values() for each in (*row.cells, *row.left(), *row.excepted())]
        left = sum(len(row.left()) for row in matrix.operations.values())
        print(f"{name}: {len(cells)} cells, {left} open")


if __name__ == "__main__":
    main(sys.argv[1:])
