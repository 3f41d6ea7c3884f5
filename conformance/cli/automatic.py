"""`holdfast selfcheck --automatic`: bugs that a program plants, and how many of them the cases find."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NoReturn

import msgspec
import typer

from holdfast.conformance.cli.console import Format, ending, err, members, out, print_json, stop
from holdfast.conformance.selfcheck.automatic.drawing import ListingError, drawn, equivalents, listed, source_of
from holdfast.conformance.selfcheck.automatic.runs import attacks, outcomes, portions, stores_of, traces
from holdfast.conformance.selfcheck.automatic.score import Score, difference
from holdfast.conformance.selfcheck.tasks import Attack, Beginning, End, Outcome, Traced
from holdfast.conformance.selfcheck.workers import WorkerError, Workers
from holdfast.conformance.verdict import Exit
from holdfast.specs import Contract
from holdfast.specs.automatic import Site

# What scripts have not found lies where something fails, so that most of its tests wait for it.
_WAITING = 2


def automatic(
    contracts: Sequence[Contract],
    *,
    count: int,
    seed: str,
    only: Sequence[str],
    minutes: float,
    jobs: int,
    format_: Format,
) -> NoReturn:
    """Try the mutants of each contract and print the scores. Exit 20 if too many survive, or the list is wrong."""
    with ending(Exit.KIT, ListingError, WorkerError):
        scores = [
            score_of(contract, count=count, seed=seed, only=only, minutes=minutes, jobs=jobs) for contract in contracts
        ]
    known = {site.id for score in scores for site in score.drawn}
    if unknown := set(only) - known:
        stop(Exit.USAGE, f"unknown mutant {', '.join(sorted(unknown))}; the survivors of a run are printed with theirs")
    # A mutant that is repeated need not be a part of a whole score.
    good = not any(score.problems if only else score.complaints for score in scores)
    if format_ is Format.JSON:
        print_json({"good": good, "contracts": [_json(score) for score in scores]})
    else:
        for score in scores:
            _print(score)
    raise typer.Exit(int(Exit.OK if good else Exit.KIT))


def score_of(contract: Contract, *, count: int, seed: str, only: Sequence[str], minutes: float, jobs: int) -> Score:
    """What came of the mutants of one contract. Raises ListingError, WorkerError."""
    files, sites = listed(contract.name)
    equivalent, problems = equivalents(contract.name, sites)
    chosen = [site for site in sites if site.id in only] if only else drawn(sites, count=count, seed=seed)
    found: dict[str, Outcome] = {}
    beginning = Beginning(contract.name, seed, files.files)
    until = time.monotonic() + 60 * minutes
    traced: list[Traced] = []
    *scripts, suites = portions(contract, mutants=len(chosen))
    # The list claims that no test finds these, and scripts find most of what would refute it.
    later = [site for site in chosen if only or site.id not in equivalent]
    for attackable, phases, at_once in ((chosen, scripts, jobs), (later, [suites, ()], _WAITING * jobs)):
        left = _left(attackable, found)
        if not left:
            continue
        with Workers(beginning, jobs=min(at_once, len(left))) as workers:
            for cases in phases:
                new = traces(workers, stores=stores_of(contract.name), cases=cases)
                _warn(new)
                traced += new
                attacked = attacks(contract, left, traced, cases=cases, faults=not cases)
                found = _tried(attacked, workers, found, until=until)
                left = _left(left, found)
                if not left:
                    break
    return Score(contract.name, seed, len(sites), chosen, found, equivalent, problems)


def _left(sites: Sequence[Site], found: Mapping[str, Outcome]) -> list[Site]:
    """Those that were not killed so far."""
    return [site for site in sites if site.id not in found or not found[site.id].end.is_kill]


def _tried(
    attacked: Sequence[Attack], workers: Workers, before: Mapping[str, Outcome], *, until: float
) -> dict[str, Outcome]:
    """The outcomes so far, with those of the mutants that survived before."""
    found = dict(before)
    waiting = {each.site.id for each in attacked if each.tests or each.faults}
    for attack in attacked:
        found.setdefault(attack.site.id, Outcome(attack.site.id, End.NO_TEST, 0))
    for outcome in outcomes(attacked, workers, until=until):
        waiting.discard(outcome.id)
        found[outcome.id] = outcome.after(found[outcome.id])
        if outcome.end.is_kill:
            err().print(f"{outcome.end.value} {outcome.id}", markup=False)
    for name in waiting:
        found[name] = msgspec.structs.replace(found[name], end=End.NOT_TRIED, detail="the time was over")
    return found


def _warn(traced: Sequence[Traced]) -> None:
    for each in traced:
        if not each.conforms:
            err().print(
                f"left out: {each.test.case} with store {each.test.store}: the reference itself got {each.detail}",
                markup=False,
                style="yellow",
            )


def _print(score: Score) -> None:
    console = out()
    for site in score.survivors:
        outcome = score.outcomes[site.id]
        console.print(
            f"{outcome.end.value}: {site.id} in {site.function or 'no function'}, after {outcome.tried} tests",
            markup=False,
        )
        for line in _difference(site).splitlines():
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        if outcome.detail:
            console.print(outcome.detail, markup=False)
        console.print(
            f"again: holdfast selfcheck --automatic --contract {score.contract} --seed {score.seed} --only {site.id}",
            markup=False,
            soft_wrap=True,
        )
    for text in score.complaints:
        console.print(text, markup=False, style="red")
    console.print(score.sentence(), markup=False, soft_wrap=True)


def _difference(site: Site) -> str:
    return difference(site, source_of(site))


def _json(score: Score) -> dict[str, object]:
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
                "difference": _difference(site),
            }
            for site, outcome in ((site, score.outcomes[site.id]) for site in score.drawn)
        ],
    }
