"""Judging again: no verdict line is believed alone, the exchanges beside it must show it. Pure.

A scripted case is judged by `conformance.cases.judge`, a suite test by `gate.suites`, a fault by `gate.faults`: each by
the function that judged it in the run. `reports.evidence.believed` lists what the gate believes all the same.

A long run is judged by as many processes as there are processors; the reasons and their order are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from holdfast.conformance.cases.judge import judge_case
from holdfast.conformance.cases.record import Judgement, Record, Side
from holdfast.conformance.gate.faults import inconclusive_fault, judge_fault
from holdfast.conformance.gate.model import GateReason, ReasonCode, Requirement
from holdfast.conformance.gate.suites import inconclusive_suite, is_randomised, judge_suite
from holdfast.conformance.run.plan import PlannedCase
from holdfast.conformance.verdict import Exit, Silence, Verdict, exit_of
from holdfast.reports.evidence import Exchange, Header, VerdictLine
from holdfast.servers.processors import processors

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
        contract, found = self.requirement.contract, self.sides.get(planned.id, {})
        if Verdict(line.verdict) is Verdict.KIT_FAULT:
            return ()
        reasons: list[GateReason] = []
        if not planned.scripted:
            reasons += _inconclusive(self.requirement, planned, line, found, not_claimed=self.not_claimed)
        fault = contract.fault(planned.id)
        if fault is not None:
            records = tuple(map(Record.of, found.get("main", ())))
            again = judge_fault(contract, fault, records, seed=self.header.seed, environment=self.header.environment)
        elif is_randomised(contract, planned):
            again = _recorded(line)
        else:
            again = _judge(self.requirement, planned, found, self.header, self.not_claimed)
        reasons += _disputed(planned, line, again, found)
        reasons += _embellished(planned, line, again)
        return tuple(reasons)


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
        yield GateReason(ReasonCode.JUDGED_OTHERWISE, f"{text}; run again", Exit.INCOMPLETE, (planned.id,))


def _disputed(
    planned: PlannedCase, line: VerdictLine, again: Judgement, sides: Mapping[str, tuple[Exchange, ...]]
) -> Iterator[GateReason]:
    """The exchanges give another verdict than the recorded one, or a verdict on another exchange."""
    recorded = _recorded(line)
    if _agree(recorded, again):
        if _is_misplaced(recorded, sides):
            text = f"{planned.id}: recorded is {line.verdict}, {recorded.place}, where it cannot be; run again"
            yield GateReason(ReasonCode.JUDGED_OTHERWISE, text, Exit.INCOMPLETE, (planned.id,))
        return
    same = (recorded.verdict, recorded.silence) == (again.verdict, again.silence)
    was, found = (f"{each.verdict.value} ({each.place})" if same else each.verdict.value for each in (recorded, again))
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
        yield GateReason(ReasonCode.JUDGED_OTHERWISE, text, Exit.INCOMPLETE, (planned.id,))


def _recorded(line: VerdictLine) -> Judgement:
    """The members of a verdict line that are compared."""
    return Judgement(
        Verdict(line.verdict),
        None if line.silence is None else Silence(line.silence),
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


def _judge(
    requirement: Requirement,
    planned: PlannedCase,
    sides: Mapping[str, tuple[Exchange, ...]],
    header: Header,
    not_claimed: Mapping[str, str],
) -> Judgement:
    contract, seed = requirement.contract, header.seed
    case = contract.case(planned.id)
    if planned.scripted and case is None:
        return Judgement(Verdict.KIT_FAULT, detail="the installed contract has no script for it")
    main, twin = (tuple(map(Record.of, sides.get(side, ()))) for side in ("main", "twin"))
    try:
        if case is None:
            thorough = header.thorough
            return judge_suite(contract, planned, main, seed=seed, not_claimed=not_claimed, thorough=thorough)
        return judge_case(contract, case, main, twin, seed=seed, not_claimed=not_claimed)
    except Exception as error:
        # The judge was written for the answers of an adapter. A changed file may hold anything; it must not open.
        return Judgement(Verdict.KIT_FAULT, detail=f"they cannot be judged ({type(error).__name__}: {error})")
