"""What a history of a registrar can do next: each operation, what nearly is one, and faults and rivals beside it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from random import Random

from holdfast.conformance.suites.exploration import Candidate, Pair
from holdfast.conformance.suites.rs4a_replay.features import (
    ALL,
    COMPENSATED,
    DUE,
    FAILED,
    FREE,
    KNOWN,
    LAST,
    LEFT,
    MUTE,
    MUTE_STARTED,
    NOTHING_DUE,
    REGISTRAR,
    SINCE,
    STARTED,
    TAKEN,
    WHERE,
    Snapshot,
    TraceLog,
    became,
    new_key,
    of_near,
    situations,
    thing,
)
from holdfast.conformance.suites.rs4a_replay.generate import AGES, NEAR_NONCES, TAMPERED, TWICE, WORKERS, Step
from holdfast.conformance.suites.rs4a_replay.model_state import Effect
from holdfast.conformance.suites.rs4a_replay.rows import instant

# Without an audit each operation once.
_WHILE_MUTE = ("register", "compensate", "retry", "retry the compensation", "resolve", "maintain", "issue", "validate")
# A process takes as long as this number of calls.
_PROCESS, _HELD = 4.0, 3.0
# Nonces that were issued before: what registered the key, what compensated it, one spent on another key, one unspent.
_PRESENTED = {"own": TAKEN, "compensation": (COMPENSATED,), "elsewhere": ALL, "kept": ALL}
# The clock goes back no further.
_FIRST_YEAR = 2000


# Steps


def wanted(not_claimed: Collection[str]) -> frozenset[Pair]:
    """The pairs that the model can reach with this adapter."""
    features = {state: [state, *(f"{state}, {known}" for known in KNOWN)] for state in ALL}
    # A key that is free was never anything else.
    del features[FREE][-2:]
    for state in TAKEN:
        features[state] += [f"{state}, {since}" for since in SINCE]
    found: set[Pair] = set()
    for each in _operations(frozenset(not_claimed)):
        name, states = each.name, each.states
        met = {feature for state in states for feature in features[state]}
        met |= {
            f"last: {last} {where}"
            for last in dict.fromkeys(LAST.values())
            if {*LEFT.get(last, ALL)} & {*states} and _can(last, not_claimed)
            for where in WHERE
        }
        found |= {(feature, name) for feature in (of_near(met) if each.near else met)}
        found |= {(feature, name) for feature in (DUE, NOTHING_DUE) if each.maintains}
    found |= {(feature, name) for name, _, _ in _anywhere(Random(0), 0, datetime.max) for feature in REGISTRAR}  # noqa: S311
    found = {pair for pair in found if _can(pair[1], not_claimed)}
    if "break_audit" not in not_claimed:
        found |= {(mute, name) for name in (*_WHILE_MUTE, "mute") for mute in (MUTE, MUTE_STARTED)}
    return frozenset(found)


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
    found = situations(around, traces)
    worker = dice.randrange(WORKERS) if around.alone is None else around.alone
    registrar = found[""] | ({STARTED} if worker in traces.started and around.alone is None else frozenset())
    offers = [
        Candidate(name, registrar, step, cost=cost)
        for name, step, cost in _anywhere(dice, worker, instant(around.now))
        if _can(name, not_claimed)
    ]
    met: set[frozenset[str]] = set()
    for key in (new_key(around), *sorted(around.effects, reverse=True)):
        # Of two processes one is looked at; the other may be with the next step.
        each = dice.randrange(WORKERS) if around.alone is None else around.alone
        name = thing(key, each)
        if found[name] not in met:
            met.add(found[name])
            features = found[name] if around.alone is None else found[""]
            offers += _with_key(dice, around, key, each, features, found[""], frozenset(not_claimed))
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
    effect, name, number = around.effects.get(key), thing(key, worker), dice.randrange(60)
    nonces, state, nearly = _nonces(around, effect), became(effect), of_near(features)
    for each in _operations(not_claimed):
        if state in each.states and (not each.old or each.old in nonces):
            step = each.step(key, worker, nonces.get(each.old, number))
            met = nearly if each.near else features | (registrar & {DUE, NOTHING_DUE}) if each.maintains else features
            yield Candidate(each.name, met, step, name, each.cost)


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
