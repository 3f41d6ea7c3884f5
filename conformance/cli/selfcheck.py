"""`holdfast selfcheck`: the kit tests itself. Each planted bug must be caught as declared."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, unique
from typing import Annotated

import typer

from holdfast.conformance.cli.console import (
    Format,
    OutputFormat,
    ending,
    err,
    in_style,
    members,
    out,
    print_json,
    stop,
    table_of,
)
from holdfast.conformance.cli.lint import problems_of
from holdfast.conformance.cli.target import require
from holdfast.conformance.run.baselines import Policy, baseline_json
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.plan import Form, PlannedCase, plan_of
from holdfast.conformance.run.settings import RunSettings
from holdfast.conformance.selfcheck.automatic import ListingError, listed, stores_of, traces
from holdfast.conformance.selfcheck.kills import Kill, Unmet, judge_kill, unmet_cases
from holdfast.conformance.selfcheck.tasks import Beginning, Harvest, Planting, Sites
from holdfast.conformance.selfcheck.workers import WorkerError, Workers
from holdfast.conformance.verdict import Exit
from holdfast.specs import Contract, SpecError, contract_names, load_contract
from holdfast.specs.errors import meant
from holdfast.specs.loader import contract_folders
from holdfast.specs.model import Proof
from holdfast.specs.mutants import Mutant, Mutants, load_mutants

# The baseline adapters reach no failpoint, so a full wait would only take time.
BASELINE_SLOW = 0.1
# The values of every case. Verdicts of a bug are compared between runs, so they do not change with the run.
VALUES = "selfcheck"
# `--automatic` chooses this number of mutants of each contract, or all if there are fewer.
COUNT = 400
# Nothing of a contract begins later than this, so that what runs then ends within its hour.
MINUTES = 54.0
# With as many bugs as these, or more, `--full` first traces which cases each of them can change.
_WORTH_A_TRACE = 4
SEED = "automatic"


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


def selfcheck(
    contract: Annotated[list[str] | None, typer.Option("--contract", help="only this contract; repeat")] = None,
    full: Annotated[bool, typer.Option("--full", help="every mutant against the whole contract")] = False,
    mutant: Annotated[list[str] | None, typer.Option("--mutant", help="only this mutant; repeat")] = None,
    everything: Annotated[
        bool, typer.Option("--faults", help="with --full: let every fault strike every mutant, for hours")
    ] = False,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="measure accept-all and refuse-all, write the files")
    ] = False,
    automatic: Annotated[
        bool, typer.Option("--automatic", help="bugs that a program plants, instead of those planted by hand")
    ] = False,
    count: Annotated[int, typer.Option(min=1, help="with --automatic: mutants of each contract")] = COUNT,
    minutes: Annotated[
        float, typer.Option(min=1, help="with --automatic: no new try of a contract after these")
    ] = MINUTES,
    seed: Annotated[str, typer.Option(help="with --automatic: decides which of them, and the values of tests")] = SEED,
    only: Annotated[list[str] | None, typer.Option("--only", help="with --automatic: this mutant; repeat")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=32, help="mutants run at once")] = min(2, os.cpu_count() or 1),
    format_: OutputFormat = Format.TEXT,
) -> None:
    """Lint the contracts, run every mutant, print the kill matrix. Exit 20 unless every bug is caught as declared."""
    require("reference")
    names = contract or list(contract_names())
    if automatic and mutant:
        stop(Exit.USAGE, "--mutant names a bug that is planted by hand; with --automatic say --only")
    if automatic:
        # numpy and what else the suites import takes a third of a second, for which the other mutants need not wait.
        from holdfast.conformance.cli.automatic import automatic as run_automatic

        with ending(Exit.USAGE, SpecError):
            contracts = [load_contract(name) for name in names]
        run_automatic(contracts, count=count, seed=seed, only=only or (), minutes=minutes, jobs=jobs, format_=format_)
    extent = Extent.CLAUSES if not full else Extent.FAULTS if everything else Extent.CASES
    with ending(Exit.USAGE if contract else Exit.KIT, SpecError):
        planted = [chosen(load_contract(name), mutant, extent) for name in names]
    known = [each.name for one in planted for each in one.declared.planted]
    for name in mutant or ():
        if name not in known:
            stop(Exit.USAGE, f"unknown mutant {name}{meant(name, known)}; `holdfast reference mutants` lists them")
    if baselines:
        for one in planted:
            _write_baseline(one.contract)
        raise typer.Exit(int(Exit.OK))
    kills: list[Kill] = []
    with ending(Exit.KIT, ListingError, WorkerError):
        for one in planted:
            found = {kill.mutant.name: kill for kill in kills_of(one, jobs)}
            kills += [found[each.name] for each in one.chosen]
    problems = [f"{one.contract.name}: {text}" for one in planted for text in problems_of(one.contract) if not mutant]
    if not kills:
        problems.append("no mutant was run, so nothing shows that the kit catches anything")
    good = not problems and all(kill.as_declared for kill in kills)
    if format_ is Format.JSON:
        print_json(_json(kills, problems, good))
    else:
        _print(kills, problems)
    raise typer.Exit(int(Exit.OK if good else Exit.KIT))


def chosen(contract: Contract, names: Sequence[str] | None, extent: Extent) -> Planted:
    """Those of the contract that have these names, or all."""
    declared = load_mutants(contract.name)
    of_names = [each for each in declared.planted if not names or each.name in names]
    return Planted(contract, declared, of_names, extent, plan_of(contract))


def kills_of(planted: Planted, jobs: int) -> Iterator[Kill]:
    """What came of each bug, as it comes."""
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
            yield _kill(planted, by_name[harvest.mutant], harvest)


def _kill(planted: Planted, mutant: Mutant, harvest: Harvest) -> Kill:
    task = planted.task(mutant)
    kill = (
        Kill(mutant, {}, (harvest.problem,))
        if harvest.problem
        else judge_kill(mutant, harvest.shown, due=(*task.cases, *task.faults))
    )
    good = "killed" if mutant.must_fail else "accused of nothing"
    err().print(good if kill.as_declared else in_style("NOT AS DECLARED", "bold red"), mutant.name)
    for line in kill.missed:
        err().print(f"    {line}")
    return kill


def _print(kills: Sequence[Kill], problems: Sequence[str]) -> None:
    console = out()
    table = table_of("mutant", "killed", "must fail", "also failing", title="kill matrix")
    for kill in kills:
        due = [f"{clause} {verdict}" for clause, verdict in kill.mutant.must_fail.items()] or ["nothing: it is sound"]
        mark = in_style("yes", "green") if kill.as_declared else in_style("NO", "bold red")
        table.add_row(kill.mutant.name, mark, ", ".join(due), ", ".join(kill.also_failing))
    console.print_table(table)
    for kill in kills:
        for line in kill.missed:
            console.print(f"{kill.mutant.name}: {line}", style="red")
    for problem in problems:
        console.print(f"lint: {problem}", style="red")
    killed = sum(kill.as_declared for kill in kills)
    console.print(f"{killed} of {len(kills)} mutants killed as declared, {len(problems)} problems in the contracts")


def _json(kills: Sequence[Kill], problems: Sequence[str], good: bool) -> dict[str, object]:
    return {
        "good": good,
        "problems": list(problems),
        "kills": [
            {"mutant": kill.mutant.name, **members(kill, "as_declared", "shown", "missed", "also_failing")}
            for kill in kills
        ],
    }


def _write_baseline(contract: Contract) -> None:
    verdicts: dict[Policy, dict[str, str]] = {}
    for policy in Policy:
        adapter = (sys.executable, "-P", "-m", "holdfast.conformance.selfcheck.baseline_adapter", policy.value)
        settings = RunSettings(adapter, (contract.name,), VALUES, slow=BASELINE_SLOW)
        with Engine(settings) as engine:
            results = [engine.run_planned(contract, case) for case in plan_of(contract)]
        verdicts[policy] = {each.case: each.judgement.verdict.value for each in results}
    path = contract_folders()[contract.name] / "baselines.json"
    path.write_text(baseline_json(contract, verdicts), encoding="utf-8")
    testable = sum(clause.proof is Proof.RUN for clause in contract.clauses.values())
    err().print(f"wrote {path.name} of {contract.name} ({testable} clauses to prove by a run)")
