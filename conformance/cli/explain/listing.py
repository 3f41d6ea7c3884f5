"""`holdfast list`: contracts, clauses, cases, methods, reasons or categories of vectors, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, unique
from typing import Annotated, Any

import typer

from holdfast.conformance.cli.console import Format, OutputFormat, ending, members, out, print_json, table_of
from holdfast.conformance.run.plan import plan_of
from holdfast.conformance.verdict import Exit
from holdfast.specs import Contract, SpecError, contract_names, load_contract
from holdfast.vectors.taxonomy import Category

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
        contracts = [load_contract(name) for name in (contract or contract_names())]
    rows = _rows(what, contracts)
    if format_ is Format.JSON:
        print_json({"list": what.value, "rows": rows})
        return
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


def _rows(what: What, contracts: Sequence[Contract]) -> list[dict[str, Any]]:
    if what is What.CONTRACTS:
        return [
            {
                "contract": c.name,
                **members(c, "version"),
                "clauses": len(c.clauses),
                "cases": len(plan_of(c)),
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
