"""`holdfast list` and `holdfast explain`: what the kit knows, as a table, as a matrix, and about one name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from enum import Enum, unique
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from holdfast.conformance.cli.console import (
    Format,
    OutputFormat,
    ending,
    err,
    members,
    out,
    print_json,
    stop,
    table_of,
)
from holdfast.conformance.cli.explain import described
from holdfast.conformance.cli.target import known_contracts
from holdfast.conformance.run.baselines import Policy, load_baseline
from holdfast.conformance.run.plan import plan_of, usable
from holdfast.conformance.verdict import Exit, Verdict
from holdfast.reports.evidence import EvidenceError, read_evidence
from holdfast.specs import Contract, SpecError, contract_names, load_contract
from holdfast.specs.cells import cells_of, coverage, covered, rows_of
from holdfast.specs.errors import meant
from holdfast.specs.matrix import Attack, Matrix, attack_of, load_matrix
from holdfast.vectors.taxonomy import Category


def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            help="a clause or the end of its id, a case, a method, a reason or a contract; else CONTRACT/NAME"
        ),
    ] = None,
    contract: Annotated[str | None, typer.Option("--contract", help="only of this contract")] = None,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="DOCS", help="write the page of each contract's methods into DOCS")
    ] = None,
    matrix: Annotated[bool, typer.Option("--matrix", help="of a contract: operations against attacks")] = False,
    evidence: Annotated[
        Path | None,
        typer.Option(
            "--evidence", metavar="RUN", help="with --matrix: the cells with a case that conforms in this run"
        ),
    ] = None,
    format_: OutputFormat = Format.TEXT,
) -> None:
    """Explain a clause, a case, a method, a reason or a contract."""
    if evidence is not None and not matrix:
        stop(Exit.USAGE, "--evidence belongs to --matrix, and says in which run cases have to conform")
    if matrix:
        explain_matrix(name, contract, evidence, format_)
        return
    known_contracts([] if contract is None else [contract])
    if (name is None) is (write is None):
        stop(Exit.USAGE, f"expected a name or --write, got {'neither' if name is None else 'both'}")
    with ending(Exit.KIT, SpecError):
        names = usable()[0] if contract is None else (contract,)
        if write is not None:
            _write(write, [load_contract(each) for each in names])
            return
        assert name is not None
        found = list(_found(name, names)) or [each for known in _ending(name, names) for each in _found(known, names)]
    if not found:
        near = meant(name, [known for contract in map(load_contract, names) for known in _known(contract)])
        stop(
            Exit.USAGE,
            f"expected the id of a clause or a case, a method or a reason, got {name!r}{near}; `holdfast list` lists "
            "them all",
        )
    if len(found) > 1:
        places = ", ".join(f"{each.name}/{name}" for each, _ in found)
        stop(Exit.USAGE, f"expected a name that is in one contract, got {name!r}; say one of {places}")
    ((where, data),) = found
    if format_ is Format.JSON:
        print_json(data)
    else:
        out().print_lines(described.lines_of(where, data))


def _found(name: str, names: Sequence[str]) -> Iterator[tuple[Contract, dict[str, Any]]]:
    """The explanation of that name in each contract that has it."""
    prefix, _, rest = name.partition("/")
    for contract in map(load_contract, names):
        own = rest if prefix == contract.name and rest else name
        if name == contract.name:
            yield contract, described.contract_data(contract)
        elif own in contract.clauses:
            yield contract, described.clause_data(contract, contract.clauses[own])
        elif own in contract.methods:
            yield contract, described.method_data(contract, contract.methods[own])
        elif own in contract.reasons:
            yield contract, described.reason_data(contract, contract.reasons[own])
        elif prefix == contract.name:
            # The ids of cases begin with the name of their contract.
            planned = next((case for case in plan_of(contract) if case.id == name), None)
            if planned is not None:
                yield contract, described.case_data(contract, planned)


def _ending(name: str, names: Sequence[str]) -> list[str]:
    """The clause whose id ends with this name, as `RP-03`, if it is one alone."""
    found = [each for contract in map(load_contract, names) for each in contract.clauses if each.endswith(f"-{name}")]
    return found if len(found) == 1 else []


def _known(contract: Contract) -> Iterator[str]:
    yield from contract.clauses
    yield from (case.id for case in plan_of(contract))
    yield from (f"{contract.name}/{each}" for each in (*contract.methods, *contract.reasons))


def _write(docs: Path, contracts: Sequence[Contract]) -> None:
    from holdfast.conformance.cli.explain.pages import COMMANDS, FOLDER, commands_page, page_of
    from holdfast.specs.binding import openapi_of

    if not docs.is_dir():
        stop(Exit.USAGE, f"--write: expected a folder, got {docs}; make it first")
    folder = docs / FOLDER
    folder.mkdir(exist_ok=True)
    for contract in contracts:
        path = folder / f"{contract.name}.md"
        path.write_text(page_of(contract), encoding="utf-8")
        out().print(f"wrote {path}")
        place = docs / "openapi" / f"{contract.name}.json"
        place.parent.mkdir(exist_ok=True)
        place.write_text(json.dumps(openapi_of(contract), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        out().print(f"wrote {place}")
    (docs / COMMANDS).write_text(commands_page(), encoding="utf-8")
    out().print(f"wrote {docs / COMMANDS}")


# Left out of a table, where the rest needs the room.
_FOR_PROGRAMS = frozenset({"scripted", "form", "provocations", "digest"})


@unique
class What(Enum):
    """What can be listed."""

    CONTRACTS = "contracts"
    CLAUSES = "clauses"
    CASES = "cases"
    METHODS = "methods"
    REASONS = "reasons"
    VECTORS = "vectors"


def list_(
    what: Annotated[What, typer.Argument(help="what to list")],
    contract: Annotated[list[str] | None, typer.Option("--contract", help="only of this contract; repeat")] = None,
    format_: OutputFormat = Format.TEXT,
) -> None:
    """List contracts, clauses, cases, methods, reasons, or the categories of `vectors verify`."""
    with ending(Exit.USAGE, SpecError):
        names, unusable = (contract, {}) if contract else usable()
        rows = _rows(what, [load_contract(name) for name in names])
    wrong = unusable if what is What.CONTRACTS else {}
    if format_ is Format.JSON:
        print_json({"list": what.value, "rows": rows, **({"unusable": wrong} if wrong else {})})
        return
    for name, why in wrong.items():
        err().print(f"unusable: {name}: {why}", style="yellow")
    if not rows:
        out().print(f"no {what.value}")
        return
    names = [name for name in rows[0] if name not in _FOR_PROGRAMS]
    values = ([row[name] for name in names] for row in rows)
    cells = [[", ".join(each) if isinstance(each, list) else str(each) for each in row] for row in values]
    if not out().is_terminal:
        out().print_lines(_lines([names, *cells]))
        return
    table = table_of(*names)
    for row in cells:
        table.add_row(*row)
    out().print_table(table)


def _lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """A row a line, for a pipe: in columns, and never broken."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _number_of_cases(contract: Contract) -> int:
    """How many cases it has: as its baselines were measured, which the lint holds to the plan; a suite loads slowly."""
    found = load_baseline(contract)
    return len(plan_of(contract)) if found is None else len(found.verdicts[Policy.ACCEPT_ALL])


