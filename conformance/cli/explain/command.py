"""`holdfast explain CLAUSE|CASE`: everything the kit knows about one clause or one case."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console

from holdfast.conformance.cli.console import Format, out, print_json, print_lines, stop
from holdfast.conformance.cli.mutants import planted
from holdfast.conformance.run.plan import PlannedCase, plan_of
from holdfast.conformance.verdict import Exit
from holdfast.specs import Case, Clause, Contract, SpecError, contract_names, load_contract
from holdfast.specs.model import FaultCase, Proof


def explain(
    name: Annotated[str, typer.Argument(help="a clause id or a case id")],
    format_: Annotated[Format, typer.Option("--format", help="text or json")] = Format.TEXT,
) -> None:
    """Explain a clause or a case: its text, harm, cases, twins and mutants."""
    try:
        for contract in map(load_contract, contract_names()):
            if name in contract.clauses:
                _clause(contract, contract.clauses[name], format_)
                return
            planned = next((case for case in plan_of(contract) if case.id == name), None)
            if planned is not None:
                _case(contract, planned, format_)
                return
    except SpecError as error:
        stop(Exit.KIT, str(error))
    near = [
        known
        for contract in map(load_contract, contract_names())
        for known in (*contract.clauses, *(case.id for case in plan_of(contract)))
        if name.lower() in known.lower()
    ]
    hint = f"; near it: {', '.join(near[:8])}" if near else "; `holdfast list clauses` names them all"
    stop(Exit.USAGE, f"expected the id of a clause or a case, got {name!r}{hint}")


def _clause(contract: Contract, clause: Clause, format_: Format) -> None:
    cases = [case for case in plan_of(contract) if clause.id in case.clauses]
    mutants = [mutant for mutant in planted() if clause.id in mutant.must_fail]
    data: dict[str, Any] = {
        "clause": clause.id,
        "contract": f"{contract.name} {contract.version}",
        "level": clause.level.value,
        "basis": clause.basis.value,
        "section": clause.section,
        "proof": clause.proof.value,
        "text": clause.text,
        "harm": clause.harm,
        "digest": clause.digest,
        "not_testable": clause.not_testable,
        "unbreakable": clause.unbreakable,
        "cases": [{"case": case.id, "title": case.title} for case in cases],
        "mutants": [{"mutant": m.name, "title": m.title, "verdict": m.must_fail[clause.id].value} for m in mutants],
    }
    if format_ is Format.JSON:
        print_json(data)
        return
    console = out()
    _fields(console, data)
    if clause.proof is Proof.FITNESS:
        console.print("proven by `holdfast fitness DSN` of a live surface, and by no run; see docs/fitness.md")
        return
    for heading, rows in (("cases", data["cases"]), ("mutants", data["mutants"])):
        console.print(f"{heading}: {len(rows)}", style="bold")
        for row in rows:
            console.print("  " + "  ".join(str(value) for value in row.values()), markup=False)


def _case(contract: Contract, planned: PlannedCase, format_: Format) -> None:
    script = _written(contract, planned.id)
    data: dict[str, Any] = {
        "case": planned.id,
        "contract": f"{contract.name} {contract.version}",
        "title": planned.title,
        "clauses": list(planned.clauses),
        "scripted": planned.scripted,
        "provocations": sorted(planned.provocations),
        "form": planned.form.value,
        "script": script,
    }
    if format_ is Format.JSON:
        print_json(data)
        return
    console = out()
    _fields(console, {key: value for key, value in data.items() if key != "script"})
    for name in planned.clauses:
        console.print(f"{name}: {contract.clauses[name].text}", markup=False)
    if script is not None:
        text = yaml.safe_dump(script, sort_keys=False, allow_unicode=True, width=118)
        print_lines(console, text.splitlines())


def _written(contract: Contract, name: str) -> dict[str, Any] | None:
    """What is written of a case in the contract's files; nothing of a suite test."""
    case, fault = contract.case(name), contract.fault(name)
    if fault is not None:
        return _struck(contract, fault)
    return None if case is None else _script(case)


def _script(case: Case) -> dict[str, Any]:
    twin = case.twin
    parts: dict[str, Any] = {
        "kind": case.kind.value,
        "open": {"surface": case.surface, "config": dict(case.config)},
        "workers": case.workers,
        "given": [dict(step) for step in case.given],
        "when": [dict(step) for step in case.when],
        "then": [dict(step) for step in case.then],
    }
    if twin is not None:
        parts["twin"] = {"step": twin.step, "set": {twin.path: twin.value}, "at": twin.at, "expect": dict(twin.expect)}
    return _plain(parts)


def _struck(contract: Contract, fault: FaultCase) -> dict[str, Any]:
    """What is done, during which work, and how it is judged."""
    workload = contract.workloads[fault.workload]
    return _plain(
        {
            "layer": fault.layer.value,
            "promise": fault.promise.value,
            "workload": workload.name,
            "title": workload.title,
            "operations": workload.operations,
            "config": dict(workload.config),
            "prepare": [dict(step) for step in workload.prepare],
            "operation": dict(workload.operation),
            "facts": {name: dict(fact) for name, fact in workload.facts.items()},
        }
    )


def _plain(parts: Mapping[str, Any]) -> dict[str, Any]:
    """What there is of the parts, as plain JSON."""
    plain: dict[str, Any] = json.loads(json.dumps({key: value for key, value in parts.items() if value}))
    return plain


def _fields(console: Console, data: dict[str, Any]) -> None:
    for key, value in data.items():
        if value is None or (isinstance(value, list) and value and isinstance(value[0], dict)) or value == []:
            continue
        shown = ", ".join(value) if isinstance(value, list) else str(value)
        console.print(f"{key:<13}{shown}", markup=False)
