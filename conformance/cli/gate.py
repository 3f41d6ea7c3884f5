"""`holdfast gate`: may what was verified proceed?"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from conformance.cli.console import Format, out, stop
from conformance.gate import (
    FitnessProof,
    GateDecision,
    Requirement,
    decide,
    parse_requirement,
)
from conformance.verdict import Exit
from reports.evidence import EvidenceError, Run, read_evidence
from reports.evidence.model import instant_text
from specs import SpecError

_AGE = re.compile(r"([1-9][0-9]{0,5})([mhd])\Z")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_COLOUR = {Exit.KIT: "magenta", Exit.FAIL_OPEN: "bold red"}


def gate(
    run: Annotated[Path, typer.Argument(help="evidence of a run, as `holdfast verify` wrote it")],
    require: Annotated[list[str], typer.Option(metavar="C[/core]", help="what must be proven; repeat for more")],
    fitness: Annotated[Path | None, typer.Option(help="fitness proof of a live surface; needs --surface")] = None,
    surface: Annotated[str | None, typer.Option(help="name of the live surface; needs --fitness")] = None,
    baseline: Annotated[Path | None, typer.Option(help="an earlier run; no claim of it may be dropped")] = None,
    max_age: Annotated[str, typer.Option(metavar="D", help="how old the run may be: 30m, 12h, 7d")] = "7d",
    key: Annotated[Path | None, typer.Option(help="public key of the signature that is asked for")] = None,
    format_: Annotated[Format, typer.Option("--format", help="text or json")] = Format.TEXT,
) -> None:
    """Decide whether a run proves what is required; exit 0 only if CAN_PROCEED = YES."""
    requirements = _requirements(require)
    age = _age(max_age)
    proof = _proof(fitness, surface)
    if key is not None:
        _must_be_file("--key", key)
    try:
        evidence = read_evidence(run)
        before = None if baseline is None else read_evidence(baseline)
    except EvidenceError as error:
        stop(Exit.USAGE, str(error))
    decision = decide(
        evidence,
        requirements,
        now=datetime.now(UTC),
        max_age=age,
        fitness=proof,
        baseline=before,
        key=None if key is None else str(key),
        path=run,
    )
    if format_ is Format.JSON:
        print(json.dumps(decision_json(decision, evidence, requirements, path=run), ensure_ascii=False))
    else:
        _print(out(), decision, evidence, requirements, path=run)
    raise typer.Exit(int(decision.exit))


def _requirements(names: Sequence[str]) -> list[Requirement]:
    try:
        return [parse_requirement(name) for name in dict.fromkeys(names)]
    except SpecError as error:
        stop(Exit.USAGE, str(error))


def _age(text: str) -> timedelta:
    found = _AGE.match(text)
    if found is None:
        stop(Exit.USAGE, f"--max-age: expected a span such as 30m, 12h or 7d, got {text!r}")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _proof(fitness: Path | None, surface: str | None) -> FitnessProof | None:
    if fitness is None and surface is None:
        return None
    if fitness is None or not surface:
        stop(Exit.USAGE, "--fitness and --surface belong together: a proof speaks of one named live surface")
    _must_be_file("--fitness", fitness)
    return FitnessProof(str(fitness), surface)


def _must_be_file(option: str, path: Path) -> None:
    if not path.is_file():
        stop(Exit.USAGE, f"{option}: expected a file, found none at {path}; check the name")


def decision_json(
    decision: GateDecision, evidence: Run, requirements: Sequence[Requirement], *, path: Path
) -> dict[str, Any]:
    """The decision as JSON (`specs/schemas/gate.schema.json`)."""
    return {
        "run": {
            "path": str(path),
            "digest": evidence.digest,
            "started": None if evidence.header is None else instant_text(evidence.header.started),
        },
        "required": [
            {"contract": r.contract.name, "version": r.contract.version, "extent": r.extent.value} for r in requirements
        ],
        **decision.as_json(),
    }


def _print(
    console: Console, decision: GateDecision, evidence: Run, requirements: Sequence[Requirement], *, path: Path
) -> None:
    console.print(
        f"CAN_PROCEED = {decision.can_proceed}", style="bold green" if decision.can_proceed == "YES" else "bold red"
    )
    for reason in decision.reasons:
        console.print(f"  {reason.code.value}", style=_COLOUR.get(reason.exit, "yellow"), end=": ")
        console.print(reason.text, markup=False)
    for note in decision.notes:
        console.print(f"  note: {note}", markup=False, style="dim")
    wanted = ", ".join(f"{requirement.name} {requirement.contract.version}" for requirement in requirements)
    console.print(f"required: {wanted}", markup=False)
    if evidence.header is not None:
        made = evidence.header.adapter.implementation
        whose = "an adapter that never said hello" if made is None else f"{made.name} {made.version} ({made.language})"
        console.print(f"run:      {path} of {instant_text(evidence.header.started)}, {whose}", markup=False)
    console.print(f"exit:     {int(decision.exit)}")
