"""What a history of a registrar can do next, and the situations that it is steered by.

A situation belongs to a key and a process: what became of the key, what this process has told of it, where the clock
is, and what was done with it last, here or elsewhere. Others belong to the registrar. All come from the model alone. A
step is each operation, what nearly is one, and faults and rivals beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from random import Random

from holdfast.conformance.attacks.explore import Candidate
from holdfast.conformance.suites.rs4a_replay.generate import AGES, NEAR_NONCES, TAMPERED, TWICE, WORKERS, Step
from holdfast.conformance.suites.rs4a_replay.model_state import Effect, ModelState, instant

FREE, REGISTERED, FAILED, COMPENSATED = "the key is free", "it is registered", "it failed", "it is compensated"
_STATES = {"COMMITTED": REGISTERED, "FAILED": FAILED, "COMPENSATED": COMPENSATED}
TAKEN = (REGISTERED, FAILED, COMPENSATED)
ALL = (FREE, *TAKEN)
# What a process knows of a key: it told nothing of it, its present state, or an earlier one; and of its status.
_ANOTHER_STATUS = "and this process told another state as its status"
KNOWN = (
    "which this process never told",
    "which this process told",
    "and this process told another state",
    _ANOTHER_STATUS,
)
# What was done with a key last, by the step that names it.
_BROKEN_OFF, _RIVALLED = "broken off", "met by a rival"
LAST = {
    "register": "register",
    "fail": "fail",
    "compensate": "compensate",
    "abort": _BROKEN_OFF,
    "lose": _BROKEN_OFF,
    "interrupt": _BROKEN_OFF,
    "overtake": _RIVALLED,
    "race": _RIVALLED,
}
# What is to be done with retention.
_TOMBSTONES = frozenset({"a tombstone is due", "no tombstone is due"})
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a step would meet: the keys that were named, by number, and the world. `alone` is the only worker then."""

    effects: Mapping[int, Effect | None]
    world: ModelState
    now: str
    nonces: Sequence[str]
    horizon_s: int | None
    alone: int | None


@dataclass(slots=True)
class TraceLog:
    """What the model does not say: which state of a key each worker told, and what was done with it last.

    `status` is what it told last of those that were asked for.
    """

    told: dict[tuple[int, int], str] = field(default_factory=dict)
    status: dict[tuple[int, int], str] = field(default_factory=dict)
    last: dict[int, tuple[str, int]] = field(default_factory=dict)
    started: set[int] = field(default_factory=set)
    latest: datetime | None = None
    issued: datetime | None = None

    def note(self, step: Step, around: Snapshot) -> None:
        """A step was done."""
        now = instant(around.now)
        self.latest = max(self.latest or now, now)
        if self.issued is None and around.nonces:
            self.issued = now
        if step.what in ("restart", "kill", "interrupt") and around.alone is None:
            self.started.add(step.worker)
            self.told = {met: state for met, state in self.told.items() if met[0] != step.worker}
            self.status = {met: state for met, state in self.status.items() if met[0] != step.worker}
        if step.what == "resolve":
            self.status[step.worker, step.key] = became(around.effects.get(step.key))
        if step.what in LAST:
            self.last[step.key] = (LAST[step.what], step.worker)
        if step.what not in (*LAST, "retry", "resolve"):
            return
        workers = range(WORKERS) if step.rival is not None else (step.worker,)
        for worker in workers if step.what != "interrupt" else ():
            self.told[worker, step.key] = became(around.effects.get(step.key))


def became(effect: Effect | None) -> str:
    """What became of a key."""
    return FREE if effect is None else _STATES[effect.state]


