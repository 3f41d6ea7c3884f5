"""The steps of histories of a registrar, and how any number of them is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
# Two flaws at once: the first one in the order of the checks decides.
TWICE = ("stale, claiming another artifact", "too early, deploying another artifact", "stale, without an attempt")
_SHORT_S = (0.000001, 0.5, 1, 29.75, 60.000001, 299.5, 300.000001)
_LONG_S = (3600.5, 86400.25, 172800.75)
WORKERS = 2
# A horizon that a history can pass and come back from.
HORIZON_S = 7200
# The keys of two retentions, one after the other.
_KEPT = 90
# Each operation, behind the loss of the surface.
_EVERY = ("register", "compensate", "validate", "issue", "resolve", "maintain", "retry")


def openings() -> Callable[[Random], list[Step]]:
    """Draws openings of histories: keys in each state, and then the clock, retention or a restart, equally often."""
    deck = Deck(("past", "past", "kept", "back", "kept, back"))

    def draw(dice: Random) -> list[Step]:
        dealt, own = deck.deal(dice), _Dice(dice)
        kinds = ("fail",) * 7 + ("register",) * 2
        steps = [Step(what, 100 + number, own.worker) for number, what in enumerate(kinds)]
        steps += [Step("compensate", 100, own.worker), Step("compensate", 101, own.worker)]
        over, back = Step("clock", seconds=HORIZON_S + dice.choice(_SHORT_S)), -dice.choice(_LONG_S)
        then = {
            "past": [over],
            "kept": [over, own.one("maintain")],
            "back": [own.one("restart"), Step("clock", seconds=back)],
            "kept, back": [over, own.one("maintain"), Step("clock", seconds=back - HORIZON_S)],
        }
        return [*steps, *then[dealt]]

    return draw


def volume(dice: Random, *, keys: int, rows: int) -> list[Step]:
    """Many keys and more rows, behind which each key counts, here, elsewhere and behind a restart; then retention.

    Before them come a nonce that is kept, a key that fails, and a process that is killed again and again. Behind them
    that key is compensated, and a last one registered. The first key, one between and the last one are asked for.
    """
    first, failed, last = FIRST_OF_MANY, FIRST_OF_MANY - 1, FIRST_OF_MANY + keys + rows
    between, undone = first + keys - 1, range(failed - 1000, failed - 1000 + _UNDONE)
    asked = [(key, worker) for key in (first, between, last) for worker in range(WORKERS)]
    retries = [Step("retry", key, worker, how="dated now") for key, worker in asked]
    own = _Dice(dice)
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
        Step("clock", seconds=HORIZON_S + dice.choice(_SHORT_S)),
        _MAINTAINED_TWICE,
        own.one("maintain"),
        *retries,
    ]


@dataclass(frozen=True, slots=True)
class _Dice:
    """What steps are drawn with."""

    roll: Random

    @property
    def worker(self) -> int:
        """Either worker."""
        return self.roll.randrange(WORKERS)

    def one(self, what: str, key: int = 0, *, how: str = "") -> Step:
        """A step at either worker, with any number."""
        return Step(what, key, self.worker, how=how, number=self.roll.randrange(60))


# More kills than anybody takes for chance, and more compensations than one looks through by hand.
_KILLS, _UNDONE = 8, 70
# By both workers at once.
_MAINTAINED_TWICE = Step("race", 0, 0, "loose", "maintain", rival=Step("race", 0, 1, "fresh", "maintain"))


def ending(dice: Random, keys: Sequence[int]) -> Iterator[Step]:
    """Every key in the state that it has come to, before and behind retention, at either worker. Then no surface.

    Before it a retention behind an earlier one, with work of its own, is killed.
    """
    own, over = _Dice(dice), Step("clock", seconds=HORIZON_S + 1)
    for key, then in ((_KEPT, "maintain"), (_KEPT + 1, "interrupt")):
        yield Step("register", key, own.worker)
        yield over
        # Not so early that the process has not begun.
        how = "maintain" if then == "interrupt" else ""
        yield Step(then, 0, own.worker, "loose", how, number=dice.randrange(2, 7))
    yield from (Step("resolve", key, worker) for key in keys for worker in range(WORKERS))
    yield Step("clock", seconds=HORIZON_S + dice.choice(_SHORT_S))
    yield own.one("maintain")
    for key in keys:
        yield own.one("compensate", key)
        yield Step("retry", key, own.worker, how=dice.choice(("", "dated now", "as another attempt")))
        yield own.one("register", key)
    yield own.one("break", how=dice.choice(("unreachable", "unreachable", "unreadable", "incomplete")))
    yield from (own.one(what, dice.choice((*keys, 0))) for what in dice.sample(_EVERY, len(_EVERY)))
