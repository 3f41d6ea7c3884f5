"""`holdfast selfcheck --automatic`: bugs that a program plants, and how many of them the cases find."""

from __future__ import annotations

import difflib
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import msgspec
import typer

from holdfast.conformance.cli.console import Format, ending, err, members, out, print_json, stop
from holdfast.conformance.selfcheck.automatic import (
    ListingError,
    attacks,
    drawn,
    equivalents,
    listed,
    outcomes,
    portions,
    source_of,
    stores_of,
    traces,
)
from holdfast.conformance.selfcheck.tasks import Attack, Beginning, End, Outcome, Traced
from holdfast.conformance.selfcheck.workers import WorkerError, Workers
from holdfast.conformance.verdict import Exit
from holdfast.specs import Contract
from holdfast.specs.automatic import MOST_EQUIVALENT, Site

# What scripts have not found lies where something fails, so that most of its tests wait for it.
_WAITING = 2


# This percentage of the mutants that are not listed as equivalent must be killed.
GOAL_PERCENT = 95


@dataclass(frozen=True, slots=True)
class Score:
    """One contract's mutants. `sites` is how many there are, `drawn` those that were tried, each with its outcome.

    `equivalent` are the arguments of those that are listed as equivalent, `problems` what is wrong with that list.
    """

    contract: str
    seed: str
    sites: int
    drawn: Sequence[Site]
    outcomes: Mapping[str, Outcome]
    equivalent: Mapping[str, str]
    problems: Sequence[str]

    @property
    def ends(self) -> Mapping[End, int]:
        """How many mutants ended in each way."""
        found = Counter(self.outcomes[site.id].end for site in self.drawn)
        return {end: found[end] for end in End if found[end]}

    @property
    def killed(self) -> int:
        """How many were killed, in any way."""
        return sum(self.outcomes[site.id].end.is_kill for site in self.drawn)

    @property
    def survivors(self) -> Sequence[Site]:
        """Those that no test found, and that are not listed as equivalent."""
        return [
            site for site in self.drawn if not self.outcomes[site.id].end.is_kill and site.id not in self.equivalent
        ]

    @property
    def listed(self) -> int:
        """How many survived and are listed as equivalent."""
        return len(self.drawn) - self.killed - len(self.survivors)

    @property
    def complaints(self) -> Sequence[str]:
        """What is wrong, in sentences."""
        said = list(self.problems)
        refuted = [site.id for site in self.drawn if site.id in self.equivalent and self.outcomes[site.id].end.is_kill]
        said += [f"{name} is listed as equivalent, and a test finds it; remove the entry" for name in refuted]
        if self.listed * MOST_EQUIVALENT > len(self.drawn):
            said.append(f"{self.listed} of {len(self.drawn)} are listed as equivalent; at most one in ten may be")
        if not self.drawn:
            said.append("no mutant was tried")
        if self.killed * 100 < GOAL_PERCENT * (len(self.drawn) - self.listed):
            said.append(f"fewer than {GOAL_PERCENT} of a hundred mutants that are not listed were killed")
        return said

    def sentence(self) -> str:
        """The score in one line."""
        times = ", ".join(f"{count} {end.value}" for end, count in self.ends.items() if end.is_kill)
        return (
            f"{self.contract}: killed {self.killed} of {len(self.drawn)} ({times or 'none'}), "
            f"{self.listed} listed as equivalent, {len(self.survivors)} survived; "
            f"{self.sites} sites, seed {self.seed}"
        )


def difference(site: Site, source: str) -> str:
    """The change as a unified diff without context."""
    data = source.encode()
    changed = (data[: site.start] + site.text.encode() + data[site.end :]).decode()
    lines = difflib.unified_diff(source.splitlines(), changed.splitlines(), site.file, site.file, n=0, lineterm="")
    return "\n".join(list(lines)[2:])


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
            err().print(f"{outcome.end.value} {outcome.id}")
    for name in waiting:
        found[name] = msgspec.structs.replace(found[name], end=End.NOT_TRIED, detail="the time was over")
    return found


def _warn(traced: Sequence[Traced]) -> None:
    for each in traced:
        if not each.conforms:
            err().print(
                f"left out: {each.test.case} with store {each.test.store}: the reference itself got {each.detail}",
                style="yellow",
            )


def _print(score: Score) -> None:
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
                "difference": difference(site, source_of(site)),
            }
            for site, outcome in ((site, score.outcomes[site.id]) for site in score.drawn)
        ],
    }