def _registrar(around: Snapshot, traces: TraceLog) -> Iterator[str]:
    if around.world.mute:
        more = ", and this process was started again" if around.alone in traces.started else ""
        yield f"the audit cannot be written{more}"
        return
    over = [each for each in around.world.effects.values() if _is_over(each, around)]
    if over:
        yield "a horizon is over"
    yield "no tombstone is due" if all(each.tombstoned_at for each in over) else "a tombstone is due"
    if traces.latest is not None and instant(around.now) < traces.latest:
        yield "the clock went back"
    if any(_is_far_ahead(each, around) for each in around.world.effects.values()):
        yield "a key lies ahead of the clock by more than its horizon"
    if traces.issued is not None and instant(around.now) > traces.issued + _DAY:
        yield "a nonce was issued a day ago"


def _is_over(effect: Effect, around: Snapshot) -> bool:
    if around.horizon_s is None:
        return False
    return instant(around.now) > instant(effect.row["committed_at"]) + timedelta(seconds=around.horizon_s)


def _is_far_ahead(effect: Effect, around: Snapshot) -> bool:
    if around.horizon_s is None or effect.tombstoned_at:
        return False
    return instant(around.now) < instant(effect.row["committed_at"]) - timedelta(seconds=around.horizon_s)


def _key(around: Snapshot, traces: TraceLog, key: int, worker: int) -> Iterator[str]:
    effect = around.effects.get(key)
    state = became(effect)
    yield state
    told = traces.told.get((worker, key))
    yield f"{state}, {KNOWN[0 if told is None else 1 if told == state else 2]}"
    if traces.status.get((worker, key), state) != state:
        yield f"{state}, {_ANOTHER_STATUS}"
    if effect is not None:
        if effect.tombstoned_at:
            yield f"{state}, under a tombstone"
        elif _is_over(effect, around):
            yield f"{state}, past its horizon"
        if instant(around.now) < instant(effect.row["committed_at"]):
            yield f"{state}, before its time"
    last = traces.last.get(key)
    if last is not None:
        yield f"last: {last[0]} {'here' if last[1] == worker else 'elsewhere'}"


def of_near(features: Collection[str]) -> frozenset[str]:
    """The features that count where something nearly was an operation: each state of a key, known elsewhere or not."""
    return frozenset(each for each in features if not each.endswith(KNOWN) and not each.startswith("last: "))


# Without an audit each operation once.
_WHILE_MUTE = ("register", "compensate", "retry", "retry the compensation", "resolve", "maintain", "issue", "validate")
# A process takes as long as this number of calls.
_PROCESS, _HELD = 4.0, 3.0
# Nonces that were issued before: what registered the key, what compensated it, one spent on another key, one unspent.
_PRESENTED = {"own": TAKEN, "compensation": (COMPENSATED,), "elsewhere": ALL, "kept": ALL}
# The clock goes back no further.
_FIRST_YEAR = 2000


# Steps


def _can(name: str, not_claimed: Collection[str]) -> bool:
    """Whether the adapter has what it takes."""
    needs = {
        "abort": "hold_at",
        "lose": "hold_at",
        "overtake": "hold_at",
        "fail": "fail_verify",
        "forge": "register_unvalidated",
        "mute": "break_audit",
    }
    return needs.get(name.partition(" ")[0], "") not in not_claimed


def offered(dice: Random, around: Snapshot, traces: TraceLog, not_claimed: Collection[str]) -> list[Candidate[Step]]:
    """All that can be done now, in these situations; with one key of each situation, the latest."""
    worker = dice.randrange(WORKERS) if around.alone is None else around.alone
    registrar = frozenset(_registrar(around, traces))
    started = {"this process was started again"} if worker in traces.started and around.alone is None else ()
    offers = [
        Candidate(name, registrar.union(started), step, cost)
        for name, step, cost in _anywhere(dice, worker, instant(around.now))
        if _can(name, not_claimed)
    ]
    met: set[frozenset[str]] = set()
    new_key = max((*around.effects, 99)) + 1
    for key in (new_key, *sorted(around.effects, reverse=True)):
        # Of two processes one is looked at; the other may be with the next step.
        each = dice.randrange(WORKERS) if around.alone is None else around.alone
        features = frozenset(_key(around, traces, key, each))
        if features not in met:
            met.add(features)
            features = features if around.alone is None else registrar
            offers += _with_key(dice, around, key, each, features, registrar, frozenset(not_claimed))
    if around.alone is not None:
        offers = [offer for offer in offers if offer.operation in (*_WHILE_MUTE, "mute")]
    return offers


