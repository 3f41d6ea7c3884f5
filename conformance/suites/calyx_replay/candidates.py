"""What a history of a mailbox can do next, and what it would meet there: the situations that steering counts.

A situation of a letter is what became of it, how it came, where the clock is now, and what was done with it last. One
of the mailbox is what lies in it and in the folder of version 0. Both are read from the model alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from random import Random

from holdfast.conformance.attacks.explore import Candidate
from holdfast.conformance.suites.calyx_replay.envelopes import FORGERIES, UNSOUND, LeftBehind
from holdfast.conformance.suites.calyx_replay.generate import POINTS, WORKERS, Step, leap
from holdfast.conformance.suites.calyx_replay.model import BEGINNING, NEVER, Left, Letter, State, Terms

# The command line may go by the clock of the machine: somewhere between these.
MACHINE = (datetime(2025, 1, 1, tzinfo=UTC), datetime(2099, 12, 31, tzinfo=UTC))
_SECOND = timedelta(seconds=1)
# The clock goes back no further.
_FIRST_YEAR = 1980
# Beyond any window, in seconds.
_FAR_S = 1e9
# What is done with a letter, and remembered as the last thing that was.
_LAST = ("send", "again", "same id", "leave one", "leave an id", "prune near", "forge")
# How near to an age a retention comes: fractions of a second, so that whole seconds are wrong. A number of hours says a
# time to a few microseconds.
_DELTAS = (0.9, 0.3, 0.001, 0.00005)
# How far from an instant a step comes that is about its very microsecond, in seconds.
_BESIDE_S = (-0.5, -0.000001, 0.0, 0.000001)
# A step that starts a process takes as long as this number of calls.
_PROCESS, _COMMAND = 4.0, 12.0

# Who pruned, by the step that showed it.
_BY = {
    "prune": "an operator",
    "command": "the command line",
    "restart": "a start",
    "kill": "a start",
    "crash": "a start",
}
_BY_RECEIPT = "a receipt"
# What a forgery can be about.
_FORGED = ("it never came", "it is recorded", "its id is blocked", "its envelope is left", "last: ")
# What a list is about.
_OF_LISTS = ("an envelope is left", "an id is listed")
# How many of what is listed are looked at.
_LISTED = 40


@dataclass(slots=True)
class TraceLog:
    """What the state of the model does not say of what came before: by key, and of the last migration and start."""

    last: dict[str, str] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)
    came: dict[str, datetime] = field(default_factory=dict)
    migrated: Left | None = None

    def note(self, step: Step, made: Sequence[Letter], left: Left | None, before: State, after: State) -> None:
        """A step was done. `left` is what version 0 has left."""
        verb, name = step.what.partition(" ")[0], _name(step)
        if name in _LAST and made:
            # A new letter is the last that was made.
            is_new = name in ("send", "same id") or step.what.startswith("forge new")
            named = made[-1] if is_new else made[-1 - step.which % len(made)]
            self.last[named.key] = name
        for key in before.records.keys() - after.records.keys():
            self.gone[key] = _BY.get(verb, _BY_RECEIPT)
        for key, record in after.records.items():
            if key not in before.records:
                self.gone.pop(key, None)
                self.came[key] = record.came
        if step.what in ("migrate", "command migrate"):
            self.migrated = left
            self.last.update({letter.key: "migrate" for letter in made if letter.key in after.records})


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a step would meet."""

    terms: Terms
    state: State
    now: datetime
    made: Sequence[Letter]
    left: LeftBehind
    traces: TraceLog


