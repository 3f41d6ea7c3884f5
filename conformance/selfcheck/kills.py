"""What the run of a mutant showed, held against its declaration in `mutants.yaml`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from holdfast.conformance.selfcheck.tasks import Shown, Sites, Traced
from holdfast.conformance.verdict import Verdict, worst
from holdfast.specs.mutants import Mutant

# The cases that a planted bug cannot change: they execute no line of what it replaces, so `--full` leaves them out

Unmet = Mapping[str, frozenset[str]]


def unmet_cases(sites: Sites, traced: Sequence[Traced], stores: Mapping[str, str]) -> Unmet:
    """For each bug of `stores`, which says with which store it runs, the traced cases that it cannot change.

    A bug that replaces what is not traced, or what the launcher runs, may change every case. So may one of which it is
    not known what it replaces. A case that did not conform as it was traced is left out for none.
    """
    launched = {line for each in traced if not each.test.case for line in _lines(each.lines)}
    cases = [(each, frozenset(_lines(each.lines))) for each in traced if each.test.case and each.conforms]
    found: dict[str, frozenset[str]] = {}
    for bug, store in stores.items():
        replaced = sites.bugs.get(bug)
        if replaced is None or not sites.files.keys() >= replaced.keys():
            continue
        lines = set(_lines(replaced))
        if lines.isdisjoint(launched):
            found[bug] = frozenset(
                each.test.case for each, executed in cases if each.test.store == store and lines.isdisjoint(executed)
            )
    return found


def _lines(by_file: Mapping[str, Collection[int]]) -> set[tuple[str, int]]:
    return {(file, line) for file, numbers in by_file.items() for line in numbers}


@dataclass(frozen=True, slots=True)
class Kill:
    """What a run of one mutant showed, by clause and by case.

    `missed` holds sentences; none means killed as declared.
    """

    mutant: Mutant
    shown: Mapping[str, Verdict]
    missed: tuple[str, ...]
    cases: Sequence[Shown] = ()

    @property
    def as_declared(self) -> bool:
        """Whether every declared clause failed as declared; of a sound variant, whether nothing failed."""
        return not self.missed

    @property
    def also_failing(self) -> tuple[str, ...]:
        """The clauses that failed and are not declared."""
        return tuple(
            clause
            for clause, verdict in self.shown.items()
            if verdict is not Verdict.CONFORMS and clause not in self.mutant.must_fail
        )


def judge_kill(mutant: Mutant, shown: Sequence[Shown], *, due: Collection[str] = ()) -> Kill:
    """Hold the verdicts against the declaration: the declared verdict must stand among those of each clause's cases.

    A graver finding of the fail-open class is as good: that kills the bug as well. What else a bug breaks is shown, and
    no fault of it; a sound variant may break nothing. `due` are the cases that must have a result.
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
    missed += [f"{case}: no result" for case in due if case not in by_case]
    if not mutant.must_fail:
        missed += [
            f"{line.case}: {line.verdict}, though this variant is sound: {line.detail[:160]}"
            for line in shown
            if line.verdict != Verdict.CONFORMS.value
        ]
    gravest = {clause: worst(found) for clause, found in by_clause.items()}
    return Kill(mutant, gravest, tuple(missed), tuple(shown))


def graver(wanted: Verdict, found: Sequence[Verdict]) -> Verdict | None:
    """The declared verdict if it is among those that were found, else the gravest that is graver than it, if any is."""
    if wanted in found:
        return wanted
    graver = [each for each in found if each.is_open and worst((each, wanted)) is each and not wanted.is_incomplete]
    return worst(graver) if graver else None


def _tally(verdicts: Sequence[Verdict]) -> str:
    counts = {verdict: verdicts.count(verdict) for verdict in verdicts}
    return ", ".join(f"{count} x {verdict.value}" for verdict, count in counts.items()) or "no result"