def _nonces(around: Snapshot, effect: Effect | None) -> dict[str, int]:
    """The places of those nonces among all."""
    own = None if effect is None else effect.row["authorization_nonce"]
    undone = None if effect is None or effect.compensation is None else effect.compensation["authorization_nonce"]
    found: dict[str, int] = {}
    for place, nonce in enumerate(around.nonces):
        if nonce == own:
            found["own"] = place
        elif nonce == undone:
            found["compensation"] = place
        else:
            found["elsewhere" if nonce in around.world.consumed else "kept"] = place
    return found


@dataclass(frozen=True, slots=True)
class _Operation:
    """A step that names a key: what it is, its cost, and the states of the key in which it can be taken.

    `near`: something nearly as it should be. `old` is the nonce of before that it presents.
    """

    name: str
    what: str
    states: tuple[str, ...] = ALL
    nonce: str = "fresh"
    how: str = ""
    cost: float = 1.0
    near: bool = False
    old: str = ""
    number: int | None = None
    rivals: tuple[tuple[str, str], ...] = ()

    @property
    def maintains(self) -> bool:
        """Whether retention is done beside it, so that it matters what is due."""
        return ("maintain", "fresh") in self.rivals or ("maintain", "") in self.rivals

    def step(self, key: int, worker: int, number: int) -> Step:
        """The step with this key. In a race the first worker is the first side."""
        number = number if self.number is None else self.number
        if self.what != "race":
            return Step(self.what, key, worker, self.nonce, self.how, number, rival=_chain(key, self.rivals))
        ((other, _),) = self.rivals
        rival = Step("race", key, 1, "same" if number % 2 and other in _DECIDED else "fresh", other)
        return Step("race", key, 0, self.nonce, self.how, number, rival=rival)


@cache
def _operations(not_claimed: frozenset[str]) -> tuple[_Operation, ...]:
    """Those that the adapter has what they take for."""
    return tuple(each for each in _every() if _can(each.what, not_claimed))


def _every() -> Iterator[_Operation]:
    for method in _DECIDED:
        yield _Operation(method, method)
        for nonce in NEAR_NONCES:
            yield _Operation(f"{method} with a nonce {nonce}", method, nonce=nonce, near=True)
        for which, states in _PRESENTED.items():
            yield _Operation(f"{method} with an old nonce, {which}", method, states, "old", old=which)
        for how in (*AGES, *TAMPERED):
            yield _Operation(f"{method} {how}", method, how=how, near=True)
    for how in ("", "dated now", "as another attempt"):
        told = f", {how}" if how else ""
        yield _Operation(f"retry{told}", "retry", TAKEN, how=how, number=0)
        yield _Operation(f"retry the compensation{told}", "retry", (COMPENSATED,), how=how, number=1)
    yield _Operation("fail", "fail", (FREE,))
    for nonce in ("fresh", "closed"):
        yield _Operation(f"forge with a nonce {nonce}", "forge", nonce=nonce, near=nonce != "fresh")
    yield _Operation("resolve", "resolve")
    for how in ("in capitals", "with a stranger"):
        yield _Operation(f"resolve {how}", "resolve", how=how, near=True)
    for method, states in ((_DECIDED[0], (FREE,)), (_DECIDED[1], (FAILED,))):
        for what, cost in (("abort", 2.0), ("lose", 2.0), ("interrupt", _PROCESS)):
            yield _Operation(f"{what} {method}", what, states, how=method, cost=cost)
        for rivals in _RIVALS[method]:
            name = f"overtake {method} by {' and '.join(' '.join(each) for each in rivals)}"
            yield _Operation(name, "overtake", states, "loose", method, _HELD, rivals=rivals)
    for one, other in _RACES:
        yield _Operation(f"race {one}, {other}", "race", nonce="loose", how=one, cost=2, rivals=((other, ""),))


