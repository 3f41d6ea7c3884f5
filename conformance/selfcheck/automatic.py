"""Bugs that a program plants: which there are, which are drawn, the tests that meet each of them, and the score."""

from __future__ import annotations

import difflib
import hashlib
import math
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from holdfast.conformance.run.plan import Form, plan_of
from holdfast.conformance.run.settings import REFERENCE
from holdfast.conformance.selfcheck.tasks import Attack, Beginning, End, Outcome, Sites, Trace, Traced, Trial
from holdfast.conformance.selfcheck.workers import Workers
from holdfast.specs import Contract
from holdfast.specs.automatic import MOST_EQUIVALENT, Equivalent, Site, load_automatic
from holdfast.specs.faults import FaultLayer
from holdfast.specs.mutants import load_mutants
from holdfast.specs.registry import installed

# `--automatic` chooses this number of mutants of each contract, or all if there are fewer.
COUNT = 400
# Nothing of a contract begins later than this, so that what runs then ends within its hour.
MINUTES = 54.0
SEED = "automatic"


class ListingError(Exception):
    """The sites of a reference cannot be listed, or its source has changed since."""


def listed(contract: str) -> tuple[Sites, tuple[Site, ...]]:
    """Every site of a contract's reference, in the order of its source. Raises ListingError."""
    command = [*REFERENCE, "sites", "--contract", contract]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        raise ListingError(done.stderr.decode(errors="replace").strip() or f"exit {done.returncode}")
    first, *others = done.stdout.splitlines()
    return msgspec.json.decode(first, type=Sites), tuple(msgspec.json.decode(line, type=Site) for line in others)


def source_of(site: Site) -> str:
    """The source that the site is in. Raises ListingError if it has changed: no mutant can be made of it any more."""
    data = (installed(site.contract).reference.above.path / site.file).read_bytes()
    if hashlib.sha256(data).hexdigest() != site.digest:
        raise ListingError(f"{site.file} has changed since its places were listed; run it again")
    return data.decode()


