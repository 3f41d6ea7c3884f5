"""The steps of histories of a registrar, and how any number of them is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

from holdfast.conformance.attacks.histories import Deck


@dataclass(frozen=True, slots=True)
class Step:
    """One step: `what` is done, by which `worker`, with which key and `nonce`, and `how` it is unusual.

    `number` is a choice among as many as there are. `rival` is what another worker does at the same time; where it
    overtakes, its own rival is what the same worker does after it.
    """

    what: str
    key: int = 0
    worker: int = 0
    nonce: str = "fresh"
    how: str = ""
    number: int = 0
    seconds: float = 0
    rival: Step | None = None

    def __str__(self) -> str:
        if self.what == "clock":
            return f"clock {self.seconds:+f} s"
        words = [self.what]
        if self.what in _KEYED:
            words.append(f"key {self.key}")
        if self.what in _SUBMITTED:
            words.append(f"with a nonce {self.nonce}")
        if self.what == "retry":
            words.append("compensation" if self.number % 2 else "registration")
        if self.what == "interrupt":
            words.append(str(self.number % 4))
        if self.what in _NUMBERED or self.nonce in ("old", "elsewhere"):
            words.append(str(self.number))
        words += [self.how] if self.how else []
        return " ".join(words) + (f" | {self.rival}" if self.rival else f" at {self.worker}")


# The first of many keys.
FIRST_OF_MANY = 10_000
_SUBMITTED = frozenset(
    {"register", "compensate", "validate", "forge", "fail", "abort", "lose", "race", "interrupt", "overtake"}
)
_KEYED = _SUBMITTED | {"retry", "resolve"}
_NUMBERED = frozenset({"many", "rows", "abort", "lose"})
# How old a request is in seconds when it is sent; a negative age lies ahead.
AGES = {
    "stale": 300.000001,
    "at its last": 300.0,
    "old": 3000.0,
    "early": -30.0,
    "too early": -30.000001,
    "ahead": -36000.0,
}
# A near miss differs from an admissible submission in its nonce, or in one of its members.
# `awaited` and `outlived`: the request is dated before the window opens, or while it was open. The clock decides.
NEAR_NONCES = (
    "loose",
    "elsewhere",
    "early",
    "opening",
    "awaited",
    "closing",
    "closed",
    "outlived",
    "issued later",
    "free",
)
TAMPERED = ("claiming another artifact", "deploying another artifact", "without an attempt", "with a stranger")
_NONCES = (*NEAR_NONCES, "elsewhere", "old", "old")
# Two flaws at once: the first one in the order of the checks decides.
TWICE = ("stale, claiming another artifact", "too early, deploying another artifact", "stale, without an attempt")
_HOWS = (*AGES, *TAMPERED, *TWICE)
_MISSES = (*((nonce, "") for nonce in _NONCES), *(("fresh", how) for how in _HOWS))
_SHORT_S = (0.000001, 0.5, 1, 29.75, 60.000001, 299.5, 300.000001)
_LONG_S = (3600.5, 86400.25, 172800.75)
# Keys that several parts meet in; every other part has one of its own.
_SHARED, WORKERS = 3, 2
# The keys of two retentions, one after the other.
_KEPT = 90


def history(dice: Random, *, horizon_s: int, parts: int) -> list[Step]:
    """A history that has every kind of part, and `parts` more, in any order. Each part is a few steps."""
    kinds = [*_PARTS, *dice.choices(_PARTS, k=parts)]
    dice.shuffle(kinds)
    steps = [step for number, kind in enumerate(kinds) for step in kind(_Dice(dice, 100 + number, horizon_s))]
    own = _Dice(dice, 100, horizon_s)
    steps += _kept_again(len(steps), horizon_s)
    return [*steps, *_closing(own, sorted({step.key for step in steps if step.what in _KEYED})), *_lost(own)]


def openings(*, horizon_s: int) -> Callable[[Random], list[Step]]:
    """Draws openings of histories: keys in each state, and then the clock, retention or a restart, equally often."""
    deck = Deck(("past", "past", "kept", "back", "kept, back"))

    def draw(dice: Random) -> list[Step]:
        dealt, own = deck.deal(dice), _Dice(dice, 100, horizon_s)
        kinds = ("fail",) * 7 + ("register",) * 2
        steps = [Step(what, 100 + number, own.worker) for number, what in enumerate(kinds)]
        steps += [Step("compensate", 100, own.worker), Step("compensate", 101, own.worker)]
        over, back = Step("clock", seconds=horizon_s + dice.choice(_SHORT_S)), -dice.choice(_LONG_S)
        then = {
            "past": [over],
            "kept": [over, own.one("maintain")],
            "back": [own.one("restart"), Step("clock", seconds=back)],
            "kept, back": [over, own.one("maintain"), Step("clock", seconds=back - horizon_s)],
        }
        return [*steps, *then[dealt]]

    return draw


def volume(dice: Random, *, horizon_s: int, keys: int, rows: int) -> list[Step]:
    """Many keys and more rows, behind which each key counts, here, elsewhere and behind a restart; then retention.

    Before them come a nonce that is kept, a key that fails, and a process that is killed again and again. Behind them
    that key is compensated, and a last one registered. The first key, one between and the last one are asked for.
    """
    first, failed, last = FIRST_OF_MANY, FIRST_OF_MANY - 1, FIRST_OF_MANY + keys + rows
    between, undone = first + keys - 1, range(failed - 1000, failed - 1000 + _UNDONE)
    asked = [(key, worker) for key in (first, between, last) for worker in range(WORKERS)]
    retries = [Step("retry", key, worker, how="dated now") for key, worker in asked]
    own = _Dice(dice, first, horizon_s)
    return [
        own.one("issue"),
        own.one("fail", failed),
        *(step for key in range(_KILLS) for step in (Step("register", failed - 1 - key), Step("kill"))),
        *(Step("retry", failed - 1 - key, how="dated now") for key in range(_KILLS)),
        *(step for key in undone for step in (own.one("fail", key), own.one("compensate", key))),
        Step("many", first, number=keys),
        Step("rows", first + keys, number=rows),
        own.one("register", last),
        *retries,
        *(Step("retry", key, worker, how="stale") for key, worker in asked),
        *(Step("register", key, dice.randrange(WORKERS)) for key in (first, between, last)),
        *(Step("compensate", key, dice.randrange(WORKERS)) for key in (first, between, last)),
        # The nonce of the first key serves no other.
        Step("register", last + 1, dice.randrange(WORKERS), "old", number=2 + _KILLS + 2 * _UNDONE),
        *(Step("resolve", key, worker) for key in (first, between, last, failed) for worker in range(WORKERS)),
        Step("compensate", failed, dice.randrange(WORKERS), "old", number=0),
        *(Step("retry", key, dice.randrange(WORKERS), number=1) for key in (failed, undone[0], undone[-1])),
        own.one("restart"),
        *retries,
        own.one("resolve", first),
        Step("clock", seconds=horizon_s + dice.choice(_SHORT_S)),
        _MAINTAINED_TWICE,
        own.one("maintain"),
        *retries,
    ]


@dataclass(frozen=True, slots=True)
class _Dice:
    """What a part is drawn with: dice, a key of its own, and the horizon."""

    roll: Random
    key: int
    horizon_s: int

    @property
    def worker(self) -> int:
        """Either worker."""
        return self.roll.randrange(WORKERS)

    @property
    def any_key(self) -> int:
        """A key that other parts may have used."""
        return self.roll.randrange(_SHARED)

    def one(self, what: str, key: int = 0, *, nonce: str = "fresh", how: str = "") -> Step:
        """A step at either worker, with any number."""
        return Step(what, key, self.worker, nonce, how, self.roll.randrange(60))

    def retry(self, key: int, *, number: int = 0) -> Step:
        """An odd number is the compensation's."""
        return Step("retry", key, self.worker, how=self.roll.choice(_RETRIES), number=number)

    def misses(self, what: str, key: int, count: int) -> Iterator[Step]:
        """`count` different near misses of one call."""
        for nonce, how in self.roll.sample(_MISSES, count):
            yield self.one(what, key, nonce=nonce, how=how)


