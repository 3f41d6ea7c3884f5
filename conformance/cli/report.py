"""`holdfast report`: what a run found, for people. A projection of the evidence: the adapter is not needed."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from holdfast import DISTRIBUTION
from holdfast.conformance.cases.record import Judgement, Record
from holdfast.conformance.cli.console import ending, out, print_json, stop
from holdfast.conformance.cli.places import put_drawn, unusable_drawn
from holdfast.conformance.cli.verify.transcript import around, twin_text
from holdfast.conformance.gate.decision import GateDecision, Requirement, claimed_in, decide, parse_requirement
from holdfast.conformance.run.baselines import Policy, load_baseline
from holdfast.conformance.run.findings import Finding, Group, absent, encoded_in, finding_of, grouped, readable
from holdfast.conformance.run.plan import PlannedCase, plan_of
from holdfast.conformance.run.summary import verdict_of
from holdfast.conformance.verdict import REPORTED, Exit, Verdict, harm_of
from holdfast.reports import report as pages
from holdfast.reports.earlier import EarlierError
from holdfast.reports.evidence import EvidenceError, Exchange, Run, VerdictLine, read_evidence
from holdfast.reports.plain import cut, plain
from holdfast.specs import Contract, SpecError
from holdfast.specs.cells import cells_of, covered, rows_of
from holdfast.specs.matrix import attack_of, load_matrix
from holdfast.specs.model import Proof
from holdfast.specs.mutants import load_mutants
from holdfast.specs.strictjson import canonical
from holdfast.specs.typed import instant_text

_Evidence = Annotated[Path, typer.Argument(help="evidence of a run, as `holdfast verify` wrote it")]
_Required = Annotated[
    list[str] | None, typer.Option(metavar="C[/ROLE][/core]", help="what must be proven; by default what it claims")
]
# What a page shows: cases of a group with their exchanges, exchanges of a case, characters of a value, lines of a log.
_WHOLE, _CALLS, _LONG, _LOG_LINES = 3, 60, 2000, 12
# A report is also of a run that the gate would call old.
_ANY_AGE = timedelta(days=365_000)


def html(
    run: _Evidence,
    output: Annotated[Path, typer.Option("--output", "-o", help="the file to write")] = Path("report.html"),
    require: _Required = None,
) -> Exit:
    """Write what a run found as one page: decision, findings, what was not tested, clauses, attacks.

    The page is one file and loads nothing. Its exit status says whether it was written, not what it says.
    """
    if problem := unusable_drawn("--output", output):
        stop(Exit.USAGE, problem)
    text = pages.page(_report(run, require or []))
    with ending(Exit.INCOMPLETE, OSError, EarlierError, before="expected to write the page, got: "):
        put_drawn(output, text.encode())
    out().print(f"report: {output}")
    return Exit.OK


def data(
    run: _Evidence,
    require: _Required = None,
) -> Exit:
    """Print the same as JSON (report.schema.json)."""
    print_json(pages.data_of(_report(run, require or [])))
    return Exit.OK


def constraints(run: _Evidence) -> Exit:
    """Print the versions of holdfast and its libraries in a run, as constraints of pip."""
    with ending(Exit.USAGE, EvidenceError):
        header = read_evidence(run).header
    if header is None or not header.kit.libraries:
        stop(Exit.USAGE, f"{run}: expected a header that names libraries, got none; run again with this holdfast")
    python = header.environment.get("python", "unknown")
    pins = sorted(f"{name}=={version}" for name, version in header.kit.libraries.items() if version != "absent")
    out().print_lines([f"# Python {python}", f"{DISTRIBUTION}=={header.kit.version}", *pins])
    return Exit.OK


def _report(path: Path, names: Sequence[str]) -> pages.Report:
    """The report of a run. Ends the command where it cannot be made."""
    with ending(Exit.USAGE, EvidenceError, SpecError):
        return report_of(read_evidence(path), path, names)


def report_of(run: Run, path: Path, names: Sequence[str] = (), *, decision: GateDecision | None = None) -> pages.Report:
    """The report of a run that stands at `path`; the gate decides unless it did. Raises EvidenceError, SpecError."""
    header = run.header
    if header is None:
        raise EvidenceError(f"{path}: expected evidence of `holdfast verify`, got a file without a header; run again")
    required = [parse_requirement(name) for name in names] or claimed_in(header)
    decision = decision or decide(run, required, now=datetime.now(UTC), max_age=_ANY_AGE, path=path)
    return _Made(path, run, required, decision).report()


class _Made:
    """What of a report is made of the same evidence."""

    def __init__(
        self,
        path: Path,
        run: Run,
        required: Sequence[Requirement],
        decision: GateDecision,
    ) -> None:
        assert run.header is not None
        self.path, self.run, self.header, self.required = path, run, run.header, required
        self.decision = decision
        self.contracts = {each.contract.name: each.contract for each in required}
        self.plan = {case.id: case for contract in self.contracts.values() for case in plan_of(contract)}
        self.lines = {line.case: line for line in run.verdicts if line.case in self.plan}
        self.sides = run.sides()
        self.not_claimed = {claim.contract: claim.not_claimed for claim in self.header.adapter.claims}

    def report(self) -> pages.Report:
        header, footer, decision = self.header, self.run.footer, self.decision
        said, counts = header.adapter.implementation, Counter(Verdict(line.verdict) for line in self.lines.values())
        artefacts = self.run.artefacts
        return pages.Report(
            made=datetime.now(UTC),
            can_proceed=decision.can_proceed,
            required=tuple(each.name for each in self.required),
            exit=int(decision.exit),
            reasons=tuple(_safe(f"{each.code.value}: {each.text}") for each in decision.reasons),
            notes=tuple(map(_safe, decision.notes)),
            not_asked=tuple(map(_safe, decision.not_asked)),
            counts={verdict.value: counts[verdict] for verdict in REPORTED if counts[verdict]},
            planned=len(self.plan),
            contracts={pin.contract: f"{pin.version}, {pin.digest}" for pin in header.contracts},
            run={
                "implementation": "" if said is None else _safe(f"{said.name} {said.version} ({said.language})"),
                "command": _safe(shlex.join(header.adapter.command)),
                "adapter": "" if artefacts is None else artefacts.digest or "",
                "commit": _safe(header.adapter.commit or ""),
                "nonce": _safe(header.nonce or ""),
                "seed": _safe(header.seed),
                "started": instant_text(header.started),
                "finished": "" if footer is None else instant_text(footer.finished),
                "kit": f"{header.kit.name} {header.kit.version}",
                "digest_of_the_kit": header.kit.digest,
                "libraries": ", ".join(f"{name} {version}" for name, version in sorted(header.kit.libraries.items())),
            },
            environment={_safe(name): _safe(value) for name, value in header.environment.items()},
            evidence=self.run.digest,
            findings=tuple(map(self._group, grouped(map(self._found, self.lines.values()), self.contracts.values()))),
            untested=tuple(self._untested()),
            clauses=tuple(line for contract in self.contracts.values() for line in self._clauses(contract)),
            matrix=tuple(line for contract in self.contracts.values() for line in self._matrix(contract)),
        )

    def _adapter(self) -> Sequence[str]:
        """The adapter of a case that is run again: the recorded command, which the reader sees before it is started."""
        command = self.header.adapter.command
        return ("--run-recorded-command",) if command[:1] == ("--url",) else ("--", *map(_safe, command))

    def _found(self, line: VerdictLine) -> Finding:
        planned = self.plan[line.case]
        return finding_of(Judgement.of(line), self._judged(line), planned, self.contracts[planned.contract])

    def _judged(self, line: VerdictLine) -> Sequence[Exchange]:
        return self.sides.get(line.case, {}).get(line.side or "", ())

    def _group(self, group: Group) -> pages.Finding:
        first = group.members[0]
        contract = self.contracts[first.planned.contract]
        clause = contract.clauses[first.clause]
        return pages.Finding(
            cause=_safe(group.cause),
            mends="" if group.remedy is None else group.remedy.mends,
            verdict=first.verdict.value,
            contract=contract.name,
            clause=clause.id,
            section=clause.section,
            promise=clause.text,
            harm=harm_of(clause, first.verdict) or clause.harm,
            again=shlex.join(["holdfast", "repro", str(self.path), first.planned.id, *self._adapter()]),
            cases=tuple(self._shown(each, whole=number < _WHOLE) for number, each in enumerate(group.members)),
        )

    def _shown(self, finding: Finding, *, whole: bool) -> pages.Shown:
        line, planned = self.lines[finding.planned.id], finding.planned
        brief = pages.Shown(
            case=planned.id,
            title=planned.title,
            verdict=line.verdict,
            clauses=planned.clauses,
            detail=_safe(finding.detail),
            excused=line.excused and _safe(line.excused),
        )
        if not whole:
            return brief
        contract = self.contracts[planned.contract]
        case = contract.case(planned.id)
        records = [*map(Record.of, self._judged(line))]
        near = around(records, line.n)[-_CALLS:]
        begun = min((each.sent_us for each in near if each.sent_us is not None), default=0)
        silent = line.silence is not None
        return replace(
            brief,
            expected=_safe(finding.expected),
            received=_safe(finding.received),
            twin="" if case is None or case.twin is None else _safe(twin_text(case)),
            calls=tuple(_call(each, contract, begun, judged=each.n == line.n) for each in near),
            left_out=len(records) - len(near),
            log=tuple(self._log({each.worker for each in near})) if silent else (),
        )

    def _log(self, workers: set[int]) -> list[str]:
        texts = [one for log in self.run.logs if log.worker in workers for one in log.text.splitlines() if one.strip()]
        return [_safe(one) for one in texts[-_LOG_LINES:]]

    def _untested(self) -> Iterator[pages.Untested]:
        """What the adapter declares absent, what has no result, and what no run can test."""
        lacking = [
            (self.plan[line.case], line.detail)
            for line in self.lines.values()
            if line.verdict == Verdict.UNSUPPORTED.value
        ]
        for (name, reason), count in absent(lacking, self.not_claimed).items():
            what = f"{name} ({count} cases)" if name else f"{count} cases"
            yield pages.Untested(_safe(what), _safe(f"the adapter declares it absent: {reason}"))
        missing = [case for case in self.plan if case not in self.lines]
        if missing:
            why = self.header.selection.expression
            text = "they have no result" if why is None else f"the run was narrowed to {why!r}"
            yield pages.Untested(f"{len(missing)} of {len(self.plan)} cases", _safe(text))
        for contract in self.contracts.values():
            for clause in contract.clauses.values():
                if clause.proof is Proof.FITNESS:
                    yield pages.Untested(clause.id, "only a proof of a live surface shows it (`holdfast fitness`)")
                elif clause.not_testable is not None:
                    yield pages.Untested(clause.id, clause.not_testable)

    def _clauses(self, contract: Contract) -> Iterator[pages.ClauseLine]:
        bugs, baseline = load_mutants(contract.name), load_baseline(contract)
        cases: dict[str, list[PlannedCase]] = {}
        for each in self.plan.values():
            for name in each.clauses if each.contract == contract.name else ():
                cases.setdefault(name, []).append(each)
        for clause in contract.clauses.values():
            mine = cases.get(clause.id, [])
            found = [self.lines.get(case.id) for case in mine]
            results = [
                (case, Verdict(line.verdict)) for case, line in zip(mine, found, strict=True) if line is not None
            ]
            verdict = verdict_of(clause, contract, results)
            untestable = clause.not_testable is not None
            yield pages.ClauseLine(
                contract=contract.name,
                clause=clause.id,
                level=clause.level.value,
                basis=clause.basis.value,
                section=clause.section,
                text=clause.text,
                proof="not testable" if untestable else clause.proof.value,
                why=clause.not_testable or "",
                verdict=None if verdict is None else verdict.value,
                cases=tuple(
                    pages.CaseLine(case.id, case.title, None if line is None else line.verdict)
                    for case, line in zip(mine, found, strict=True)
                ),
                bugs=tuple(f"{bug.name}: {bug.title}" for bug in bugs.breaking(clause.id)),
                baselines={}
                if baseline is None
                else {policy.value: sum(baseline.conforms(policy, case.id) for case in mine) for policy in Policy},
            )

    def _matrix(self, contract: Contract) -> Iterator[pages.CellLine]:
        matrix = load_matrix(contract.name)
        if matrix is None:
            return
        conforming = {line.case for line in self.lines.values() if line.verdict == Verdict.CONFORMS.value}
        filled = covered(matrix, conforming)
        for operation, row in rows_of(contract, matrix).items():
            cells = cells_of(contract, operation, row, horizon=matrix.horizon)
            left = {**row.excepted(), **row.left()}
            for attack in dict.fromkeys(map(attack_of, cells)):
                mine = [each for each in cells if attack_of(each) is attack]
                yield pages.CellLine(
                    contract=contract.name,
                    operation=operation,
                    attack=attack.value,
                    cells=len(mine),
                    conform=sum((operation, each) in filled for each in mine),
                    left=tuple(f"{each}: {left[each]}" for each in mine if each in left),
                )


def _call(each: Record, contract: Contract, begun: int, *, judged: bool) -> pages.Call:
    request = each.request or {}
    method = contract.methods.get(request.get("method", ""))
    names = encoded_in(method)
    sent = (
        f"{request['method']} {_words(request.get('args', {}), names)}"
        if method is not None
        else _words(request, names)
    )
    event = "" if each.event is None else f"{each.event['kind']} {each.event['detail']}"
    came = event if each.answer is None else _words(each.answer, names)
    begin, end = (None if at is None else at - begun for at in (each.sent_us, each.received_us))
    return pages.Call(each.n, each.worker, _safe(each.action), _safe(sent), _safe(came), judged, begin, end)


def _words(value: object, names: frozenset[str]) -> str:
    """JSON in which members that are bytes stand as text."""

    def told(part: object, name: str = "") -> object:
        if isinstance(part, Mapping):
            return {key: told(each, key) for key, each in part.items()}
        if isinstance(part, list | tuple):
            return [told(each, name) for each in part]
        if isinstance(part, str) and name in names:
            try:
                return readable(part)
            except ValueError:
                return part
        return part

    return canonical(told(value)).decode() if value else ""


def _safe(text: str) -> str:
    return cut(plain(text), _LONG)