def drawn(sites: Sequence[Site], *, count: int, seed: str) -> tuple[Site, ...]:
    """`count` of the sites in their order, the same for the same seed and the same source; all if there are fewer.

    Each site has a rank of its own, so a change of the source draws anew only what it touches.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    ranks: dict[str, bytes] = {}
    for site in sites:
        what = (site.contract, site.file, site.function, site.operator, site.code, site.was, site.text)
        seen[what] += 1
        ranks[site.id] = hashlib.sha256(repr((seed, what, seen[what])).encode()).digest()
    chosen = frozenset(sorted(ranks, key=ranks.__getitem__)[:count])
    return tuple(site for site in sites if site.id in chosen)


def equivalents(contract: str, sites: Sequence[Site]) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """The sites that are listed as equivalent, with the argument; and what is wrong with the list, in sentences."""
    found: dict[str, str] = {}
    problems = []
    for entry in load_automatic(contract).equivalent:
        ids = [site.id for site in sites if _is_of(entry, site)]
        if not ids:
            where = f"{entry.operator} of {entry.was!r} in {entry.function or entry.file}"
            problems.append(f"automatic.yaml lists {where}, and there is none; remove the entry or write it anew")
        found.update(dict.fromkeys(ids, entry.why))
    return found, tuple(problems)


def _is_of(entry: Equivalent, site: Site) -> bool:
    return (
        entry.file == site.file
        and entry.function == site.function
        and entry.operator == site.operator
        and entry.code == site.code
        and entry.was == site.was
        and entry.text == site.text
    )


# The layers of faults that concern what is durable, the most telling first. They crash the adapter again and again.
_DURABLE: Mapping[str, tuple[str, ...]] = {
    "sync": ("power-loss", "failed-sync", "kill"),
    "pragma": ("power-loss", "kill", "failed-sync", "crash-in-recovery", "store-locked"),
    "isolation": ("kill", "power-loss", "store-locked"),
}
# Every other change meets the layers that strike a few times.
_OFTEN = (FaultLayer.POWER_LOSS, FaultLayer.KILL, FaultLayer.KILL_WITHIN_WRITE, FaultLayer.CRASH_IN_RECOVERY)
_SELDOM = tuple(layer.value for layer in FaultLayer if layer not in _OFTEN)
# How many tests are traced by a worker before it takes the next ones.
_TRACED_AT_ONCE = 8
# The first number is that of mutants that are few; each of these meets the second number of scripts at a time.
_FEW, _FEW_SCRIPTS = 16, 32


def stores_of(contract: str) -> tuple[str, ...]:
    """The stores with which the reference of a contract is run."""
    return load_automatic(contract).stores or (load_mutants(contract).store,)


def portions(contract: Contract, *, mutants: int) -> list[Sequence[str]]:
    """The cases that are traced and tried together, the next ones only if a mutant survives those before.

    Suites take most of the time, so they come last. A few mutants are mostly killed by the first scripts.
    """
    scripts = [planned.id for planned in plan_of(contract) if planned.form is Form.SCRIPT]
    suites = [planned.id for planned in plan_of(contract) if planned.form is Form.SUITE]
    size = _FEW_SCRIPTS if mutants <= _FEW else len(scripts)
    return [*(scripts[start : start + size] for start in range(0, len(scripts), max(size, 1))), suites]


def traces(workers: Workers, *, stores: Sequence[str], cases: Sequence[str]) -> list[Traced]:
    """What each of these cases executes, with each store."""
    tasks = [
        Trace(tuple(Trial(store, case) for case in cases[start : start + _TRACED_AT_ONCE]))
        for store in stores
        for start in range(0, len(cases), _TRACED_AT_ONCE)
    ]
    return list(workers.results(tasks, Traced))


def attacks(
    contract: Contract,
    sites: Sequence[Site],
    traced: Sequence[Traced],
    *,
    faults: bool,
    cases: Collection[str] | None = None,
) -> list[Attack]:
    """Each mutant with the tests that execute its lines, the cheapest first; with the faults that concern it.

    `cases`: with these tests alone.

    A test that executes them with several stores is run with the one with which it is cheapest.
    """
    meeting: dict[tuple[str, int], set[int]] = {}
    known = sorted((each for each in traced if each.test.case and each.conforms), key=lambda each: each.seconds)
    for number, each in enumerate(known):
        for place in _places(each.lines):
            meeting.setdefault(place, set()).add(number)
    launched: dict[tuple[str, int], set[str]] = {}
    for each in traced:
        for place in () if each.test.case else _places(each.lines):
            launched.setdefault(place, set()).add(each.test.store)
    made = []
    for site in sites:
        places = _places(site.lines)
        numbers = sorted({number for place in places for number in meeting.get(place, ())})
        launchers = {store for place in places for store in launched.get(place, ())}
        if launchers:
            # Every session works on what the launcher has made.
            numbers = [number for number, each in enumerate(known) if each.test.store in launchers]
        met: dict[str, Trial] = {}
        for number in numbers:
            met.setdefault(known[number].test.case, known[number].test)
        stores = tuple(dict.fromkeys(trial.store for trial in met.values())) or stores_of(contract.name)
        striking = _faults_for(contract, site, stores) if faults else ()
        tests = tuple(trial for trial in met.values() if cases is None or trial.case in cases)
        made.append(Attack(site, tests, bool(launchers), striking))
    return made


def _places(lines: Mapping[str, Sequence[int]]) -> list[tuple[str, int]]:
    return [(file, line) for file, numbers in lines.items() for line in numbers]


def _faults_for(contract: Contract, site: Site, stores: Sequence[str]) -> tuple[Trial, ...]:
    layers = _DURABLE.get(site.operator, _SELDOM)
    cases = [(layers.index(each.layer.value), each.id) for each in contract.faults if each.layer.value in layers]
    return tuple(Trial(store, case) for _, case in sorted(cases) for store in stores)


def outcomes(attacked: Sequence[Attack], workers: Workers, *, until: float = math.inf) -> Iterator[Outcome]:
    """What comes of each mutant, as it comes. Mutants that no test meets, or none before `until`, are not there.

    A mutant for which the machine was too busy is tried once more when the others are done.
    """
    again: list[Attack] = []
    by_id = {each.site.id: each for each in attacked if each.tests or each.faults}
    for outcome in workers.results(list(by_id.values()), Outcome, until=until):
        if outcome.end is End.NOT_TRIED:
            again.append(by_id[outcome.id])
        else:
            yield outcome
    yield from workers.results(again, Outcome, until=until)


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


def score_of(
    contract: Contract,
    *,
    jobs: int,
    say: Callable[[str], None],
    count: int = COUNT,
    seed: str = SEED,
    only: Sequence[str] = (),
    minutes: float = MINUTES,
) -> Score:
    """What came of the mutants of one contract; `say` gets a line of progress. Raises ListingError, WorkerError."""
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
                for each in new:
                    if not each.conforms:
                        test, said = each.test, each.detail
                        say(f"left out: {test.case} with store {test.store}: the reference itself got {said}")
                traced += new
                attacked = attacks(contract, left, traced, cases=cases, faults=not cases)
                found = _tried(attacked, workers, found, until=until, say=say)
                left = _left(left, found)
                if not left:
                    break
    return Score(contract.name, seed, len(sites), chosen, found, equivalent, problems)


def _left(sites: Sequence[Site], found: Mapping[str, Outcome]) -> list[Site]:
    """Those that were not killed so far."""
    return [site for site in sites if site.id not in found or not found[site.id].end.is_kill]


def _tried(
    attacked: Sequence[Attack],
    workers: Workers,
    before: Mapping[str, Outcome],
    *,
    until: float,
    say: Callable[[str], None],
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
            say(f"{outcome.end.value} {outcome.id}")
    for name in waiting:
        found[name] = msgspec.structs.replace(found[name], end=End.NOT_TRIED, detail="the time was over")
    return found
