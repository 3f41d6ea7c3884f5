"""The results of a run for other tools: its evidence, in the terms that JUnit and Allure share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from holdfast.conformance.cases.record import Judgement
from holdfast.conformance.run.findings import Finding, Group, encoded_in, finding_of, grouped, texts_in
from holdfast.conformance.run.plan import PlannedCase
from holdfast.conformance.verdict import Exit, FailureMode, Verdict, can_be_excused, exit_of, harm_of
from holdfast.reports.evidence import Exchange, Header, Run, VerdictLine
from holdfast.reports.results import Outcome, Result, Results
from holdfast.specs import Contract
from holdfast.specs.model import Level
from holdfast.specs.strictjson import canonical
from holdfast.specs.typed import written

# A transcript is an attachment for a reader, not evidence; the evidence has all of it.
MAX_TRANSCRIPT = 256 * 1024
MISSING = "missing"

_MEANING = {
    Exit.FAIL_OPEN: "something failed open: accepted, leaked state, or lost what was acknowledged",
    Exit.NON_CONFORMING: "non-conforming, nothing open",
    Exit.INCOMPLETE: "the evidence is incomplete",
    Exit.ADAPTER: "the adapter failed before any case",
    Exit.EXPECTATION: "the file of expected failures is stale, or a claim was dropped",
    Exit.KIT: "the kit's own check failed",
    Exit.USAGE: "usage error: nothing ran",
}


def results_of(
    run: Run, contracts: Sequence[Contract], plan: Sequence[PlannedCase], *, status: Exit, problem: str = ""
) -> Results:
    """The results of a run that ended with `status`. A planned case without a result is an error, unless narrowed."""
    header = run.header
    if header is None:
        status = status if status is not Exit.OK else Exit.INCOMPLETE
        return Results(cases=(), exit=int(status), problem=_problem(status, problem), started=datetime.now(UTC))
    lines = {line.case: line for line in run.verdicts}
    exchanges = run.sides()
    by_name = {contract.name: contract for contract in contracts}
    narrowed = header.selection.expression is not None
    findings = {
        planned.id: finding_of(
            Judgement.of(line),
            exchanges.get(planned.id, {}).get(line.side or "", ()),
            planned,
            by_name[planned.contract],
        )
        for planned in plan
        if (line := lines.get(planned.id)) is not None
    }
    groups = {each.planned.id: group for group in grouped(findings.values(), contracts) for each in group.members}
    not_claimed = {claim.contract: claim.not_claimed for claim in header.adapter.claims}
    cases = [
        result_of(
            planned,
            lines.get(planned.id),
            by_name[planned.contract],
            exchanges.get(planned.id, {}),
            begun=header.started,
            not_claimed=not_claimed.get(planned.contract, ()),
            finding=findings.get(planned.id),
            group=groups.get(planned.id),
        )
        for planned in plan
        if planned.id in lines or not narrowed
    ]
    return with_cases(run, header, cases, status=status, problem=problem)


def with_cases(run: Run, header: Header, cases: Sequence[Result], *, status: Exit, problem: str = "") -> Results:
    """The results of a run that ended with `status`, with these of its cases."""
    finished = header.started if run.footer is None else run.footer.finished
    return Results(
        cases=tuple(cases),
        exit=int(status),
        problem=_problem(status, problem),
        started=header.started,
        seconds=max((finished - header.started).total_seconds(), 0.0),
        properties=_properties(header, run),
        contracts={
            pin.contract: {"version": pin.version, "digest": pin.digest, "cases_digest": pin.cases_digest}
            for pin in header.contracts
        },
    )


def _problem(status: Exit, problem: str) -> str:
    return "" if status is Exit.OK else ": ".join(filter(None, (f"exit {int(status)}", _MEANING[status], problem)))


def _properties(header: Header, run: Run) -> Mapping[str, str]:
    said = header.adapter.implementation
    return {
        "kit": f"{header.kit.name} {header.kit.version}",
        "kit_digest": header.kit.digest,
        "implementation": "" if said is None else f"{said.name} {said.version} ({said.language})",
        "seed": header.seed,
        "narrowed": header.selection.expression or "",
        "evidence_digest": run.digest,
    }


def result_of(
    planned: PlannedCase,
    line: VerdictLine | None,
    contract: Contract,
    sides: Mapping[str, Sequence[Exchange]],
    *,
    begun: datetime,
    not_claimed: Collection[str],
    finding: Finding | None,
    group: Group | None,
) -> Result:
    """The result of one case, of a run that was begun at that time."""
    clauses = [contract.clauses[name] for name in planned.clauses]
    binds = any(clause.level is Level.MUST for clause in clauses)
    verdict = Verdict.NOT_REACHED if line is None else Verdict(line.verdict)
    about = "\n".join(
        f"{clause.id} ({clause.level.value}): {clause.text}\nharm: {harm_of(clause, verdict) or clause.harm}"
        for clause in clauses
    )
    missing = replace(
        missing_of(planned.id, planned.contract, planned.clauses, planned.title),
        severity="critical" if binds else "minor",
        about=about,
        text=about,
    )
    if line is None or finding is None:
        return missing
    cause = "" if group is None else group.heading
    explained = [
        f"{name}: {text}"
        for name, text in (
            ("cause", cause),
            ("detail", finding.detail),
            ("expected", finding.expected),
            ("received", finding.received),
            ("judged", Judgement.of(line).place),
            ("advice", line.advice),
            ("failure mode", line.silence or ""),
            ("excused", line.excused or ""),
        )
        if text
    ]
    sent = [each.sent_us for each in (*sides.get("main", ()), *sides.get("twin", ())) if each.sent_us is not None]
    roles = contract.roles_of(planned.clauses, planned.roles)
    return replace(
        missing,
        outcome=outcome_of(verdict, line, binds=binds and roles.isdisjoint(not_claimed)),
        verdict=line.verdict,
        message=" ".join(finding.detail.split()),
        cause=cause,
        text="\n".join([f"{line.verdict}: {planned.title}", about, *explained]),
        excused=line.excused,
        transcript="" if verdict is Verdict.CONFORMS else transcript(sides, Judgement.of(line), contract),
        started=begun + timedelta(microseconds=min(sent)) if sent else None,
        seconds=line.seconds,
    )


def missing_of(case: str, contract: str, clauses: tuple[str, ...], title: str) -> Result:
    """A planned case without a result."""
    return Result(
        case=case,
        contract=contract,
        clauses=clauses,
        title=title,
        outcome=Outcome.ERROR,
        verdict=MISSING,
        severity="critical",
        message="the case was planned and has no result",
    )


def outcome_of(verdict: Verdict, line: VerdictLine, *, binds: bool) -> Outcome:
    """How other tools show a verdict."""
    if verdict is Verdict.CONFORMS:
        return Outcome.PASSED
    if (verdict is Verdict.UNSUPPORTED and not binds) or (line.excused is not None and can_be_excused(verdict)):
        return Outcome.SKIPPED
    # A missing result is no failure of the implementation, either.
    if exit_of(verdict) in {Exit.INCOMPLETE, Exit.KIT} or line.silence == FailureMode.MISSING.value:
        return Outcome.ERROR
    return Outcome.FAILED


def transcript(sides: Mapping[str, Sequence[Exchange]], judged: Judgement, contract: Contract) -> str:
    """The exchanges of the failed side, or of both where none failed; the judged one has the member `judged`.

    Bytes stand in the member `text` as text. A transcript that is too long is cut at its beginning if that keeps the
    judged exchange.
    """
    side = None if judged.side is None else judged.side.value
    shown = [each for name, found in sides.items() for each in found if side in (None, name)]
    lines: list[str] = []
    until = 0
    for each in shown:
        members = {name: value for name, value in written(each).items() if name not in ("type", "case")}
        is_judged = each.n == judged.n
        method = contract.methods.get((each.request or {}).get("method", ""))
        texts = texts_in([each.request, each.answer], encoded_in(method))
        members |= {"text": [f"{name}: {text}" for name, text in texts]} if texts else {}
        lines.append(canonical({**members, **({"judged": True} if is_judged else {})}).decode())
        until = len("\n".join(lines)) if is_judged else until
    text = "\n".join(lines)
    if len(text) <= MAX_TRANSCRIPT:
        return text
    cut = "… cut; the evidence has all of it"
    if until <= MAX_TRANSCRIPT:
        return f"{text[:MAX_TRANSCRIPT]}\n{cut}"
    return f"{cut}\n{text[until - MAX_TRANSCRIPT : until]}"