def offered(dice: Random, at: Snapshot, not_claimed: Collection[str]) -> list[Candidate[Step]]:
    """All that can be done now, with what it meets; with one letter of each situation, the latest.

    What version 0 left from beyond the window is not migrated here.
    """
    ids: dict[str, set[str]] = {}
    for letter in at.made:
        ids.setdefault(letter.msg_id, set()).add(letter.key)
    around = frozenset((*_around(at), *_listed(at, ids)))
    offers = [
        Candidate(name, _counting(name, around, remembers=at.terms.remembers), step, cost)
        for name, step, cost in _anywhere(dice, at.now)
        if _can(step, at, not_claimed) and ("migrate" not in name or at.left.latest <= at.now + at.terms.window)
    ]
    met: set[frozenset[str]] = set()
    for which, letter in enumerate(reversed(at.made)):
        features = frozenset(_letter(at, letter, ids[letter.msg_id] - {letter.key}))
        if features not in met:
            met.add(features)
            steps = [(_name(step), step) for step in _with_letter(dice, at, which, letter)]
            steps += _near_its_age(dice, at, which, letter)
            features |= around
            offers += [
                Candidate(name, _counting(name, features, remembers=at.terms.remembers), step) for name, step in steps
            ]
            ends = ((what, (end - at.now).total_seconds()) for what, end in _ends(at, letter))
            offers += [
                Candidate(f"{what} {more:+f} s", frozenset({what}), Step("clock to", seconds=end + more), 0.5)
                for what, end in ends
                for more in _BESIDE_S
            ]
    # Letters that are dated a window behind a cutoff, or just not.
    edge = (at.state.surely - at.now + at.terms.window).total_seconds() if at.state.surely > BEGINNING else _FAR_S
    if abs(edge) < at.terms.window.total_seconds():
        what = "send a window behind a cutoff"
        dated = ((more, Step("send dated", dice.randrange(WORKERS), seconds=edge + more)) for more in _BESIDE_S)
        offers += [Candidate(f"{what} {more:+f} s", frozenset({f"{what}: pruned"}), step) for more, step in dated]
    return offers


def _ends(at: Snapshot, letter: Letter) -> Iterator[tuple[str, datetime]]:
    """Instants at which something ends for a letter."""
    record, (end, _) = at.state.records.get(letter.key), at.state.blocked.get(letter.msg_id, (BEGINNING, BEGINNING))
    if record is not None and record.latest < NEVER:
        yield "to the end of its retention", record.latest + at.terms.retention
    if BEGINNING < end < NEVER:
        yield "to the end of its block", end


@lru_cache(maxsize=4096)
def _counting(name: str, features: frozenset[str], *, remembers: bool) -> frozenset[str]:
    """The features that matter to an operation, and to a mailbox that remembers its prunes."""
    if name == "forge":
        features = frozenset(each for each in features if each.startswith(_FORGED))
    elif "migrate" not in name:
        features = frozenset(each for each in features if not each.startswith(_OF_LISTS))
    return frozenset(each for each in features if "prune" in each) if remembers else features


def _name(step: Step) -> str:
    """The name of an operation on a letter."""
    return "forge" if step.what.startswith("forge") else "send" if step.what == "send dated" else step.what


def _can(step: Step, at: Snapshot, not_claimed: Collection[str]) -> bool:
    """Whether the adapter has what it takes, and the clock is where it can be done."""
    if step.what.startswith("command"):
        return "command_line" not in not_claimed and at.now > MACHINE[1]
    # A record that is older than its letter says nothing of the cutoff behind which that can be new.
    if step.what == "insert old" and at.terms.remembers:
        return False
    return not (step.point and "hold_at" in not_claimed)


# Situations


def _around(at: Snapshot) -> Iterator[str]:
    """The features of the mailbox, its clock, and what version 0 left."""
    terms, state, now, left = at.terms, at.state, at.now, at.left.now
    ages = [now - record.latest for record in state.records.values()]
    yield "something is recorded" if ages else "nothing is recorded"
    if any(age > terms.retention for age in ages):
        yield "a record is older than the retention"
    if any(terms.least < age <= terms.retention for age in ages):
        yield "a record is older than the shortest retention"
    if any(age < timedelta() for age in ages):
        yield "a record is ahead of the clock"
    if state.surely >= now - terms.least:
        yield "the clock is behind a cutoff" if state.surely > now else "a cutoff is in the window"
    if any(now - terms.window <= last for _, last in state.blocked.values()):
        yield "an id is blocked"
    yield from sorted({f"{by} has pruned" for by in at.traces.gone.values()})
    if left is None:
        yield "there is no list"
    elif not left.sound:
        yield "the list is unsound"
    else:
        yield "the list is new" if left is not at.traces.migrated else "the list was taken over"
        if at.traces.migrated not in (None, left):
            yield "another list was taken over"