# More kills than anybody takes for chance, and more compensations than one looks through by hand.
_KILLS, _UNDONE = 8, 70
# By both workers at once.
_MAINTAINED_TWICE = Step("race", 0, 0, "loose", "maintain", rival=Step("race", 0, 1, "fresh", "maintain"))
_RETRIES = ("", "dated now", "dated now", "as another attempt")


def _registered(dice: _Dice) -> Iterator[Step]:
    """A key, nearly registered, registered, and asked for again."""
    key = dice.any_key
    yield from dice.misses(dice.roll.choice(("register", "register", "forge", "validate")), key, 3)
    yield dice.one("register", key)
    yield dice.retry(key)
    yield from dice.misses("register", key, 2)


def _failed(dice: _Dice) -> Iterator[Step]:
    """A key that fails, what is nearly its compensation, its compensation, and all of it again at either worker."""
    yield dice.one("fail", dice.key)
    yield dice.retry(dice.key)
    yield from dice.misses("compensate", dice.key, 6)
    yield dice.one("abort", dice.key, how="compensate")
    yield dice.one(dice.roll.choice(("compensate", "lose")), dice.key, how="compensate")
    yield from (dice.retry(dice.key, number=number) for number in (0, 1, 0))
    yield from dice.misses(dice.roll.choice(("register", "compensate")), dice.key, 1)
    yield dice.one("compensate", dice.any_key)


def _given_up(dice: _Dice) -> Iterator[Step]:
    """A key that fails, and that no part compensates."""
    yield dice.one("fail", dice.key)


def _closing(dice: _Dice, keys: list[int]) -> Iterator[Step]:
    """Every key once more, in the state that it has come to: at either worker, and behind retention."""
    for key in keys:
        yield from (Step("resolve", key, worker) for worker in range(WORKERS))
    yield Step("clock", seconds=dice.horizon_s + dice.roll.choice(_SHORT_S))
    yield dice.one("maintain")
    for key in keys:
        yield dice.one("compensate", key)
        yield dice.retry(key)
        yield dice.one("register", key)


