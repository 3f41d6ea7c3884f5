"""`holdfast selfcheck`: the kit tests itself. Each planted bug must be caught as declared."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
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
from holdfast.conformance.cli.target import require_reference
from holdfast.conformance.run.baselines import Policy, baseline_json
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.plan import plan_of
from holdfast.conformance.run.settings import RunSettings
from holdfast.conformance.selfcheck.automatic import (
    COUNT,
    MINUTES,
    SEED,
    ListingError,
    Score,
    difference,
    score_of,
    source_of,
)
from holdfast.conformance.selfcheck.kills import VALUES, Extent, Kill, chosen, kills_of
from holdfast.conformance.selfcheck.workers import WorkerError
from holdfast.conformance.verdict import Exit
from holdfast.specs import Contract, SpecError, contract_names, load_contract
from holdfast.specs.errors import meant
from holdfast.specs.model import Proof
from holdfast.specs.registry import folder_of

# The baseline adapters reach no failpoint, so a full wait would only take time.
BASELINE_SLOW = 0.1


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
) -> Exit:
    """Lint the contracts, run every mutant, print the kill matrix. Exit 20 unless every bug is caught as declared."""
    names = contract or list(contract_names())
    require_reference(names)
    if automatic and mutant:
        stop(Exit.USAGE, "--mutant names a bug that is planted by hand; with --automatic say --only")
    if automatic:
        with ending(Exit.USAGE, SpecError):
            contracts = [load_contract(name) for name in names]
        return _automatic(
            contracts, count=count, seed=seed, only=only or (), minutes=minutes, jobs=jobs, format_=format_
        )
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
        return Exit.OK
    kills: list[Kill] = []
    with ending(Exit.KIT, ListingError, WorkerError):
        for one in planted:
            found = {kill.mutant.name: kill for kill in kills_of(one, jobs, say=_say)}
            kills += [found[each.name] for each in one.chosen]
    problems = [f"{one.contract.name}: {text}" for one in planted for text in problems_of(one.contract) if not mutant]
    if not kills:
        problems.append("no mutant was run, so nothing shows that the kit catches anything")
    good = not problems and all(kill.as_declared for kill in kills)
    if format_ is Format.JSON:
        print_json(_json(kills, problems, good))
    else:
        _print(kills, problems)
    return Exit.OK if good else Exit.KIT


def _say(text: str) -> None:
    """A line of progress."""
    err().print(text)


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
        program = "holdfast.conformance.selfcheck.baseline_adapter"
        adapter = (sys.executable, "-P", "-m", program, policy.value, contract.name)
        settings = RunSettings(adapter, (contract.name,), VALUES, slow=BASELINE_SLOW)
        with Engine(settings) as engine:
            results = [engine.run_planned(contract, case) for case in plan_of(contract)]
        verdicts[policy] = {each.case: each.judgement.verdict.value for each in results}
    path = folder_of(contract.name) / "baselines.json"
    path.write_text(baseline_json(contract, verdicts), encoding="utf-8")
    testable = sum(clause.proof is Proof.RUN for clause in contract.clauses.values())
    err().print(f"wrote {path.name} of {contract.name} ({testable} clauses to prove by a run)")


def _automatic(
    contracts: Sequence[Contract],
    *,
    count: int,
    seed: str,
    only: Sequence[str],
    minutes: float,
    jobs: int,
    format_: Format,
) -> Exit:
    """Try the mutants of each contract and print the scores. Exit 20 if too many survive, or the list is wrong."""
    with ending(Exit.KIT, ListingError, WorkerError):
        scores = [
            score_of(contract, count=count, seed=seed, only=only, minutes=minutes, jobs=jobs, say=_say)
            for contract in contracts
        ]
    known = {site.id for score in scores for site in score.drawn}
    if unknown := set(only) - known:
        stop(Exit.USAGE, f"unknown mutant {', '.join(sorted(unknown))}; the survivors of a run are printed with theirs")
    # A mutant that is repeated need not be a part of a whole score.
    good = not any(score.problems if only else score.complaints for score in scores)
    if format_ is Format.JSON:
        print_json({"good": good, "contracts": [_score_json(score) for score in scores]})
    else:
        for score in scores:
            _print_score(score)
    return Exit.OK if good else Exit.KIT


def _print_score(score: Score) -> None:
    console = out()
    for site in score.survivors:
        outcome = score.outcomes[site.id]
        console.print(
            f"{outcome.end.value}: {site.id} in {site.function or 'no function'}, after {outcome.tried} tests"
        )
        for line in difference(site, source_of(site)).splitlines():
            console.print(line, highlight=False, soft_wrap=True)
        if outcome.detail:
            console.print(outcome.detail)
        console.print(
            f"again: holdfast selfcheck --automatic --contract {score.contract} --seed {score.seed} --only {site.id}",
            soft_wrap=True,
        )
    for text in score.complaints:
        console.print(text, style="red")
    console.print(score.sentence(), soft_wrap=True)


def _score_json(score: Score) -> dict[str, object]:
    return {
        **members(score, "contract", "seed", "sites"),
        "tried": len(score.drawn),
        "killed": score.killed,
        "equivalent": score.listed,
        **members(score, "ends", "complaints"),
        "mutants": [
            {
                **members(site, "id", "function", "operator"),
                **members(outcome, "end", "tried", "seconds"),
                "by": None if outcome.by is None else outcome.by.case,
                **members(outcome, "verdict", "detail"),
                "difference": difference(site, source_of(site)),
            }
            for site, outcome in ((site, score.outcomes[site.id]) for site in score.drawn)
        ],
    }