def _listed(at: Snapshot, ids: Mapping[str, Collection[str]]) -> Iterator[str]:
    """The features of what is listed: of the envelopes that are left, and of the ids that are there alone."""
    state, left = at.state, at.left.now
    if left is None or not left.sound:
        return
    for msg_id in left.listed[:_LISTED]:
        letter, keys = left.letters.get(msg_id), ids.get(msg_id, ())
        what = "an id is listed alone" if letter is None else "an envelope is left"
        if letter is None:
            yield f"{what} that {'never came' if state.known.isdisjoint(keys) else 'came'}"
        else:
            came = (letter.key in state.known) + (letter.key in state.records)
            yield f"{what} that {('never came', 'was recorded', 'is recorded')[came]}"
            if letter.key not in state.known and not state.records.keys().isdisjoint(keys):
                yield f"{what} whose id came with another"
        if msg_id in state.blocked:
            yield f"{what} whose id is blocked"
    if left.twice:
        yield "an id is listed twice"


def _letter(at: Snapshot, letter: Letter, twins: Collection[str]) -> Iterator[str]:
    """The features of one letter."""
    state, now, window, traces, left = at.state, at.now, at.terms.window, at.traces, at.left.now
    became = "it is recorded" if letter.key in state.records else "it never came"
    if letter.key in traces.gone:
        became = f"{traces.gone[letter.key]} has pruned it"
    elif letter.key in state.known and letter.key not in state.records:
        became = "it was recorded"
    in_window = abs(letter.at - now) <= window
    record = state.records.get(letter.key)
    if record is not None and record.spelt is not None:
        yield "an older version recorded it"
    where = "in the window" if in_window else "too early" if letter.at > now else "too late"
    yield f"{became}, {where}"
    came = traces.came.get(letter.key)
    if came is not None:
        yield f"{became}, {'delivered' if letter.key in state.delivered else 'migrated'}"
        if came > now:
            yield f"{became}, the clock went back"
        if in_window and letter.key not in state.records and timedelta() <= letter.at - state.surely < window:
            yield f"{became}, near the cutoff"
        if in_window and letter.key in traces.gone and state.last < state.surely:
            yield f"{became}, a lower cutoff came second"
        if letter.at > came + _SECOND:
            yield f"{became}, from ahead, {where}"
    if not state.known.isdisjoint(twins):
        yield f"{became}, its id came with another"
    if letter.msg_id in state.blocked:
        yield f"its id is blocked, {where}"
        end = state.blocked[letter.msg_id][0]
        blocks = letter.at <= end and end >= state.perhaps + window and in_window
        # A list was taken over that does not name it, after one that did.
        if blocks and left is not None and left is traces.migrated and letter.msg_id not in left.listed:
            yield "its id is blocked by an earlier list"
    if left is not None and letter.msg_id in left.listed:
        yield "its envelope is left" if letter.msg_id in left.letters else "its id is left"
    if letter.key in traces.last:
        yield f"last: {traces.last[letter.key]}"


# Steps


