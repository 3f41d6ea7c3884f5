"""What the gate asks of the cases of one required contract, and the second judgement of each from its exchanges."""

from __future__ import annotations

import gc
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from multiprocessing import get_context
from typing import Any

from holdfast.conformance.attacks.bench import Bench, Limits
from holdfast.conformance.cases.expect import broken
from holdfast.conformance.cases.record import Judgement, NonConformance, Record, Side
from holdfast.conformance.cases.report import ReportError
from holdfast.conformance.durability import verdicts
from holdfast.conformance.durability.verdicts import ABILITY, ABLE, failure_in, is_recorded, judged, not_tested
from holdfast.conformance.durability.workload import scopes_of, seed_of
from holdfast.conformance.gate.model import (
    Expected,
    Extent,
    Findings,
    GateReason,
    ReasonCode,
    Requirement,
    held,
    some_of,
)
from holdfast.conformance.run.judge import Recorded, foreign, judge_case
from holdfast.conformance.run.plan import PlannedCase, plan_of, suite_case_id, suite_tests, uncovered
from holdfast.conformance.steps import kinds
from holdfast.conformance.verdict import EVENT_KINDS, REPORTED, Exit, FailureMode, Verdict, can_be_excused, exit_of
from holdfast.reports.evidence import Exchange, Header, Run, VerdictLine
from holdfast.servers.processors import processors
from holdfast.specs import Contract
from holdfast.specs.cells import coverage
from holdfast.specs.faults import FaultCase
from holdfast.specs.matrix import load_matrix
from holdfast.specs.model import Level, Proof
from holdfast.specs.schema import explain, published_validator

# Judging again: no verdict line is believed alone, the exchanges beside it must show it. Each case is judged by the
# function that judged it in the run. docs/evidence.md lists what the gate believes all the same. A long run
# is judged by as many processes as there are processors; the reasons and their order are the same. Pure.

# What the exchanges of a suite test prove about its verdict. It depends on the seed, the answers and the observations
# of the harness. The evidence has all of them, so the gate runs the test again, at a bench where the records replace
# the adapter. A test that is marked `drawn` cannot run again. Of it the gate checks only that the run met an adapter: a
# session was opened fresh and closed in order, and its answers fit the contract. Pure.

# More workers than any suite test asks for: the records show how many the adapter allowed.
_WORKERS = 1000


def judge_suite(
    contract: Contract,
    planned: PlannedCase,
    records: Sequence[Record],
    *,
    seed: str,
    not_claimed: Mapping[str, str],
    thorough: float = 1.0,
) -> Judgement:
    """The judgement of a suite test from its records; not of one that `is_randomised`.

    KIT_FAULT when the records are not those of this test and seed; NO_VERDICT (missing) when they end too early.
    """
    tests = {suite_case_id(contract.name, function.__name__): function for function, _ in suite_tests(contract.name)}
    recorded = Recorded(records, Side.MAIN)
    bench = Bench(
        contract=contract,
        case=planned.id,
        seed=seed,
        make_driver=lambda _: recorded,
        not_claimed=not_claimed,
        limits=Limits(_WORKERS, None),
        thorough=thorough,
    )
    try:
        tests[planned.id](bench)
        judgement = bench.conclude()
    except NonConformance as finding:
        judgement = finding.judgement
    judgement = bench.gravest(judgement).placed(Side.MAIN, None)
    left = recorded.left()
    if left is not None and judgement.verdict is not Verdict.KIT_FAULT:
        return foreign(Side.MAIN, left, "the test had ended before it")
    return judgement


def is_randomised(contract: Contract, planned: PlannedCase) -> bool:
    """Whether it is a suite test that may ask something else the second time."""
    marks = {suite_case_id(contract.name, function.__name__): mark for function, mark in suite_tests(contract.name)}
    return planned.id in marks and marks[planned.id].drawn


