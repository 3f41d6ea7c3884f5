"""Planted bugs: the cases that each meets, and what they showed, held against its declaration in `mutants.yaml`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, unique

from holdfast.conformance.run.plan import Form, PlannedCase, plan_of
from holdfast.conformance.selfcheck.automatic import listed, stores_of, traces
from holdfast.conformance.selfcheck.tasks import Beginning, Harvest, Planting, Shown, Sites, Traced
from holdfast.conformance.selfcheck.workers import Workers
from holdfast.conformance.verdict import Verdict, worst
from holdfast.specs import Contract
from holdfast.specs.mutants import Mutant, Mutants, load_mutants

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


# The values of every case. Verdicts of a bug are compared between runs, so they do not change with the run.
VALUES = "selfcheck"
# With as many bugs as these, or more, `--full` first traces which cases each of them can change.
_WORTH_A_TRACE = 4


@unique
class Extent(Enum):
    """Which cases a bug meets: those of the clauses that it must break, the whole contract, or its faults as well."""

    CLAUSES = "clauses"
    CASES = "cases"
    FAULTS = "faults"


@dataclass(frozen=True, slots=True)
class Planted:
    """The planted bugs of one contract that are run, and the cases that each meets."""

    contract: Contract
    declared: Mutants
    chosen: Sequence[Mutant]
    extent: Extent
    plan: Sequence[PlannedCase]
    unmet: Unmet = field(default_factory=dict)

    @property
    def traced(self) -> Sequence[str]:
        """The cases that are traced first, so that no bug is run in one that it cannot change."""
        if self.extent is Extent.CLAUSES or len(self.chosen) < _WORTH_A_TRACE:
            return ()
        return [case.id for case in self.plan if case.form is not Form.FAULT and not case.whole]

    def task(self, mutant: Mutant) -> Planting:
        """What a worker runs of this bug: the cases of its clauses, with `--full` all that it may change.

        Not those that any bug may fail.
        """
        unmet = self.unmet.get(mutant.name, frozenset())
        due = self.declared.due(mutant)
        cases = [
            case
            for case in self.plan
            if not due.isdisjoint(case.clauses)
            or (self.extent is not Extent.CLAUSES and (not mutant.must_fail or not case.whole) and case.id not in unmet)
        ]
        faults = [
            case.id
            for case in self.plan
            if case.form is Form.FAULT and (case.id in mutant.faults or self.extent is Extent.FAULTS)
        ]
        scripts = tuple(case.id for case in cases if case.form is not Form.FAULT)
        return Planting(mutant.name, self.store_of(mutant), scripts, tuple(faults))

    def store_of(self, mutant: Mutant) -> str:
        """The store with which this bug is run: its own, unless the whole contract needs another one."""
        own, whole = self.declared.store_of(mutant), stores_of(self.contract.name)
        return own if self.extent is Extent.CLAUSES or own in whole else whole[0]


def chosen(contract: Contract, names: Sequence[str] | None, extent: Extent) -> Planted:
    """Those of the contract that have these names, or all."""
    declared = load_mutants(contract.name)
    of_names = [each for each in declared.planted if not names or each.name in names]
    return Planted(contract, declared, of_names, extent, plan_of(contract))


def kills_of(planted: Planted, jobs: int, *, say: Callable[[str], None]) -> Iterator[Kill]:
    """What came of each bug, as it comes; `say` gets lines of progress."""
    if not planted.chosen:
        return
    by_name = {each.name: each for each in planted.chosen}
    contract = planted.contract.name
    sites = listed(contract)[0] if planted.traced else Sites(contract, {})
    with Workers(Beginning(contract, VALUES, sites.files), jobs=min(jobs, len(by_name))) as workers:
        if planted.traced:
            stores = {each.name: planted.store_of(each) for each in planted.chosen}
            traced = traces(workers, stores=tuple(dict.fromkeys(stores.values())), cases=planted.traced)
            planted = replace(planted, unmet=unmet_cases(sites, traced, stores))
        for harvest in workers.results([planted.task(each) for each in planted.chosen], Harvest):
            yield _kill(planted, by_name[harvest.mutant], harvest, say)


def _kill(planted: Planted, mutant: Mutant, harvest: Harvest, say: Callable[[str], None]) -> Kill:
    task = planted.task(mutant)
    kill = (
        Kill(mutant, {}, (harvest.problem,))
        if harvest.problem
        else judge_kill(mutant, harvest.shown, due=(*task.cases, *task.faults))
    )
    good = "killed" if mutant.must_fail else "accused of nothing"
    say(f"{good if kill.as_declared else 'NOT AS DECLARED'} {mutant.name}")
    for line in kill.missed:
        say(f"    {line}")
    return kill
