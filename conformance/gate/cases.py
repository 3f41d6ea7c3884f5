"""What the gate asks of the cases of one required contract: each has a result, and no result holds the gate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.conformance.gate.again import Sides, judged_again
from holdfast.conformance.gate.faults import tried_of
from holdfast.conformance.gate.model import Expected, Extent, GateReason, ReasonCode, Requirement, some_of
from holdfast.conformance.matrix.count import counted
from holdfast.conformance.run.plan import PlannedCase, plan_of, uncovered
from holdfast.conformance.verdict import Exit, Verdict, can_be_excused, exit_of
from holdfast.reports.evidence import Header, Run, VerdictLine
from holdfast.specs.model import Level, Proof


@dataclass(frozen=True, slots=True)
class CaseFindings:
    """The outcome of the cases of one contract."""

    reasons: tuple[GateReason, ...]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]


def of_cases(
    run: Run, header: Header | None, requirement: Requirement, sides: Sides, expected: Expected
) -> CaseFindings:
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
    notes = [*_notes(requirement, with_result, plan, expected), *_left_out(requirement, plan, left_out)]
    notes += [*_tried(requirement, sides), *_matrix(requirement, with_result, sides)]
    return CaseFindings(tuple(reasons), tuple(notes), left_out)


def _results(
    requirement: Requirement, needed: Sequence[PlannedCase], lines: Mapping[str, VerdictLine]
) -> Iterator[GateReason]:
    name = requirement.name
    if not any(case.id in lines for case in needed):
        text = f"{name}: not one of {len(needed)} cases has a result; nothing is proven"
        yield GateReason(ReasonCode.ZERO_CASES, text, Exit.INCOMPLETE)
        return
    missing = tuple(case.id for case in needed if case.id not in lines)
    if missing:
        text = f"{name}: {len(missing)} of {len(needed)} cases have no result ({some_of(missing)}); run again"
        yield GateReason(ReasonCode.MISSING_RESULTS, text, Exit.INCOMPLETE, missing)
    other = tuple(case.id for case in needed if case.id in lines and lines[case.id].clauses != case.clauses)
    if other:
        text = f"{name}: results name other clauses than the plan ({some_of(other)}); run again"
        yield GateReason(ReasonCode.OTHER_PLAN, text, Exit.INCOMPLETE, other)


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
        if not _is_tolerated(requirement, case, line, expected) and (verdict.is_open or case.id not in left_out):
            groups[verdict, line.excused is not None].append(case.id)
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
        yield GateReason(ReasonCode.CLAUSES_UNCOVERED, f"{text}; nothing proves them", Exit.INCOMPLETE)


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
    cases = [case.id for case in requirement.contract.faults if case.id in sides]
    tried, total = tried_of(sides[case] for case in cases)
    if total:
        yield f"{requirement.name}: faults: {tried} of {total} points, states and variants were tried"


def _matrix(
    requirement: Requirement, results: Sequence[tuple[PlannedCase, VerdictLine]], sides: Sides
) -> Iterator[str]:
    """How much of the contract's matrix stands in the exchanges of the cases that conform."""
    conforming = [case for case, line in results if line.verdict == Verdict.CONFORMS.value]
    found = counted(requirement.contract, conforming, sides)
    if found is not None:
        yield found.sentence()


def _left_out(requirement: Requirement, plan: Sequence[PlannedCase], left_out: Sequence[str]) -> Iterator[str]:
    if requirement.roles is not None or requirement.extent is Extent.CORE:
        provoked = " or need provocations" if any(case.provocations for case in plan) else ""
        why = "need provocations" if requirement.roles is None else f"are of other roles{provoked}"
        yield f"{requirement.name}: {len(left_out)} cases {why} and are left out"


def fitness_clauses(requirement: Requirement) -> tuple[str, ...]:
    """The MUST clauses that only a live surface can prove."""
    return tuple(
        clause.id
        for clause in requirement.contract.clauses.values()
        if clause.proof is Proof.FITNESS and clause.level is Level.MUST
    )