def inconclusive_suite(contract: Contract, records: Sequence[Record], not_claimed: Mapping[str, str]) -> str | None:
    """Why these records cannot belong to a suite test that conforms; None if they can."""
    opened: set[int] = set()
    awaited: defaultdict[int, deque[Mapping[str, Any]]] = defaultdict(deque)
    sessions = calls = 0
    for record in records:
        request, answer = record.request, record.answer
        if record.event is not None and record.event.get("kind") in EVENT_KINDS:
            return f"record {record.n} is a silence, which ends a test"
        unreadable = _unreadable(record)
        if unreadable is not None:
            return f"record {record.n} tells nothing: {unreadable}"
        if request is None and answer is not None:
            if not awaited[record.worker]:
                return f"record {record.n} answers worker {record.worker}, which was asked nothing"
            request = awaited[record.worker].popleft()
        elif request is not None and answer is None and record.event is None:
            awaited[record.worker].append(request)
        if request is None or answer is None:
            continue
        if request.get("op") == "open":
            # An answer that a worker owed before it was killed is not awaited any longer.
            awaited[record.worker].clear()
        problem = explain(published_validator("protocol-answer"), {**answer, "id": "0"})
        if problem is not None:
            return f"the answer in record {record.n} does not fit the protocol: {problem}"
        if request.get("op") == "call":
            calls += 1
            problem = _broken(contract, request, answer, not_claimed)
            if problem is not None:
                return f"the answer in record {record.n} does not fit the contract: {problem}"
        elif answer.get("outcome") == "ok":
            sessions += _ends(request, record.worker, opened)
    if not sessions or not calls:
        return f"they hold {sessions} sessions that were opened fresh and closed, and {calls} answered calls"
    return None


def _unreadable(record: Record) -> str | None:
    """Why a record does not show what the harness observed; None if it does, or holds something else."""
    kind = kinds().get(record.action.partition(" ")[0])
    if kind is None or kind.report is None or record.request is not None or record.answer is not None:
        return None
    event = record.event or {}
    if event.get("kind") != "done":
        return f"an event of kind {event.get('kind')!r} ends a test"
    try:
        kind.report.read(event.get("detail"))
    except ReportError as error:
        return str(error)
    return None


def _ends(request: Mapping[str, Any], worker: int, opened: set[int]) -> int:
    """Note an open or close that succeeded; 1 where a session that began fresh ends."""
    if request.get("op") == "open" and request.get("state") == "fresh":
        opened.add(worker)
    elif request.get("op") == "close" and worker in opened:
        opened.discard(worker)
        return 1
    return 0


def _broken(
    contract: Contract, request: Mapping[str, Any], answer: Mapping[str, Any], not_claimed: Mapping[str, str]
) -> str | None:
    method = contract.methods.get(str(request.get("method")))
    return "no such method" if method is None else broken(method, answer, not_claimed)


# Faults: judged again from the report of their layer, by the function that judged them in the run. Pure.

# A fault has two sessions: one makes the store and one inspects it. A fault that is judged from recordings has a third,
# which is recorded without a fault.
_SESSIONS = 2


def _report_of(fault: FaultCase, records: Sequence[Record]) -> tuple[Record | None, str]:
    """The record with the report of the layer; or why these records have none."""
    reports = [record for record in records if record.action == fault.layer.value and record.event is not None]
    if len(reports) != 1 or (reports[0].event or {}).get("kind") != "done":
        return None, f"they hold {len(reports)} reports of the layer {fault.layer.value}, and one that is done is due"
    return reports[0], ""


def inconclusive_fault(fault: FaultCase, records: Sequence[Record]) -> str | None:
    """Why these records cannot show a fault that struck and was survived; None if they can."""
    report, why = _report_of(fault, records)
    if report is None:
        return why
    asked = sum((record.request or {}).get("op") == "open" for record in records)
    due = _SESSIONS + is_recorded(fault.layer)
    if asked < due:
        return f"they hold {asked} sessions, and {due} are due: to make the store, to look at it, to record it"
    return None


