"""`holdfast explain CONTRACT --matrix`: every operation against every attack, and what fills each cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Column, Table

from holdfast.conformance.cli.console import Format, ending, out, print_json, print_lines, print_table, stop, table_of
from holdfast.conformance.matrix.count import Counted, counted, held_against
from holdfast.conformance.run.plan import plan_of
from holdfast.conformance.verdict import Exit, Verdict
from holdfast.reports.evidence import EvidenceError, read_evidence
from holdfast.specs import Contract, SpecError, contract_names, load_contract
from holdfast.specs.cells import rows_of
from holdfast.specs.matrix import Attack, Matrix, attack_of, load_matrix


def explain_matrix(name: str | None, contract: str | None, evidence: Path | None, format_: Format) -> None:
    """Print it. `evidence` is a run whose pairs are counted."""
    named = {each for each in (name, contract) if each is not None}
    if len(named) != 1 or not named <= set(contract_names()):
        known, got = ", ".join(contract_names()), ", ".join(sorted(named)) or "none"
        stop(Exit.USAGE, f"--matrix: expected the name of one contract, got {got}; known contracts: {known}")
    with ending(Exit.KIT, SpecError):
        loaded = load_contract(named.pop())
        matrix = load_matrix(loaded.name)
    if matrix is None:
        stop(Exit.USAGE, f"--matrix: {loaded.name} has no matrix.yaml; docs/matrix.md says how one is made")
    found = held_against(loaded, matrix, {}) if evidence is None else _of_run(loaded, evidence)
    data = matrix_data(loaded, matrix, found, is_counted=evidence is not None)
    if format_ is Format.JSON:
        print_json(data)
        return
    console = out()
    print_table(console, _table(loaded, data))
    print_lines(console, _left(data))
    print_lines(console, [found.sentence()] if evidence is not None else [_summed(data)])


def _of_run(contract: Contract, path: Path) -> Counted:
    with ending(Exit.USAGE, EvidenceError):
        run = read_evidence(path)
    good = {line.case for line in run.verdicts if line.verdict == Verdict.CONFORMS.value}
    found = counted(contract, [case for case in plan_of(contract) if case.id in good], run.sides())
    assert found is not None, "it has a matrix"
    return found


def matrix_data(contract: Contract, matrix: Matrix, found: Counted, *, is_counted: bool) -> dict[str, Any]:
    """The matrix as plain JSON (explain.schema.json). Without a run nothing is known of pairs."""
    rows = rows_of(contract, matrix)
    return {
        "contract": f"{contract.name} {contract.version}",
        "cells": len(found.cells),
        "open": len(found.open),
        "excepted": len(found.excepted),
        "filled": found.filled if is_counted else None,
        "pairs": sum(found.pairs.get(key, 0) for key in found.cells) if is_counted else None,
        "matrix": [
            {
                "operation": name,
                "cell": each,
                "by": list(rows[name].cells.get(each, ())),
                "exception": rows[name].excepted().get(each),
                "open": rows[name].left().get(each),
                "pairs": found.pairs.get((name, each), 0) if is_counted else None,
            }
            for name, each in found.cells
        ],
    }


def _table(contract: Contract, data: Mapping[str, Any]) -> Table:
    """One line for each operation and attack: how many of its cells are filled, by how many cases, with which first."""
    is_counted = data["pairs"] is not None
    words = (Column(each, no_wrap=True) for each in ("operation", "attack"))
    numbers = (Column(each, justify="right", no_wrap=True) for each in ("cells", "pairs" if is_counted else "cases"))
    title = f"{contract.name} {contract.version}: the matrix"
    table = table_of(*words, *numbers, "filled by", title=title)
    for (operation, attack), cells in _by_attack(data).items():
        ids = list(dict.fromkeys(case for one in cells for case in one["by"]))
        named = sum(bool(one["by"]) for one in cells)
        count = sum(one["pairs"] for one in cells) if is_counted else len(ids)
        more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
        excepted = sum(one["exception"] is not None for one in cells)
        filled = escape(ids[0]) + more if ids else "exception" if excepted == len(cells) else "open"
        table.add_row(escape(operation), attack.value, f"{named}/{len(cells)}", str(count), filled)
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
        f"{data['open']} are open; --evidence RUN counts the pairs of a run"
    )
