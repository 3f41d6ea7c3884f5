"""What the run of a mutant showed, held against its declaration in `mutants.yaml`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec

from holdfast.conformance.selfcheck.tasks import Shown
from holdfast.conformance.verdict import Verdict, worst
from holdfast.specs.mutants import Allowed, Caught, Mutant


@dataclass(frozen=True, slots=True)
class Kill:
    """What a run of one mutant showed, by clause and by case.

    `missed` and `stray` are sentences; both empty means killed as declared.
    """

    mutant: Mutant
    shown: Mapping[str, Verdict]
    missed: tuple[str, ...]
    stray: tuple[str, ...]
    cases: Sequence[Shown] = ()

    @property
    def as_declared(self) -> bool:
        """Whether every declared clause failed as declared and nothing else failed."""
        return not self.missed and not self.stray

    @property
    def also_failing(self) -> tuple[str, ...]:
        """The clauses that may fail and did."""
        may = self.mutant.reasons
        return tuple(clause for clause, verdict in self.shown.items() if _failed(verdict) and clause in may)


def judge_kill(
    mutant: Mutant, shown: Sequence[Shown], *, due: Collection[str] = (), whole: Collection[str] = ()
) -> Kill:
    """Hold the verdicts against the declaration: the declared verdict must stand among those of each clause's cases.

    A graver finding of the fail-open class is as good: that kills the bug as well (`observed` writes it down).
    `due` are the cases that must have a result, `whole` those that any bug may fail.
    """
    by_clause: dict[str, list[Verdict]] = {}
    for line in shown:
        for clause in line.clauses:
            by_clause.setdefault(clause, []).append(Verdict(line.verdict))
    missed = [
        f"{clause}: expected {wanted}, got {_tally(by_clause.get(clause, []))}"
        for clause, wanted in mutant.must_fail.items()
        if not graver(Verdict(wanted), by_clause.get(clause, []))
    ]
    by_case = {line.case: Verdict(line.verdict) for line in shown}
    missed += [
        f"{case}: expected {wanted}, got {_tally([by_case[case]] if case in by_case else [])}"
        for case, wanted in mutant.faults.items()
        if by_case.get(case) is not Verdict(wanted)
    ]
    # An entry without a reason allows nothing: a person has to say first why the clause may fail.
    allowed = {*mutant.must_fail, *(clause for clause, why in mutant.reasons.items() if why)}
    stray = [
        f"{line.case}: {line.verdict}, though its clauses are not declared: {line.detail[:160]}"
        for line in shown
        if _failed(Verdict(line.verdict))
        and not allowed & set(line.clauses)
        and line.case not in mutant.faults
        and line.case not in whole
    ]
    stray += [f"{case}: no result" for case in due if case not in by_case]
    gravest = {clause: worst(found) for clause, found in by_clause.items()}
    return Kill(mutant, gravest, tuple(missed), tuple(stray), tuple(shown))


def observed(
    mutant: Mutant,
    shown: Sequence[Shown],
    plan: Mapping[str, Sequence[str]],
    *,
    whole: Collection[str] = (),
    unmet: Collection[str] = (),
) -> Mutant:
    """The mutant as this run shows it. `plan` maps every case of the contract to its clauses.

    In `must_fail` stands the graver verdict where a clause got no longer the declared one.

    A clause leaves if all of its cases conform, or are `unmet`, which the bug cannot change. A case that fails without
    being declared brings its first clause, with an empty reason, unless it is one of `whole`, which any bug may fail.
    """
    by_case = {line.case: Verdict(line.verdict) for line in shown}
    # A case that did not run, as most faults do not, may be the one that breaks the clause.
    open_ = {
        clause
        for case, clauses in plan.items()
        if case not in whole and _failed(by_case.get(case, Verdict.CONFORMS if case in unmet else None))
        for clause in clauses
    }
    kept = [Allowed(group.why, tuple(c for c in group.clauses if c in open_)) for group in mutant.may_fail]
    known = {*mutant.must_fail, *(clause for group in kept for clause in group.clauses)}
    new = dict.fromkeys(
        plan[case][0]
        for case, verdict in by_case.items()
        if _failed(verdict) and not known & set(plan[case]) and case not in mutant.faults and case not in whole
    )
    groups = [group for group in (*kept, Allowed("", tuple(new))) if group.clauses]
    must_fail = dict(mutant.must_fail)
    for clause, wanted in mutant.must_fail.items():
        got = graver(Verdict(wanted), [verdict for case, verdict in by_case.items() if clause in plan[case]])
        must_fail[clause] = wanted if got is None else cast("Caught", got.value)
    return msgspec.structs.replace(mutant, must_fail=must_fail, may_fail=tuple(groups))


def graver(wanted: Verdict, found: Sequence[Verdict]) -> Verdict | None:
    """The declared verdict if it is among those that were found, else the gravest that is graver than it, if any is."""
    if wanted in found:
        return wanted
    graver = [each for each in found if each.is_open and worst((each, wanted)) is each and not wanted.is_incomplete]
    return worst(graver) if graver else None


def _failed(verdict: Verdict | None) -> bool:
    return verdict is not Verdict.CONFORMS


def _tally(verdicts: Sequence[Verdict]) -> str:
    counts = {verdict: verdicts.count(verdict) for verdict in verdicts}
    return ", ".join(f"{count} x {verdict.value}" for verdict, count in counts.items()) or "no result"
