"""`holdfast list`: contracts, clauses, cases, methods or reasons, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, unique
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from holdfast.conformance.cli.console import Format, out, print_json, stop
from holdfast.conformance.run.plan import plan_of
from holdfast.conformance.verdict import Exit
from holdfast.specs import Contract, SpecError, contract_names, load_contract


@unique
class What(Enum):
    """What can be listed."""

    CONTRACTS = "contracts"
    CLAUSES = "clauses"
    CASES = "cases"
    METHODS = "methods"
    REASONS = "reasons"


def list_(
    what: Annotated[What, typer.Argument(help="what to list")],
    contract: Annotated[list[str] | None, typer.Option("--contract", help="only of this contract; repeat")] = None,
    format_: Annotated[Format, typer.Option("--format", help="text or json")] = Format.TEXT,
) -> None:
    """List contracts, clauses, cases, methods or reasons."""
    try:
        contracts = [load_contract(name) for name in (contract or contract_names())]
    except SpecError as error:
        stop(Exit.USAGE, str(error))
    rows = _rows(what, contracts)
    if format_ is Format.JSON:
        print_json({"list": what.value, "rows": rows})
        return
    if not rows:
        out().print(f"no {what.value}")
        return
    table = Table(show_edge=False)
    for name in rows[0]:
        table.add_column(name, overflow="fold", no_wrap=name in ("contract", "clause", "case", "method", "reason"))
    for row in rows:
        table.add_row(*(escape(", ".join(v) if isinstance(v, list) else str(v)) for v in row.values()))
    out().print(table)


def _rows(what: What, contracts: Sequence[Contract]) -> list[dict[str, Any]]:
    if what is What.CONTRACTS:
        return [
            {
                "contract": c.name,
                "version": c.version,
                "clauses": len(c.clauses),
                "cases": len(plan_of(c)),
                "title": c.title,
                "digest": c.digest,
            }
            for c in contracts
        ]
    if what is What.CLAUSES:
        return [
            {
                "clause": clause.id,
                "level": clause.level.value,
                "basis": clause.basis.value,
                "proof": clause.proof.value,
                "cases": sum(clause.id in case.clauses for case in plan),
                "text": clause.text,
            }
            for c, plan in [(c, plan_of(c)) for c in contracts]
            for clause in c.clauses.values()
        ]
    if what is What.METHODS:
        return [
            {
                "method": method.name,
                "contract": c.name,
                "group": method.group.value,
                "effects": list(method.effects),
                "reasons": list(method.reasons),
                "title": method.title,
            }
            for c in contracts
            for method in c.methods.values()
        ]
    if what is What.CASES:
        return [
            {
                "case": case.id,
                "clauses": list(case.clauses),
                "scripted": case.scripted,
                "form": case.form.value,
                "provocations": sorted(case.provocations),
                "title": case.title,
            }
            for c in contracts
            for case in plan_of(c)
        ]
    return [
        {
            "reason": reason.name,
            "contract": c.name,
            "audit_records": reason.audit_records,
            "meaning": reason.meaning,
        }
        for c in contracts
        for reason in c.reasons.values()
    ]