def _anywhere(dice: Random, now: datetime) -> Iterator[tuple[str, Step, float]]:
    """Steps that name no letter, each with the name of its operation and its cost."""

    def worker() -> int:
        return dice.randrange(WORKERS)

    def amount(least: float, most: float) -> float:
        return round(dice.uniform(least, most), 6)

    for name, seconds in (
        ("send", dice.choice((0, amount(-290, 0)))),
        ("send from ahead", dice.choice((300, amount(1, 300)))),
        ("send too early", amount(300.000001, 5000)),
        ("send too late", -amount(300.000001, 90_000)),
    ):
        yield name, Step("send", worker(), seconds=seconds), 1
    yield "forge new", Step(f"forge new {dice.choice(tuple(FORGERIES))}", worker()), 1
    for name, seconds in (
        ("prune", 0),
        ("prune to the shortest", dice.choice((600, 600.25, amount(600, 900)))),
        ("prune to more", amount(3600, 3 * 86_400)),
        ("prune too much", dice.choice((-1, -86_400, 0.000001, 598.5, 599.99, amount(0, 599.9)))),
    ):
        yield name, Step("prune", worker(), seconds=seconds), 1
    for name, least, most in (
        ("a little on", 0.000001, 60),
        ("on past the window", 300, 700),
        ("on past the shortest retention", 601, 7200),
        ("a day on", 86_000, 100_000),
        ("days on", 100_000, 350_000),
        ("far ahead", 1e6, 4e7),
        ("a little back", -60, -0.000001),
        ("an hour back", -7200, -601),
        ("a day back", -100_000, -86_000),
        ("far back", -4e7, -1e6),
    ):
        if least > 0 or now.year > _FIRST_YEAR:
            yield name, Step("clock", seconds=amount(least, most)), 0.5
    yield "migrate", Step("migrate", worker()), 1
    lists = (dice.randrange(3), dice.randrange(3), dice.randrange(3))
    yield "leave", Step("leave", lists=lists), 0.5
    yield "leave unsound", Step("leave unsound", which=dice.randrange(UNSOUND), lists=(1, 1, 1)), 0.5
    yield "insert", Step("insert", which=dice.randrange(1, 4), seconds=amount(1, 200_000)), 1
    yield "insert old", Step("insert old", which=dice.randrange(2**16), seconds=amount(100, 80_000)), 1
    yield "restart", Step("restart", worker()), _PROCESS
    yield "crash", Step("crash"), 2 * _PROCESS
    for what in ("send", "prune", "migrate"):
        seconds = 600 if what == "prune" else 0
        yield f"abort {what}", Step(what, worker(), seconds=seconds, point=dice.choice(POINTS)), 1
        point = "" if what != "send" or dice.randrange(3) == 0 else dice.choice(POINTS)
        moment = 0 if point else amount(0, 0.01)
        yield f"kill {what}", Step(f"kill {what}", worker(), seconds=moment, point=point), 2 * _PROCESS
    for command in ("prune", "migrate", "inspect"):
        yield f"command {command}", Step(f"command {command}", worker()), _COMMAND
    if now <= MACHINE[1]:
        yield "leap", leap(dice), 1


def _near_its_age(dice: Random, at: Snapshot, which: int, letter: Letter) -> Iterator[tuple[str, Step]]:
    """Prunes whose retention is a little longer than the age of a record, or a little shorter."""
    record = at.state.records.get(letter.key)
    if record is not None and at.now - record.latest > at.terms.least + 2 * _SECOND:
        for what, sign in (("prune near, to keep it", 1), ("prune near, to remove it", -1)):
            yield what, Step("prune near", dice.randrange(WORKERS), which, sign * dice.choice(_DELTAS))


def _with_letter(dice: Random, at: Snapshot, which: int, letter: Letter) -> Iterator[Step]:
    """Steps that name a letter."""
    worker, width = dice.randrange(WORKERS), at.terms.window.total_seconds()
    yield Step("again", worker, which)
    yield Step("same id", worker, which)
    yield Step(f"forge {dice.choice(tuple(FORGERIES))}", worker, which)
    yield Step("leave one", which=which, seconds=dice.randrange(2))
    if not at.left.has(letter.msg_id):
        yield Step("leave an id", which=which, seconds=dice.randrange(2))
    distance = dice.choice((0.0, width, -width, round(dice.uniform(-width, width), 6)))
    yield Step("clock to", which=which, seconds=(letter.at - at.now).total_seconds() + distance)
