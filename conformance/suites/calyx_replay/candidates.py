"""What a history of a mailbox can do next, and what it would meet there: the situations that steering counts.

A situation of a letter is what became of it, how it came, where the clock is now, and what was done with it last. One
of the mailbox is what lies in it and in the folder of version 0. Both are read from the model alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

from holdfast.conformance.attacks.explore import Candidate, Pair
from holdfast.conformance.suites.calyx_replay.envelopes import FORGERIES, UNSOUND, LeftBehind
from holdfast.conformance.suites.calyx_replay.generate import POINTS, WORKERS, Step, leap
from holdfast.conformance.suites.calyx_replay.model import Left, Letter, State, Terms

# The command line may go by the clock of the machine: somewhere between these.
MACHINE = (datetime(2025, 1, 1, tzinfo=UTC), datetime(2099, 12, 31, tzinfo=UTC))
_SECOND = timedelta(seconds=1)
# The clock goes back no further.
_FIRST_YEAR = 1980
# What is done with a letter, and remembered as the last thing that was.
_LAST = ("send", "again", "same id", "leave one", "leave an id", "prune near", "forge")
# With which operations what was pruned is looked for.
_AFTER_PRUNES = (*_LAST, "clock to", "migrate", "restart", "send from ahead", "leap", "command prune")
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
_BECAME = (
    "it is recorded",
    "it never came",
    *(f"{by} has pruned it" for by in (*dict.fromkeys(_BY.values()), _BY_RECEIPT)),
)
_PLACES = ("in the window", "too early", "too late")
# Features of a letter that came, and of every letter.
_OF_CAME = ("delivered", "migrated", "the clock went back", *(f"from ahead, {where}" for where in _PLACES))
_OF_ALL = (*_PLACES, "its id came with another")
_NAMING = ("again", "same id", "leave one", "leave an id", "prune near", "clock to", "forge")
# What a forgery can be about.
_FORGED = ("it never came", "it is recorded", "its id is blocked", "its envelope is left", "last: ")
# A letter whose envelope is left cannot be one of which the id alone is left.
_NO_ID = ("migrated", "its envelope is left", "last: leave one")
_MAILBOX = (
    "something is recorded",
    "nothing is recorded",
    "a record is older than the retention",
    "a record is older than the shortest retention",
    "a record is ahead of the clock",
    "a cutoff is in the window",
    "the clock is behind a cutoff",
    "an id is blocked",
    *(f"{by} has pruned" for by in (*dict.fromkeys(_BY.values()), _BY_RECEIPT)),
    "there is no list",
    "the list is unsound",
    "the list is new",
    "the list was taken over",
    "another list was taken over",
)
# Features of a list, by what it names.
_ENVELOPES = tuple(f"an envelope is left that {what}" for what in ("never came", "was recorded", "is recorded"))
_ALONE = ("an id is listed alone that never came", "an id is listed alone that came")
_TWIN_LEFT, _BLOCKED_LEFT = "an envelope is left whose id came with another", "an envelope is left whose id is blocked"
_BLOCKED_ALONE, _TWICE = "an id is listed alone that is blocked", "an id is listed twice"
# A letter in the window that a prune has removed, and then another prune with a lower cutoff took place.
_LOWER = "a lower cutoff came second"
_LISTS = (*_ENVELOPES, *_ALONE, _TWIN_LEFT, _BLOCKED_LEFT, _BLOCKED_ALONE, _TWICE)
_BLOCKED_EARLIER = "its id is blocked by an earlier list"
# How many of what is listed are looked at.
_LISTED = 40
# What a sound mailbox may leave to others, or do by another clock: it is looked for, and not owed.
_OPEN = ("a start", "the command line")


def wanted(not_claimed: Collection[str], *, after_prunes: bool = False) -> frozenset[Pair]:
    """The pairs that the model can reach with this adapter; or those of letters that a prune has removed."""
    came = [f"{became}, {what}" for became in _BECAME for what in _OF_CAME if became != "it never came"]
    came += [f"{became}, near the cutoff" for became in _BECAME if became.startswith("an operator")]
    came += [f"{became}, {_LOWER}" for became in _BECAME if became.startswith("an operator")]
    letters = [*came, *(f"{became}, {what}" for became in _BECAME for what in _OF_ALL)]
    letters += [f"its id is blocked, {where}" for where in _PLACES]
    letters += [
        _BLOCKED_EARLIER,
        "its envelope is left",
        "its id is left",
        *(f"last: {name}" for name in (*_LAST, "migrate")),
    ]
    moments = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
    steps = [each for now in moments for each in _anywhere(Random(0), now) if _can(each[1], now, not_claimed)]  # noqa: S311
    names = (*(name for name in _NAMING if name != "forge"), *dict.fromkeys(name for name, _, _ in steps))
    if after_prunes:
        letters = [feature for feature in letters if "pruned it" in feature]
        names = tuple(name for name in names if name in _AFTER_PRUNES)
    found = {(feature, name) for feature in letters for name in _NAMING if not _is_contrary(feature, name)}
    found |= {(feature, name) for feature in _MAILBOX for name in names}
    found |= {(feature, name) for feature in _LISTS for name in names if "migrat" in name}
    return frozenset(pair for pair in found if "command_line" not in not_claimed or "command line" not in pair[0])


def owed(pairs: frozenset[Pair]) -> frozenset[Pair]:
    """Those that every adapter reaches, whenever it prunes by itself, and by whichever clock."""
    return frozenset(pair for pair in pairs if not pair[0].startswith(_OPEN) and not pair[1].startswith("command"))


def _is_contrary(feature: str, name: str) -> bool:
    return (name == "leave an id" and feature.endswith(_NO_ID)) or (name == "forge" and not feature.startswith(_FORGED))


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


def situations(
    terms: Terms, state: State, now: datetime, made: Sequence[Letter], left: LeftBehind, traces: TraceLog
) -> dict[str, frozenset[str]]:
    """The features of each letter by its key, and of the mailbox by an empty one."""
    ids: dict[str, set[str]] = {}
    for letter in made:
        ids.setdefault(letter.msg_id, set()).add(letter.key)
    found = {"": frozenset((*_around(terms, state, now, left, traces), *_listed(state, left, ids)))}
    for letter in made:
        twins = ids[letter.msg_id] - {letter.key}
        found[letter.key] = frozenset(_letter(terms, state, now, letter, left, traces, twins))
    return found


def offered(
    dice: Random,
    window: timedelta,
    now: datetime,
    made: Sequence[Letter],
    left: LeftBehind,
    found: Mapping[str, frozenset[str]],
    not_claimed: Collection[str],
) -> list[Candidate[Step]]:
    """All that can be done now, in these situations; with one letter of each situation, the latest.

    What version 0 left from beyond the window is not migrated here.
    """
    offers = [
        Candidate(name, found[""], step, cost=cost)
        for name, step, cost in _anywhere(dice, now)
        if _can(step, now, not_claimed) and ("migrate" not in name or left.latest <= now + window)
    ]
    met: set[frozenset[str]] = set()
    for which, letter in enumerate(reversed(made)):
        if found[letter.key] not in met:
            met.add(found[letter.key])
            around = found[""] | found[letter.key]
            steps = _with_letter(dice, now, which, letter, left, window.total_seconds())
            offers += [Candidate(_name(step), around, step, letter.key) for step in steps]
    return offers


def _name(step: Step) -> str:
    """The name of an operation on a letter."""
    return "forge" if step.what.startswith("forge") else step.what


def _can(step: Step, now: datetime, not_claimed: Collection[str]) -> bool:
    """Whether the adapter has what it takes, and the clock is where it can be done."""
    if step.what.startswith("command"):
        return "command_line" not in not_claimed and now > MACHINE[1]
    return not (step.point and "hold_at" in not_claimed)


# Situations


def _around(terms: Terms, state: State, now: datetime, left: LeftBehind, traces: TraceLog) -> Iterator[str]:
    """The features of the mailbox, its clock, and what version 0 left."""
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
    yield from sorted({f"{by} has pruned" for by in traces.gone.values()})
    if left.now is None:
        yield "there is no list"
    elif not left.now.sound:
        yield "the list is unsound"
    else:
        yield "the list is new" if left.now is not traces.migrated else "the list was taken over"
        if traces.migrated not in (None, left.now):
            yield "another list was taken over"


def _listed(state: State, left: LeftBehind, ids: Mapping[str, Collection[str]]) -> Iterator[str]:
    """The features of what is listed: of the envelopes that are left, and of the ids that are there alone."""
    if left.now is None or not left.now.sound:
        return
    for msg_id in left.now.listed[:_LISTED]:
        letter, keys = left.now.letters.get(msg_id), ids.get(msg_id, ())
        if letter is None:
            yield _ALONE[not state.known.isdisjoint(keys)]
            if msg_id in state.blocked:
                yield _BLOCKED_ALONE
        else:
            yield _ENVELOPES[(letter.key in state.known) + (letter.key in state.records)]
            if letter.key not in state.known and not state.records.keys().isdisjoint(keys):
                yield _TWIN_LEFT
            if msg_id in state.blocked:
                yield _BLOCKED_LEFT
    if left.now.twice:
        yield _TWICE


def _letter(
    terms: Terms,
    state: State,
    now: datetime,
    letter: Letter,
    left: LeftBehind,
    traces: TraceLog,
    twins: Collection[str],
) -> Iterator[str]:
    """The features of one letter."""
    became = "it is recorded" if letter.key in state.records else "it never came"
    if letter.key in traces.gone:
        became = f"{traces.gone[letter.key]} has pruned it"
    elif letter.key in state.known and letter.key not in state.records:
        became = "it was recorded"
    ahead = letter.at - now
    where = "in the window" if abs(ahead) <= terms.window else "too early" if ahead > timedelta() else "too late"
    yield f"{became}, {where}"
    came = traces.came.get(letter.key)
    if came is not None:
        how = "delivered" if letter.key in state.delivered else "migrated"
        yield f"{became}, {how}"
        if came > now:
            yield f"{became}, the clock went back"
        is_near = timedelta() <= letter.at - state.surely < terms.window
        if letter.key not in state.records and where == _PLACES[0] and is_near:
            yield f"{became}, near the cutoff"
        if state.last < state.surely and letter.key in traces.gone and where == _PLACES[0]:
            yield f"{became}, {_LOWER}"
        if letter.at > came + _SECOND:
            yield f"{became}, from ahead, {where}"
    if not state.known.isdisjoint(twins):
        yield f"{became}, its id came with another"
    if letter.msg_id in state.blocked:
        yield f"its id is blocked, {where}"
        end = state.blocked[letter.msg_id][0]
        blocks = letter.at <= end and end >= state.perhaps + terms.window and where == _PLACES[0]
        # A list was taken over that does not name it, after one that did.
        if blocks and left.now is not None and left.now is traces.migrated and letter.msg_id not in left.now.listed:
            yield _BLOCKED_EARLIER
    if left.now is not None and letter.msg_id in left.now.listed:
        yield "its envelope is left" if letter.msg_id in left.now.letters else "its id is left"
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
        ("prune too much", amount(0, 599.9)),
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
    yield "restart", Step("restart", worker()), _PROCESS
    for what in ("send", "prune", "migrate"):
        seconds = 600 if what == "prune" else 0
        yield f"abort {what}", Step(what, worker(), seconds=seconds, point=dice.choice(POINTS)), 1
        point = "" if what != "send" or dice.randrange(3) == 0 else dice.choice(POINTS)
        moment = 0 if point else amount(0, 0.01)
        yield f"kill {what}", Step(f"kill {what}", worker(), seconds=moment, point=point), 2 * _PROCESS
    for command in ("prune", "migrate"):
        yield f"command {command}", Step(f"command {command}", worker()), _COMMAND
    if now <= MACHINE[1]:
        yield "leap", leap(dice), 1


def _with_letter(
    dice: Random, now: datetime, which: int, letter: Letter, left: LeftBehind, width: float
) -> Iterator[Step]:
    """Steps that name a letter."""
    worker = dice.randrange(WORKERS)
    yield Step("again", worker, which)
    yield Step("same id", worker, which)
    yield Step(f"forge {dice.choice(tuple(FORGERIES))}", worker, which)
    yield Step("leave one", which=which, seconds=dice.randrange(2))
    if not left.has(letter.msg_id):
        yield Step("leave an id", which=which, seconds=dice.randrange(2))
    yield Step("prune near", worker, which, dice.choice((0.9, 0.00005, -0.3)))
    distance = dice.choice((0.0, width, -width, round(dice.uniform(-width, width), 6)))
    yield Step("clock to", which=which, seconds=(letter.at - now).total_seconds() + distance)