def judge_fault(
    contract: Contract, fault: FaultCase, records: Sequence[Record], *, seed: str, environment: Mapping[str, str]
) -> Judgement:
    """The judgement of a fault from its records. KIT_FAULT where the records do not belong to it."""
    report, why = _report_of(fault, records)
    if report is None:
        # Where the workload could not be prepared, the records show the failure of the adapter.
        failure = failure_in(records) or Judgement(Verdict.NO_VERDICT, FailureMode.MISSING, why)
        return failure if failure.n is None else failure.placed(Side.MAIN, None)
    try:
        layer = verdicts.read((report.event or {}).get("detail"))
        seed_due = int(seed_of(scopes_of(contract.work_of(fault), contract=contract.name, seed=seed)), 16)
        if layer.seed != seed_due:
            raise verdicts.ReportError(f"its seed is {layer.seed}, and the run's seed makes it {seed_due}")
        judgement = judged(fault, layer).placed(Side.MAIN, report.n)
    except verdicts.ReportError as error:
        return Judgement(Verdict.KIT_FAULT, detail=f"the report of the layer {fault.layer.value}: {error}")
    able = environment.get(ABILITY, "nothing of it")
    if judgement.verdict is Verdict.CONFORMS and is_recorded(fault.layer) and not able.startswith(ABLE):
        return not_tested(fault, f"the header says of {ABILITY}: {able}")
    return judgement


# The exchanges of a run by case and by side.
Sides = Mapping[str, Mapping[str, tuple[Exchange, ...]]]


# With fewer exchanges one process is done before others have started.
_MANY = 2_000


@dataclass(frozen=True, slots=True)
class _Judge:
    """What stands around the results of one contract."""

    requirement: Requirement
    header: Header
    sides: Sides
    not_claimed: Mapping[str, str]

    def __call__(self, planned: PlannedCase, line: VerdictLine) -> tuple[GateReason, ...]:
        """The reasons that one result gives."""
        found = self.sides.get(planned.id, {})
        if Verdict(line.verdict) is Verdict.KIT_FAULT:
            return ()
        reasons: list[GateReason] = []
        if not planned.scripted:
            reasons += _inconclusive(self.requirement, planned, line, found, not_claimed=self.not_claimed)
        again = self._again(planned, line, found)
        reasons += _disputed(planned, line, again, found)
        reasons += _embellished(planned, line, again)
        return tuple(reasons)

    def _again(self, planned: PlannedCase, line: VerdictLine, found: Mapping[str, Sequence[Exchange]]) -> Judgement:
        contract, header, not_claimed = self.requirement.contract, self.header, self.not_claimed
        case, fault = contract.case(planned.id), contract.fault(planned.id)
        if planned.scripted and case is None:
            return Judgement(Verdict.KIT_FAULT, detail="the installed contract has no script for it")
        main, twin = (tuple(map(Record.of, found.get(side, ()))) for side in ("main", "twin"))
        try:
            if case is not None:
                return judge_case(contract, case, main, twin, seed=header.seed, not_claimed=not_claimed)
            if fault is not None:
                return judge_fault(contract, fault, main, seed=header.seed, environment=header.environment)
            if is_randomised(contract, planned):
                return _recorded(line)
            return judge_suite(
                contract, planned, main, seed=header.seed, not_claimed=not_claimed, thorough=header.thorough
            )
        except Exception as error:
            # The judge was written for the answers of an adapter. A changed file may hold anything; it must not open.
            return Judgement(Verdict.KIT_FAULT, detail=f"they cannot be judged ({type(error).__name__}: {error})")


