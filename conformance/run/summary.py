"""The summary of a run: verdict, exit status, and the table of clauses. A projection of results only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from holdfast.conformance.cases.record import CaseResult, Judgement
from holdfast.conformance.run.baselines import Baseline, Policy
from holdfast.conformance.run.findings import reported_under
from holdfast.conformance.run.plan import PlannedCase, uncovered
from holdfast.conformance.verdict import Exit, FailureMode, Verdict, can_be_excused, exit_of, gravest, gravest_finding
from holdfast.specs import Clause, Contract
from holdfast.specs.model import Level, Proof


@dataclass(frozen=True, slots=True)
class ClauseRow:
    """One clause of the table. `verdict` is None if no case of it ran; the scores count conforming cases."""

    clause: Clause
    cases: int
    ran: int
    conforming: int
    verdict: Verdict | None
    baseline: Mapping[Policy, int | None]


@dataclass(frozen=True, slots=True)
class Summary:
    """A run at a glance."""

    results: tuple[CaseResult, ...]
    missing: tuple[PlannedCase, ...]
    rows: tuple[ClauseRow, ...]
    counts: Mapping[Verdict, int]
    verdict: Verdict
    exit: Exit
    notes: tuple[str, ...]
    # What of the notes is about roles that the adapter does not claim.
    of_roles: tuple[str, ...]
    # Cases of a role that the adapter does not claim: it was not asked.
    not_asked: frozenset[str] = frozenset()

    @property
    def of_claimed(self) -> Verdict:
        """The gravest finding in what the adapter claims: a case of another role that is unsupported does not count."""
        unasked = {each.case for each in self.results if each.judgement.verdict is Verdict.UNSUPPORTED} & self.not_asked
        return gravest_finding(each.judgement.verdict for each in self.results if each.case not in unasked)


def missing_result(planned: PlannedCase) -> CaseResult:
    """The result of a planned case without a result."""
    judgement = Judgement(
        Verdict.NO_VERDICT, FailureMode.MISSING, "the case was planned and selected, and no result came back"
    )
    return CaseResult(planned.id, planned.clauses, judgement, (), (), 0.0)


def summarise(
    contracts: Sequence[Contract],
    plan: Sequence[PlannedCase],
    results: Sequence[CaseResult],
    *,
    narrowed: bool,
    excused: Collection[str] = (),
    baselines: Mapping[str, Baseline | None],
    not_claimed: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Summary:
    """Sum up. A narrowed run, an uncovered clause or no case at all is incomplete evidence.

    `excused` are cases whose failure is expected: they do not change the exit status, unless a case failed open or
    proved nothing. `not_claimed` has by contract what the adapter does not claim: a role among it is not asked for.
    """
    not_asked = of_other_roles(contracts, plan, not_claimed)
    by_id = {result.case: result for result in results}
    missing = tuple(case for case in plan if case.id not in by_id)
    notes: list[str] = []
    of_roles: list[str] = []
    exits = [
        exit_of(result.judgement.verdict)
        for result in results
        if _counts(result, contracts, not_asked)
        and not (result.case in excused and can_be_excused(result.judgement.verdict))
    ]
    if not results:
        notes.append("no case ran: nothing was shown")
        exits.append(Exit.INCOMPLETE)
    elif not any(map(_opened, results)):
        notes.append("the adapter opened no session, so no case began")
        exits.append(Exit.ADAPTER)
    if narrowed:
        left_out = f"{len(missing)} of {len(plan)} planned cases were not selected"
        notes.append(f"the run was narrowed: {left_out}; the gate will not take it")
        exits.append(Exit.INCOMPLETE)
    elif missing:
        notes.append(f"{len(missing)} planned cases have no result")
        exits.append(Exit.INCOMPLETE)
    again = [
        f"{result.case} ({result.first.judgement.silence.value}, then {_ended(result)})"
        for result in results
        if result.first is not None and result.first.judgement.silence is not None
    ]
    if again:
        how_many = "1 case was" if len(again) == 1 else f"{len(again)} cases were"
        notes.append(f"{how_many} run again, alone, because a limit of holdfast had ended them: {', '.join(again)}")
    for contract in contracts:
        without = sorted(contract.roles.keys() & {*not_claimed.get(contract.name, ())})
        if without:
            number = sum(case.contract == contract.name and case.id in not_asked for case in plan)
            of_roles.append(
                f"{contract.name}: {number} cases are of what the adapter does not claim: {', '.join(without)}"
            )
        open_clauses = uncovered(contract, plan)
        if open_clauses:
            notes.append(f"{contract.name}: no case covers {', '.join(open_clauses)}")
            exits.append(Exit.INCOMPLETE)
    rows = tuple(
        _row(clause, contract, plan, by_id, baselines.get(contract.name), not_asked)
        for contract in contracts
        for clause in contract.clauses.values()
    )
    return Summary(
        results=tuple(results),
        missing=missing,
        rows=rows,
        counts=Counter(result.judgement.verdict for result in results),
        verdict=gravest_finding(result.judgement.verdict for result in results),
        exit=gravest(exits),
        notes=tuple(notes),
        of_roles=tuple(of_roles),
        not_asked=not_asked,
    )


def _ended(result: CaseResult) -> str:
    judged = result.judgement
    return judged.verdict.value if judged.silence is None else judged.silence.value


def of_other_roles(
    contracts: Sequence[Contract], plan: Sequence[PlannedCase], not_claimed: Mapping[str, Collection[str]]
) -> frozenset[str]:
    """The cases of roles that the adapter does not claim. `not_claimed` has by contract what it lacks."""
    by_name = {contract.name: contract for contract in contracts}
    return frozenset(
        case.id
        for case in plan
        if case.contract in by_name
        and by_name[case.contract].roles_of(case.clauses, case.roles) & {*not_claimed.get(case.contract, ())}
    )


def _opened(result: CaseResult) -> bool:
    """Whether the adapter opened a session for this case."""
    return any(
        record.request is not None
        and record.request.get("op") == "open"
        and record.answer is not None
        and record.answer.get("outcome") == "ok"
        for record in result.main
    )


def _counts(result: CaseResult, contracts: Sequence[Contract], not_asked: Collection[str]) -> bool:
    """Whether the result changes the exit status: what is unsupported of a SHOULD or of another role does not."""
    if result.case in not_asked and result.judgement.verdict is Verdict.UNSUPPORTED:
        return False
    if result.judgement.verdict is not Verdict.UNSUPPORTED:
        return True
    clauses = [contract.clauses.get(name) for contract in contracts for name in result.clauses]
    return any(clause is not None and clause.level is Level.MUST for clause in clauses)


def _row(
    clause: Clause,
    contract: Contract,
    plan: Sequence[PlannedCase],
    by_id: Mapping[str, CaseResult],
    baseline: Baseline | None,
    not_asked: Collection[str],
) -> ClauseRow:
    planned = {case.id: case for case in plan if clause.id in case.clauses}
    cases = [case for case in planned if case not in not_asked] or [*planned]
    found = {case: by_id[case].judgement.verdict for case in cases if case in by_id}
    scores: dict[Policy, int | None] = dict.fromkeys(Policy)
    if baseline is not None and clause.proof is Proof.RUN:
        for policy in Policy:
            scores[policy] = sum(baseline.conforms(policy, case) for case in cases)
    return ClauseRow(
        clause=clause,
        cases=len(cases),
        ran=len(found),
        conforming=sum(verdict is Verdict.CONFORMS for verdict in found.values()),
        verdict=verdict_of(clause, contract, [(planned[case], verdict) for case, verdict in found.items()]),
        baseline=scores,
    )


def verdict_of(clause: Clause, contract: Contract, results: Sequence[tuple[PlannedCase, Verdict]]) -> Verdict | None:
    """What the results of its cases show of a clause; None if there are none.

    A case that breaks another clause of its own says nothing of this one: it is not reached.
    """
    shown = []
    for planned, verdict in results:
        is_of_another = verdict is not Verdict.CONFORMS and not verdict.is_incomplete
        is_of_another = is_of_another and reported_under(verdict, planned, contract) != clause.id
        shown.append(Verdict.NOT_REACHED if is_of_another else verdict)
    return gravest_finding(shown) if shown else None
