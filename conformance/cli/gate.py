"""`holdfast gate`: may what was verified proceed?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.conformance.cli.console import (
    Format,
    OutputFormat,
    PlainConsole,
    ending,
    in_style,
    members,
    out,
    print_json,
    stop,
)
from holdfast.conformance.cli.places import put, unusable_file
from holdfast.conformance.cli.target import require as needs
from holdfast.conformance.cli.verify.summary import artefacts_text
from holdfast.conformance.gate.decision import (
    Expected,
    Extent,
    FitnessProof,
    GateDecision,
    Requirement,
    decide,
    parse_requirement,
)
from holdfast.conformance.run.documents import CONTRACT, is_of_documents, results_of_documents
from holdfast.conformance.run.plan import plan_of
from holdfast.conformance.run.results import results_of
from holdfast.conformance.verdict import Exit
from holdfast.reports import ci
from holdfast.reports.evidence import EvidenceError, Run, read_evidence
from holdfast.specs import SpecError, load_contract
from holdfast.specs.typed import instant_text, json_of

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
_AGE = re.compile(r"([1-9][0-9]{0,5})([mhd])\Z")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_COLOUR = {Exit.KIT: "magenta", Exit.FAIL_OPEN: "bold red"}


def gate(
    run: Annotated[Path, typer.Argument(help="evidence of a run, as `holdfast verify` wrote it")],
    require: Annotated[
        list[str],
        typer.Option(metavar="C[/ROLE][/core]|jcs/vectors[/PROFILE]", help="what must be proven; repeat for more"),
    ],
    fitness: Annotated[Path | None, typer.Option(help="fitness proof of a live surface; needs --surface")] = None,
    surface: Annotated[
        str | None, typer.Option(metavar="SCHEMA.TABLE", help="live relation of the consumed keys; needs --fitness")
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(metavar="ID/DATABASE", help="live server, as `holdfast fitness` names it; needs --fitness"),
    ] = None,
    challenge: Annotated[
        str | None, typer.Option(help="what was given to `holdfast fitness --challenge`; needs --fitness")
    ] = None,
    baseline: Annotated[Path | None, typer.Option(help="an earlier run; no claim of it may be dropped")] = None,
    adapter_digest: Annotated[
        str | None, typer.Option(metavar="sha256:…", help="digest of the adapter's files that the run must have")
    ] = None,
    commit: Annotated[str | None, typer.Option(metavar="REV", help="revision that the run must be of")] = None,
    nonce: Annotated[str | None, typer.Option(help="nonce that the run must have been asked for with")] = None,
    not_before: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="RFC 3339; the run must have started then or later")
    ] = None,
    allow_seed: Annotated[bool, typer.Option("--allow-seed", help="take a run whose seed was chosen")] = False,
    allow_excused: Annotated[
        bool, typer.Option("--allow-excused", help="take a run with excused MUSTs; one that failed open stays held")
    ] = False,
    rows: Annotated[
        int, typer.Option(min=1, metavar="N", help="generated rows that a run of `vectors verify` must have")
    ] = 100_000,
    same_libraries: Annotated[
        bool, typer.Option("--same-libraries", help="the run must have had the versions of libraries that are here")
    ] = False,
    max_age: Annotated[str, typer.Option(metavar="D", help="how old the run may be: 30m, 12h, 7d")] = "7d",
    sarif: Annotated[Path | None, typer.Option(help="findings as SARIF 2.1.0 go here")] = None,
    summary: Annotated[
        Path | None, typer.Option(help="a summary in Markdown is appended here, as to $GITHUB_STEP_SUMMARY")
    ] = None,
    annotations: Annotated[
        Path | None, typer.Option(help="commands that annotate a run of GitHub Actions go here, for `cat`")
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="FILE", help="file of your repository at which they show findings")
    ] = None,
    format_: OutputFormat = Format.TEXT,
) -> Exit:
    """Decide whether a run proves what is required; exit 0 only if CAN_PROCEED = YES."""
    with ending(Exit.USAGE, SpecError):
        requirements = [parse_requirement(name) for name in dict.fromkeys(require)]
    if any(each.extent is Extent.VECTORS for each in requirements):
        needs("vectors")
    age = _age(max_age)
    proof = _proof(fitness, surface, server, challenge)
    places = {"--sarif": sarif, "--summary": summary, "--annotations": annotations}
    for option, place in places.items():
        if place is not None and (problem := unusable_file(place)):
            stop(Exit.USAGE, f"{option}: {problem}; name another file")
    expected = Expected(
        adapter_digest=_digest(adapter_digest),
        commit=commit,
        nonce=nonce,
        not_before=_instant(not_before),
        allow_seed=allow_seed,
        allow_excused=allow_excused,
        same_libraries=same_libraries,
        rows=rows,
    )
    with ending(Exit.USAGE, EvidenceError):
        evidence = read_evidence(run)
        before = None if baseline is None else read_evidence(baseline)
    decision = decide(
        evidence,
        requirements,
        now=datetime.now(UTC),
        max_age=age,
        fitness=proof,
        baseline=before,
        expected=expected,
        path=run,
    )
    if any(places.values()):
        _show(evidence, requirements, decision, places, at=at or _file_of(evidence, run))
    if format_ is Format.JSON:
        print_json(decision_json(decision, evidence, requirements, path=run))
    else:
        print_decision(out(), decision, evidence, requirements, path=run)
    return decision.exit


def _show(
    run: Run, required: Sequence[Requirement], decision: GateDecision, places: Mapping[str, Path | None], *, at: str
) -> None:
    """Write what a CI server shows. Ends the command where a file cannot be written."""
    contracts = [each.contract for each in required]
    if is_of_documents(run):
        results = results_of_documents(run, load_contract(CONTRACT), status=decision.exit)
    else:
        plan = [planned for contract in contracts for planned in plan_of(contract)]
        results = results_of(run, contracts, plan, status=decision.exit)
    reasons = (f"{each.code.value}: {each.text}" for each in decision.reasons)
    decided = ci.Decided(decision.can_proceed, tuple(reasons), decision.not_asked)
    with ending(Exit.INCOMPLETE, OSError, before="expected to write what a CI server shows, got: "):
        if place := places["--sarif"]:
            put(place, ci.sarif(results, contracts, decided, file=at))
        if place := places["--annotations"]:
            put(place, ci.annotated(results, decided, file=at).encode())
        if place := places["--summary"]:
            with place.open("a", encoding="utf-8") as file:
                file.write(ci.summary(results, decided))


def _file_of(run: Run, path: Path) -> str:
    """The first file of the adapter that lies in the current folder, or the evidence: where findings are shown."""
    files = () if run.artefacts is None else run.artefacts.files
    return next((each.path for each in files if Path(each.path).is_file()), path.as_posix())


def _age(text: str) -> timedelta:
    found = _AGE.match(text)
    if found is None:
        stop(Exit.USAGE, f"--max-age: expected a span such as 30m, 12h or 7d, got {text!r}")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _digest(text: str | None) -> str | None:
    if text is not None and _DIGEST.match(text) is None:
        stop(Exit.USAGE, f"--adapter-digest: expected sha256: and 64 hexadecimal digits in lower case, got {text!r}")
    return text


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        example = instant_text(datetime.now(UTC).replace(microsecond=0))
        stop(Exit.USAGE, f"--not-before: expected an instant with its zone, such as {example}, got {text!r}")
    return moment


def _proof(fitness: Path | None, surface: str | None, server: str | None, challenge: str | None) -> FitnessProof | None:
    if fitness is None:
        given = {"--surface": surface, "--server": server, "--challenge": challenge}
        if alone := [option for option, value in given.items() if value is not None]:
            stop(Exit.USAGE, f"{', '.join(alone)}: expected --fitness too, of which this says what it must speak of")
        return None
    if not surface:
        stop(Exit.USAGE, "--fitness and --surface belong together: a proof speaks of one named live surface")
    if not fitness.is_file():
        stop(Exit.USAGE, f"--fitness: expected a file, found none at {fitness}; check the name")
    return FitnessProof(str(fitness), surface, server, challenge)


def decision_json(
    decision: GateDecision, evidence: Run, requirements: Sequence[Requirement], *, path: Path
) -> dict[str, Any]:
    """The decision as JSON (`specs/schemas/gate.schema.json`)."""
    header = evidence.header
    return {
        "run": {
            "path": str(path),
            "digest": evidence.digest,
            "started": None if header is None else instant_text(header.started),
            "finished": None if evidence.footer is None else instant_text(evidence.footer.finished),
            "adapter_digest": None if evidence.artefacts is None else evidence.artefacts.digest,
            **members(None if header is None else header.adapter, "commit"),
            **members(header, "nonce", "seed_origin"),
        },
        "required": [
            {"contract": each.contract.name, **members(each.contract, "version"), **members(each, "extent")}
            for each in requirements
        ],
        **json_of(decision),
    }


def print_decision(
    console: PlainConsole, decision: GateDecision, evidence: Run, requirements: Sequence[Requirement], *, path: Path
) -> None:
    """The answer with its reasons, what was required, and of which run."""
    console.print(
        f"CAN_PROCEED = {decision.can_proceed}", style="bold green" if decision.can_proceed == "YES" else "bold red"
    )
    for reason in decision.reasons:
        code = in_style(reason.code.value, _COLOUR.get(reason.exit, "yellow"))
        console.print("  ", code, f": {reason.text}", sep="")
    for note in decision.notes:
        console.print(f"  note: {note}", style="dim")
    if decision.can_proceed == "YES":
        for text in decision.not_asked:
            console.print(f"  not asked: {text}", style="dim")
    wanted = ", ".join(f"{requirement.name} {requirement.contract.version}" for requirement in requirements)
    console.print(f"required: {wanted}")
    if evidence.header is not None:
        made = evidence.header.adapter.implementation
        whose = "an adapter that never said hello" if made is None else f"{made.name} {made.version} ({made.language})"
        console.print(f"run:      {path} of {instant_text(evidence.header.started)}, {whose}")
        commit = f", commit {evidence.header.adapter.commit}" if evidence.header.adapter.commit else ""
        console.print(f"adapter:  {artefacts_text(evidence.artefacts)}{commit}")
    console.print(f"exit:     {int(decision.exit)}")