def _faulty(dice: _Dice) -> Iterator[Step]:
    """A registration that meets a failpoint or a kill, and is sent again."""
    step = dice.one(dice.roll.choice(("abort", "lose", "interrupt")), dice.key, how="register")
    # A kill comes at any moment here, and at a failpoint where histories are steered.
    yield replace(step, number=step.number // 4 * 4) if step.what == "interrupt" else step
    yield dice.retry(dice.key)
    yield from dice.misses("register", dice.key, 1)
    yield dice.one("look")


def _raced(dice: _Dice) -> Iterator[Step]:
    """Two calls at once, on one key or with one nonce."""
    method, other = dice.roll.choice(
        (("register", "register"), ("register", "register"), ("compensate", "compensate"), ("register", "compensate"))
    )
    if other == "compensate":
        yield dice.one("fail", dice.key)
    nonce = dice.roll.choice(("fresh", "same"))
    elsewhere = method == other == "register" and nonce == "same" and dice.roll.random() < 0.5
    yield Step("race", dice.key, 0, "loose", method, rival=Step(other, dice.key + 1000 * elsewhere, 1, nonce, other))
    yield dice.one("look")


def _passing(dice: _Dice) -> Iterator[Step]:
    """A key is asked for again when time has gone on, for long or not, and when it has gone back."""
    yield dice.one("register", dice.key)
    yield Step("clock", seconds=dice.roll.choice(_SHORT_S + _LONG_S + _LONG_S))
    yield Step("retry", dice.key, dice.worker, how="dated now")
    yield dice.one("register", dice.key)
    yield Step("clock", seconds=-dice.roll.choice(_SHORT_S + _LONG_S))
    yield Step("retry", dice.key, dice.worker, how="dated now")


def _kept(dice: _Dice) -> Iterator[Step]:
    """Retention around the horizon of a key, by one worker, by both, or killed, and again when the clock is back."""
    yield dice.one("register", dice.key)
    beside = dice.roll.choice((-1, -0.25, -0.000001, 0.000001, 0.25, 1))
    yield Step("clock", seconds=dice.horizon_s + beside)
    yield dice.roll.choice((dice.one("maintain"), _MAINTAINED_TWICE, dice.one("interrupt", how="maintain")))
    yield dice.retry(dice.key)
    yield Step("clock", seconds=-dice.roll.choice((0.5, 1, dice.horizon_s)))
    yield dice.one("maintain")
    yield dice.one("look")


def _kept_again(number: int, horizon_s: int) -> Iterator[Step]:
    """A retention behind an earlier one, with work of its own, is killed. Nothing is drawn for it."""
    worker, over = number % WORKERS, Step("clock", seconds=horizon_s + 1)
    for key, then in ((_KEPT, "maintain"), (_KEPT + 1, "interrupt")):
        yield Step("register", key, worker)
        yield over
        # Not so early that the process has not begun.
        yield Step(then, 0, worker, "loose", "maintain" if then == "interrupt" else "", number=2 + number % 5)


def _resolved(dice: _Dice) -> Iterator[Step]:
    """What became of a key is asked for before it is registered and after."""
    workers = [dice.worker, dice.worker]
    yield Step("resolve", dice.key, workers[0], how=dice.roll.choice(("", "", "in capitals")))
    yield dice.one("register", dice.key)
    yield from (Step("resolve", dice.key, worker) for worker in workers)


def _issued(dice: _Dice) -> Iterator[Step]:
    """Nonces that can and cannot be issued."""
    for how in dice.roll.sample(("", "for too long", "backwards", "bound to nothing"), 2):
        yield dice.one("issue", how=how)


def _up_again(dice: _Dice) -> Iterator[Step]:
    """A process that starts again knows what the one before it knew."""
    yield dice.one("register", dice.key)
    yield dice.one(dice.roll.choice(("restart", "kill")))
    yield dice.retry(dice.key)


def _muted(dice: _Dice) -> Iterator[Step]:
    """No audit, for a while."""
    yield dice.one("mute")
    yield from dice.roll.sample(list(_every(dice)), 3)
    yield dice.one("mute")


def _lost(dice: _Dice) -> Iterator[Step]:
    """The surface goes away at the end, and everything is asked for."""
    yield dice.one("break", how=dice.roll.choice(("unreachable", "unreachable", "unreadable", "incomplete")))
    yield from dice.roll.sample(list(_every(dice)), 5)


def _every(dice: _Dice) -> Iterator[Step]:
    """Each operation once."""
    yield from (dice.one(what, dice.any_key) for what in ("register", "compensate", "validate", "issue", "resolve"))
    yield dice.one("maintain")
    yield dice.retry(dice.any_key)
    yield from dice.misses("register", dice.any_key, 1)


_PARTS = (_registered, _failed, _given_up, _faulty, _raced, _passing, _kept, _resolved, _issued, _up_again, _muted)
