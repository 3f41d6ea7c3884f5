"""`holdfast explain CONTRACT --matrix`: every operation against every attack, and what fills each cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from rich.table import Column, Table

from holdfast.conformance.cli.console import Format, ending, out, print_json, stop, table_of
from holdfast.conformance.verdict import Exit, Verdict
from holdfast.reports.evidence import EvidenceError, read_evidence
from holdfast.specs import Contract, SpecError, contract_names, load_contract
from holdfast.specs.cells import cells_of, coverage, covered, rows_of
from holdfast.specs.matrix import Attack, Matrix, attack_of, load_matrix


def explain_matrix(name: str | None, contract: str | None, evidence: Path | None, format_: Format) -> None:
    """Print it. `evidence` is a run whose cases count."""
    named = {each for each in (name, contract) if each is not None}
    if len(named) != 1 or not named <= set(contract_names()):
        known, got = ", ".join(contract_names()), ", ".join(sorted(named)) or "none"
        stop(Exit.USAGE, f"--matrix: expected the name of one contract, got {got}; known contracts: {known}")
    with ending(Exit.KIT, SpecError):
        loaded = load_contract(named.pop())
        matrix = load_matrix(loaded.name)
    if matrix is None:
        stop(Exit.USAGE, f"--matrix: {loaded.name} has no matrix.yaml; docs/matrix.md says how one is made")
    conforming: Set[str] | None = None
    if evidence is not None:
        with ending(Exit.USAGE, EvidenceError):
            run = read_evidence(evidence)
        conforming = {line.case for line in run.verdicts if line.verdict == Verdict.CONFORMS.value}
    data = matrix_data(loaded, matrix, conforming)
    if format_ is Format.JSON:
        print_json(data)
        return
    console = out()
    console.print_table(_table(loaded, data))
    console.print_lines(_left(data))
    console.print_lines([_summed(data) if conforming is None else coverage(loaded, matrix, conforming)])


def matrix_data(contract: Contract, matrix: Matrix, conforming: Set[str] | None) -> dict[str, Any]:
    """The matrix as plain JSON (explain.schema.json). `conforming` are the cases of a run, if there is one."""
    filled = None if conforming is None else covered(matrix, conforming)
    cells = [
        {
            "operation": name,
            "cell": each,
            "by": list(row.cells.get(each, ())),
            "exception": row.excepted().get(each),
            "open": row.left().get(each),
            "filled": None if filled is None else (name, each) in filled,
        }
        for name, row in rows_of(contract, matrix).items()
        for each in cells_of(contract, name, row, horizon=matrix.horizon)
    ]
    return {
        "contract": f"{contract.name} {contract.version}",
        "cells": len(cells),
        "open": sum(one["open"] is not None for one in cells),
        "excepted": sum(one["exception"] is not None for one in cells),
        "filled": None if filled is None else len(filled),
        "matrix": cells,
    }


def _table(contract: Contract, data: Mapping[str, Any]) -> Table:
    """One line for each operation and attack: how many of its cells are filled, by how many cases, with which first."""
    is_of_a_run = data["filled"] is not None
    words = (Column(each, no_wrap=True) for each in ("operation", "attack"))
    numbers = (Column(each, justify="right", no_wrap=True) for each in ("cells", "conform" if is_of_a_run else "cases"))
    title = f"{contract.name} {contract.version}: the matrix"
    table = table_of(*words, *numbers, "filled by", title=title)
    for (operation, attack), cells in _by_attack(data).items():
        ids = list(dict.fromkeys(case for one in cells for case in one["by"]))
        named = sum(bool(one["by"]) for one in cells)
        count = sum(one["filled"] for one in cells) if is_of_a_run else len(ids)
        more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
        excepted = sum(one["exception"] is not None for one in cells)
        filled = ids[0] + more if ids else "exception" if excepted == len(cells) else "open"
        table.add_row(operation, attack.value, f"{named}/{len(cells)}", str(count), filled)
    return table


def _by_attack(data: Mapping[str, Any]) -> Mapping[tuple[str, Attack], list[dict[str, Any]]]:
    found: dict[tuple[str, Attack], list[dict[str, Any]]] = {}
    for one in data["matrix"]:
        found.setdefault((one["operation"], attack_of(one["cell"])), []).append(one)
    return found


def _left(data: Mapping[str, Any]) -> Iterator[str]:
    """The exceptions and the open cells, by their reasons."""
    for what in ("exception", "open"):
        reasons: dict[str, list[str]] = {}
        for one in data["matrix"]:
            if one[what] is not None:
                reasons.setdefault(one[what], []).append(f"{one['operation']}: {one['cell']}")
        for why, cells in reasons.items():
            yield f"{what}: {why}"
            yield from (f"  {each}" for each in cells)


def _summed(data: Mapping[str, Any]) -> str:
    filled = sum(bool(one["by"]) for one in data["matrix"])
    return (
        f"{data['contract']}: {filled} of {data['cells']} cells have a case, {data['excepted']} an exception, "
        f"{data['open']} are open; --evidence RUN says which have one that conforms"
    )