def judged_again(
    requirement: Requirement, results: Sequence[tuple[PlannedCase, VerdictLine]], header: Header, sides: Sides
) -> Iterator[GateReason]:
    """A verdict line is never believed alone: the exchanges must show it."""
    claims = header.adapter.claims
    said = next((c.not_claimed for c in claims if c.contract == requirement.contract.name), {})
    not_claimed = requirement.contract.lacks(said)
    judge = _Judge(requirement, header, sides, not_claimed)
    exchanges = sum(len(side) for case, _ in results for side in sides.get(case.id, {}).values())
    processes = min(processors(), exchanges // _MANY)
    if processes < 2:
        for planned, line in results:
            yield from judge(planned, line)
        return
    # A forked process has the run already. If one dies, this raises, and the gate stays closed.
    with ProcessPoolExecutor(processes, get_context("fork"), _keep, (judge,)) as pool:
        for reasons in pool.map(_kept, *zip(*results, strict=True)):
            yield from reasons


_judges: list[_Judge] = []


def _keep(judge: _Judge) -> None:
    # The run is no garbage: it need not be searched for any.
    gc.freeze()
    _judges.append(judge)


def _kept(planned: PlannedCase, line: VerdictLine) -> tuple[GateReason, ...]:
    return _judges[-1](planned, line)


def _embellished(planned: PlannedCase, line: VerdictLine, again: Judgement) -> Iterator[GateReason]:
    """A conforming line has no other member: no excuse, and no text but why it ended early or does not apply."""
    if Verdict(line.verdict) is not Verdict.CONFORMS:
        return
    said = [line.silence, line.expected, line.received, line.advice, line.excused]
    if not again.detail:
        said.append(line.detail)
    if any(said):
        text = f"{planned.id}: recorded is conforms, and beside it stand words or an excuse that no such case has"
        yield held(ReasonCode.JUDGED_OTHERWISE, f"{text}; run again", (planned.id,))


def _disputed(
    planned: PlannedCase, line: VerdictLine, again: Judgement, sides: Mapping[str, tuple[Exchange, ...]]
) -> Iterator[GateReason]:
    """The exchanges give another verdict than the recorded one, or a verdict on another exchange."""
    recorded = _recorded(line)
    if _agree(recorded, again):
        if _is_misplaced(recorded, sides):
            text = f"{planned.id}: recorded is {line.verdict}, {recorded.place}, where it cannot be; run again"
            yield held(ReasonCode.JUDGED_OTHERWISE, text, (planned.id,))
        return
    was, found = (
        each.verdict.value if each.n is None else f"{each.verdict.value} ({each.place})" for each in (recorded, again)
    )
    shown = "do not fit the case" if again.verdict is Verdict.KIT_FAULT else f"show {found}"
    text = f"{planned.id}: recorded is {was}, its exchanges {shown}: {again.detail}"
    # Exchanges that do not fit are damage to the evidence, not a fault of the kit.
    status = exit_of(again.verdict) if again.verdict.is_open else Exit.INCOMPLETE
    yield GateReason(ReasonCode.JUDGED_OTHERWISE, f"{text}; run again", status, (planned.id,))


def _inconclusive(
    requirement: Requirement,
    planned: PlannedCase,
    line: VerdictLine,
    sides: Mapping[str, tuple[Exchange, ...]],
    *,
    not_claimed: Mapping[str, str],
) -> Iterator[GateReason]:
    """A conforming suite test or fault is believed only beside a session, no matter what else the exchanges show."""
    if Verdict(line.verdict) is not Verdict.CONFORMS:
        return
    records = tuple(map(Record.of, sides.get("main", ())))
    try:
        fault = requirement.contract.fault(planned.id)
        why = inconclusive_suite(requirement.contract, records, not_claimed)
        if why is None and fault is not None:
            why = inconclusive_fault(fault, records)
    except Exception as error:
        why = f"they cannot be read ({type(error).__name__}: {error})"
    if why is not None:
        text = f"{planned.id}: recorded is conforms, its exchanges cannot show that: {why}; run again"
        yield held(ReasonCode.JUDGED_OTHERWISE, text, (planned.id,))


def _recorded(line: VerdictLine) -> Judgement:
    """The members of a verdict line that are compared."""
    return Judgement(
        Verdict(line.verdict),
        None if line.silence is None else FailureMode(line.silence),
        side=None if line.side is None else Side(line.side),
        n=line.n,
    )


def _is_misplaced(recorded: Judgement, sides: Mapping[str, tuple[Exchange, ...]]) -> bool:
    """Whether a verdict names an exchange that is not there, or any exchange although it conforms."""
    if recorded.side is None or recorded.verdict is Verdict.CONFORMS:
        return recorded.side is not None or recorded.n is not None
    return recorded.n is not None and recorded.n >= len(sides.get(recorded.side.value, ()))


def _agree(recorded: Judgement, again: Judgement) -> bool:
    if again.verdict is recorded.verdict:
        return (again.silence, again.side, again.n) == (recorded.silence, recorded.side, recorded.n)
    # The run may know better why there is no proof (too few workers, a volatile disk); it holds the gate anyway.
    incomplete = again.verdict.is_incomplete or again.verdict is Verdict.CONFORMS
    return recorded.verdict.is_incomplete and incomplete


def of_cases(run: Run, header: Header | None, requirement: Requirement, sides: Sides, expected: Expected) -> Findings:
    """Every reason that the cases of the required contract give. `sides` are the exchanges of the run.

    A case that the requirement leaves out may be missing or unproven. A fail-open result of it still holds the gate.
    """
    plan = plan_of(requirement.contract)
    left_out = tuple(case.id for case in plan if requirement.leaves_out(case))
    lines: dict[str, VerdictLine] = {}
    for line in run.verdicts:
        lines.setdefault(line.case, line)
    needed = [case for case in plan if case.id not in left_out]
    with_result = [(case, lines[case.id]) for case in plan if case.id in lines]
    reasons = [
        *_results(requirement, needed, lines),
        *_by_verdict(requirement, with_result, frozenset(left_out), expected),
        *(() if header is None else judged_again(requirement, with_result, header, sides)),
        *_clauses(requirement, plan),
    ]
    beside = Counter(Verdict(line.verdict) for case, line in with_result if case.id in left_out)
    notes = [*_notes(requirement, with_result, plan, expected), *_left_out(requirement, plan, left_out, beside)]
    notes += [*_tried(requirement, sides), *_matrix(requirement, with_result)]
    return Findings(tuple(reasons), tuple(notes), left_out)


def _results(
    requirement: Requirement, needed: Sequence[PlannedCase], lines: Mapping[str, VerdictLine]
) -> Iterator[GateReason]:
    name = requirement.name
    if not any(case.id in lines for case in needed):
        text = f"{name}: not one of {len(needed)} cases has a result; nothing is proven"
        yield held(ReasonCode.ZERO_CASES, text)
        return
    missing = tuple(case.id for case in needed if case.id not in lines)
    if missing:
        text = f"{name}: {len(missing)} of {len(needed)} cases have no result ({some_of(missing)}); run again"
        yield held(ReasonCode.MISSING_RESULTS, text, missing)
    other = tuple(case.id for case in needed if case.id in lines and lines[case.id].clauses != case.clauses)
    if other:
        text = f"{name}: results name other clauses than the plan ({some_of(other)}); run again"
        yield held(ReasonCode.OTHER_PLAN, text, other)


def _by_verdict(
    requirement: Requirement,
    results: Sequence[tuple[PlannedCase, VerdictLine]],
    left_out: frozenset[str],
    expected: Expected,
) -> Iterator[GateReason]:
    """One reason for each recorded verdict that holds, the gravest first."""
    groups: defaultdict[tuple[Verdict, bool], list[str]] = defaultdict(list)
    for case, line in results:
        verdict = Verdict(line.verdict)
        # What may be unproven may not be wrong.
        counts = case.id not in left_out or not (verdict.is_incomplete or requirement.is_of_others(case))
        if not _is_tolerated(requirement, case, line, expected) and (verdict.is_open or counts):
            groups[verdict, line.excused is not None].append(case.id)
    yield from by_verdict(requirement, groups)


def by_verdict(requirement: Requirement, groups: Mapping[tuple[Verdict, bool], Sequence[str]]) -> Iterator[GateReason]:
    """The reasons of cases by their verdict, and by whether they are excused."""
    for verdict in Verdict:
        for excused in (False, True):
            found = groups.get((verdict, excused), [])
            if found and verdict is not Verdict.CONFORMS:
                yield _held(requirement, verdict, tuple(found), "excused" if excused else "")


def _held(requirement: Requirement, verdict: Verdict, cases: tuple[str, ...], excuse: str) -> GateReason:
    status = exit_of(verdict)
    code = {
        Exit.KIT: ReasonCode.KIT_FAULT,
        Exit.FAIL_OPEN: ReasonCode.EXCUSED_FAIL_OPEN if excuse else ReasonCode.FAIL_OPEN,
        Exit.INCOMPLETE: ReasonCode.NOT_PROVEN,
    }.get(status, ReasonCode.EXCUSED if excuse else ReasonCode.NON_CONFORMING)
    what = " ".join(filter(None, (excuse, verdict.value)))
    never = "" if not excuse else "; an excuse never opens the gate for it"
    if code is ReasonCode.EXCUSED:
        never = "; it is a MUST, which an excuse opens the gate for only with --allow-excused"
    number = "1 case is" if len(cases) == 1 else f"{len(cases)} cases are"
    return GateReason(code, f"{requirement.name}: {number} {what} ({some_of(cases)}){never}", status, cases)


def _is_tolerated(requirement: Requirement, case: PlannedCase, line: VerdictLine, expected: Expected) -> bool:
    """Notes only: a SHOULD that is excused or not supported, and an excused MUST if the caller allows it.

    A case that failed open cannot be excused.
    """
    verdict = Verdict(line.verdict)
    if can_be_excused(verdict):
        return line.excused is not None and (expected.allow_excused or not _binds(requirement, case))
    return verdict is Verdict.UNSUPPORTED and not _binds(requirement, case)


def _binds(requirement: Requirement, case: PlannedCase) -> bool:
    clauses = requirement.contract.clauses
    return any(clause not in clauses or clauses[clause].level is Level.MUST for clause in case.clauses)


def _clauses(requirement: Requirement, plan: Sequence[PlannedCase]) -> Iterator[GateReason]:
    clauses = requirement.contract.clauses
    bare = tuple(name for name in uncovered(requirement.contract, plan) if clauses[name].level is Level.MUST)
    if bare:
        text = f"{requirement.name}: {len(bare)} clauses have no case in this version of the kit ({some_of(bare)})"
        yield held(ReasonCode.CLAUSES_UNCOVERED, f"{text}; nothing proves them")


def _notes(
    requirement: Requirement,
    results: Sequence[tuple[PlannedCase, VerdictLine]],
    plan: Sequence[PlannedCase],
    expected: Expected,
) -> Iterator[str]:
    for case, line in results:
        if _is_tolerated(requirement, case, line, expected):
            why = f"excused by {line.excused}" if line.excused else "only a SHOULD"
            yield f"{case.id} is {line.verdict}, {why}"
    covered = {clause for case in plan for clause in case.clauses}
    untestable = [
        clause.id
        for clause in requirement.contract.clauses.values()
        if clause.not_testable is not None and clause.proof is Proof.RUN and clause.id not in covered
    ]
    if untestable:
        number = len(untestable)
        yield f"{requirement.name}: {number} clauses cannot be tested, so nothing proves them ({some_of(untestable)})"


def _tried(requirement: Requirement, sides: Sides) -> Iterator[str]:
    tried = total = 0
    for case in requirement.contract.faults:
        for exchange in chain.from_iterable(sides.get(case.id, {}).values()):
            with suppress(verdicts.ReportError):
                layer = verdicts.read(None if exchange.event is None else exchange.event.detail)
                tried, total = tried + layer.tried, total + layer.total
    if total:
        yield f"{requirement.name}: faults: {tried} of {total} points, states and variants were tried"


def _matrix(requirement: Requirement, results: Sequence[tuple[PlannedCase, VerdictLine]]) -> Iterator[str]:
    matrix = load_matrix(requirement.contract.name)
    if matrix is not None:
        conforming = {case.id for case, line in results if line.verdict == Verdict.CONFORMS.value}
        yield coverage(requirement.contract, matrix, conforming)


def _left_out(
    requirement: Requirement, plan: Sequence[PlannedCase], left_out: Sequence[str], beside: Mapping[Verdict, int]
) -> Iterator[str]:
    if requirement.roles is not None or requirement.extent is Extent.CORE:
        provoked = " or need provocations" if any(case.provocations for case in plan) else ""
        why = "need provocations" if requirement.roles is None else f"are of other roles{provoked}"
        found = [f"{beside[each]} {each.value}" for each in REPORTED if each in beside and each is not Verdict.CONFORMS]
        shown = f"; of them {', '.join(found)}" if found else ""
        yield f"{requirement.name}: {len(left_out)} cases {why} and are left out{shown}"


def fitness_clauses(requirement: Requirement) -> tuple[str, ...]:
    """The MUST clauses that only a live surface can prove."""
    return tuple(
        clause.id
        for clause in requirement.contract.clauses.values()
        if clause.proof is Proof.FITNESS and clause.level is Level.MUST
    )