def _with_key(
    dice: Random,
    around: Snapshot,
    key: int,
    worker: int,
    features: frozenset[str],
    registrar: frozenset[str],
    not_claimed: frozenset[str],
) -> Iterator[Candidate[Step]]:
    """What can be done with one key at one worker."""
    effect, number = around.effects.get(key), dice.randrange(60)
    nonces, state, nearly = _nonces(around, effect), became(effect), of_near(features)
    for each in _operations(not_claimed):
        if state in each.states and (not each.old or each.old in nonces):
            step = each.step(key, worker, nonces.get(each.old, number))
            met = nearly if each.near else features | (registrar & _TOMBSTONES) if each.maintains else features
            yield Candidate(each.name, met, step, each.cost)


def _chain(key: int, rivals: Sequence[tuple[str, str]]) -> Step | None:
    """Those who come first, one after the other."""
    if not rivals:
        return None
    (what, nonce), *rest = rivals
    return Step(
        what,
        key + 1000 if nonce == "elsewhere" else key,
        1,
        "same" if nonce == "elsewhere" else nonce,
        rival=_chain(key, rest),
    )


def _anywhere(dice: Random, worker: int, now: datetime) -> Iterator[tuple[str, Step, float]]:
    """Steps that name no key, each with the name of its operation and its cost."""

    def step(what: str, how: str = "") -> Step:
        return Step(what, 0, worker, how=how, number=dice.randrange(60))

    for how in ("", "again", "for too long", "backwards", "bound to nothing"):
        yield f"issue {how}".strip(), step("issue", how), 1
    for how in ("", *AGES, *TAMPERED, *TWICE):
        yield f"validate {how}".strip(), Step("validate", 0, worker, "free", how), 1
    yield "maintain", step("maintain"), 1
    for method in ("maintain", "issue_nonce"):
        yield f"interrupt {method}", step("interrupt", method), _PROCESS
    for method in ("maintain", "issue_nonce"):
        yield (
            f"race {method}, {method}",
            Step("race", 0, 0, "loose", method, rival=Step("race", 0, 1, "fresh", method)),
            2,
        )
    yield "restart", step("restart"), _PROCESS
    yield "kill", step("kill"), _PROCESS
    yield "mute", step("mute"), 1
    for name, least, most in (
        ("a little on", 0.000001, 60),
        ("on past the time to live", 301, 6000),
        ("on past the horizon", 7201, 9000),
        ("a day on", 86_401, 200_000),
        ("a little back", -60, -0.000001),
        ("an hour back", -7000, -3600),
        ("a day back", -200_000, -86_401),
    ):
        if least > 0 or now.year > _FIRST_YEAR:
            yield name, Step("clock", seconds=round(dice.uniform(least, most), 6)), 0.5


_DECIDED = ("register", "compensate")
# Who comes first, and with which nonce, while a call is held behind its look.
_RIVALS: Mapping[str, tuple[tuple[tuple[str, str], ...], ...]] = {
    "register": (
        (("register", "fresh"),),
        (("register", "same"),),
        (("register", "elsewhere"),),
        (("fail", "fresh"),),
        (("fail", "same"),),
        (("fail", "fresh"), ("compensate", "fresh")),
        (("fail", "same"), ("compensate", "fresh")),
        (("maintain", "fresh"),),
        (("resolve", "fresh"),),
    ),
    "compensate": (
        (("compensate", "fresh"),),
        (("compensate", "same"),),
        (("register", "elsewhere"),),
        (("register", "fresh"),),
        (("maintain", "fresh"),),
        (("resolve", "fresh"),),
    ),
}
# One call each of two processes at once.
_RACES = (
    ("register", "register"),
    ("compensate", "compensate"),
    ("register", "compensate"),
    ("register", "maintain"),
    ("compensate", "maintain"),
    ("register", "resolve_status"),
    ("compensate", "resolve_status"),
)