def _rows(what: What, contracts: Sequence[Contract]) -> list[dict[str, Any]]:
    if what is What.CONTRACTS:
        return [
            {
                "contract": c.name,
                **members(c, "version"),
                "clauses": len(c.clauses),
                "cases": _number_of_cases(c),
                **members(c, "title", "digest"),
            }
            for c in contracts
        ]
    if what is What.CLAUSES:
        return [
            {
                "clause": clause.id,
                **members(clause, "level", "basis", "proof"),
                "cases": sum(clause.id in case.clauses for case in plan),
                **members(clause, "text"),
            }
            for c, plan in [(c, plan_of(c)) for c in contracts]
            for clause in c.clauses.values()
        ]
    if what is What.METHODS:
        return [
            {"method": method.name, "contract": c.name, **members(method, "group", "effects", "reasons", "title")}
            for c in contracts
            for method in c.methods.values()
        ]
    if what is What.CASES:
        return [
            {"case": case.id, **members(case, "clauses", "scripted", "form", "provocations", "title")}
            for c in contracts
            for case in plan_of(c)
        ]
    if what is What.VECTORS:
        return [
            {"category": each.value, "due": "refused" if each.refused else "accepted", "title": each.title}
            for each in Category
        ]
    return [
        {"reason": reason.name, "contract": c.name, **members(reason, "audit_records", "meaning")}
        for c in contracts
        for reason in c.reasons.values()
    ]


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
