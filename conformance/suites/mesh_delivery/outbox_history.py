"""Histories of a daemon: any steps in any order, by one or two processes on one outbox, and what is rare among them.

Worker 0 is the daemon: the first that is asked to deliver. Another process takes sends in and runs what operators ask
for; it may deliver, and need not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Any, ClassVar

from holdfast.conformance.attacks.any_history import HistoryModel, Now, Step
from holdfast.conformance.attacks.histories import in_turn, mixed
from holdfast.conformance.attacks.model import Call, Observation
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import base64url, format_instant
from holdfast.conformance.suites.mesh_delivery.broker_answers import ANSWERS, SLOW
from holdfast.conformance.suites.mesh_delivery.outbox_model import SEND, Outbox, OutboxModel, Round
from holdfast.conformance.suites.mesh_delivery.sends import BODIES, MESHES, Args

# Few names, so that sends meet; every collation has them in this order.
NAMES = ("five %35", "four+4", "one", "three/ü", "two")
_LENGTH = 28
_LAST = "unavailable-for-a-year"
# A history has fewer rows that wait.
_MOST = 64
_SPANS = ("+1s", "+0.4s", "+1m", "+10m", "+10m", "+1h", "+5h", "+5h", "+30h", "+9d", "+60d", "-1s", "-10m", "-7h")
# From the moment at which a row has its max age, in seconds.
_EDGES = (-3600, -1, -0.001, 0, 0.001, 1, 3600)
# What has no fingerprint, or is no call, by the reason of its refusal.
_WRONG: Mapping[str, Args] = {
    "UNKNOWN_VALUE": {"priority": "soon"},
    "REFERENCE_INVALID": {"destination_kind": "dm"},
    "NUL_IN_FIELD": {"destination_ref": "a\0b"},
    "META_INVALID": {"meta": base64url(b'{"a":1,"a":1}')},
    "REQUEST_MALFORMED": {"envelope_version": 0},
}
_MALFORMED: Mapping[str, Args] = {"requeue": {"client_message_id": "one", "new_id": ""}, "deliver": {"limit": 1}}
_KINDS: Mapping[str, int] = {
    "send": 16,
    "again": 16,
    "deliver": 26,
    "clock": 12,
    "edge": 6,
    "requeue": 12,
    "refused": 8,
    "restart": 3,
    "kill": 3,
}
_OF_ONE, _OF_TWO = {"die": 6}, {"beside": 10, "race": 8, "rounds": 2, "overlap": 8}
# What leads to states that single steps seldom reach.
_SCENES = (
    ("new", "conflict", "requeue it", "same", "deliver"),
    ("new", "conflict", "requeue it", "restart", "same", "first", "same"),
    ("new", "conflict", "other", "same", "deliver"),
    ("new", "conflict", "back", "requeue it", "deliver"),
    ("new", "first", "other", "same", "same", "deliver"),
    ("new", "unavailable", "back", "deliver", "clock", "deliver", "same"),
    ("new", "unavailable", "restart", "deliver"),
    ("new", "send", "send", "deliver", "deliver"),
    ("new", "edge", "deliver"),
    ("new", "unavailable", "edge", "deliver", "edge", "deliver"),
    ("new", "conflict", "refused", "deliver"),
    ("new", "unavailable", "same", "deliver"),
    ("new", "first", "weeks", "deliver", "same"),
)
# The same by one process, which may die: what it has tried before, and then left in flight, is sent again.
_DYING = (("new", "unavailable", "late", "die", "late", "deliver"),)
# The same with a second process.
_TOGETHER = (
    ("new", "beside", "same", "deliver"),
    ("new", "beside", "first"),
    ("new", "send", "overlap", "deliver"),
    ("new", "overlap", "clock", "deliver"),
    ("new", "conflict", "race", "deliver"),
)
# So many of them are in a history, of each kind.
_ALONE, _BESIDE = 3, 2


class OutboxHistory(OutboxModel, HistoryModel[Outbox]):
    """The model of a daemon with histories."""

    inspecting = True
    relations: ClassVar[Mapping[str, Sequence[str]]] = {
        "send": ("accepted new", "accepted prior", "refused IDEMPOTENCY_KEY_REUSED", "names no id"),
        "requeue": ("accepted new", "refused NOT_DEAD", "refused ID_IN_USE"),
        "deliver": ("a row is due", "a row rests", "no row is due"),
    }

    def __init__(self, session: SuiteSession) -> None:
        """See `attacks.model.Model`."""
        super().__init__(session)
        self._sent: list[Args] = []

    def history(self, now: Now[Outbox], dice: Random, number: int) -> Iterator[Step]:
        """See `attacks.any_history.HistoryModel`. What is left is delivered once the broker takes it."""
        is_one = self.workers == 1
        scenes = in_turn((*_DYING, *_SCENES) if is_one else _SCENES, number, _ALONE)
        scenes += [] if is_one else in_turn(_TOGETHER, number, _BESIDE)
        yield Step(deliver(()))
        for at, scene in enumerate(mixed(dice, {**_KINDS, **(_OF_ONE if is_one else _OF_TWO)}, _LENGTH, scenes)):
            for what in scene:
                yield from self._drawn(what, now, dice, f"row{at:03}")
        yield Step(None, "+5h")
        yield from self._rounds(now, ("first",) * _MOST, 0)

    def _drawn(self, what: str, now: Now[Outbox], dice: Random, name: str) -> Iterator[Step]:
        worker, point = dice.randrange(self.workers), dice.choice(self.points)
        match what:
            case "send" | "again" | "new" | "same":
                yield Step(self._sends(what, dice, name, worker))
            case "other":
                # To another mesh, and with another body.
                mesh_id = next(each for each in MESHES if each != self._row["mesh_id"])
                for change in ({"mesh_id": mesh_id}, {"request": {**self._row["request"], "body": "Aw"}}):
                    yield Step(send({**self._row, **change}, worker))
            case "deliver":
                yield from self._rounds(now, _answers(dice), worker)
            case "clock" | "back" | "late" | "weeks":
                spans = {"clock": _SPANS, "back": ("-10m", "-7h"), "late": ("+5h",), "weeks": ("+9d",)}
                yield Step(None, dice.choice(spans[what]))
            case "edge":
                yield from self._edge(now.state, dice)
            case "requeue":
                yield Step(_rotation(dice, worker), "requeue")
            case "requeue it":
                last = self._sent[-1].get("client_message_id", "")
                yield Step(requeue(last, f"new-{name}", worker))
            case "refused":
                yield Step(self._refused(dice, worker), "refused")
            case "restart" | "kill":
                # In the place of the daemon that ends another process may be it.
                yield Step(None, what, self.workers - 1)
            case "die":
                yield Step(deliver(_quick(_answers(dice))), f"kill at {point}")
            case "beside":
                asked = self._asked(dice)
                yield Step(deliver(_quick(_answers(dice))), f"held at {point}", beside=asked)
            case "overlap" | "rounds":
                # Two rounds with one answer would agree by chance.
                kinds, later = ("first", "retry", "unavailable", "conflict"), dice.choice(("+0s", "+10m", "+5h"))
                answers = tuple(dice.choices(kinds, (1, 1, 2, 1), k=2 * len(NAMES)))
                one, other = together(answers) if what == "overlap" else together(("first",) * _MOST, shared=True)
                yield Step(one, f"held at {point}" if what == "overlap" else "race", beside=other, later=later)
            case "race":
                yield Step(self._asked(dice), "race", beside=self._asked(dice))
            case _:
                # A kind of answer, which is that to each attempt of a round.
                yield from self._rounds(now, (what,) * len(NAMES), worker)

    def _rounds(self, now: Now[Outbox], answers: Sequence[str], worker: int) -> Iterator[Step]:
        """One round; where the daemon lets a row be that is due, another process may be the one that delivers."""
        yield Step(deliver(answers, worker, "over_refusal" if self.workers == 1 else ""))
        if worker < self.workers - 1 and self.due(now.state):
            yield Step(deliver(answers, worker + 1))

    def _edge(self, state: Outbox, dice: Random) -> Iterator[Step]:
        """The clock goes to the max age of a row, or near it, if that is still to come."""
        waiting = sorted((name, rows[0].born) for name, rows in state.rows.items() if rows[0].is_open)
        if waiting:
            moment = dice.choice(waiting)[1] + self.limit + timedelta(seconds=dice.choice(_EDGES))
            if moment > self.now:
                yield Step(None, format_instant(moment))

    @property
    def _row(self) -> Args:
        """The last send of a scene's own."""
        return next(each for each in self._sent[::-1] if "row" in each.get("client_message_id", ""))

    def _sends(self, what: str, dice: Random, name: str, worker: int = 0) -> Call:
        if what == "again" and self._sent:
            args = _changed(dice, self._sent[-1] if dice.random() < 0.5 else dice.choice(self._sent))
        elif what == "same":
            args = self._row
        else:
            args = {**_args(dice), **({"client_message_id": name} if what == "new" else {})}
        self._sent.append(args)
        return send(args, worker)

    def _asked(self, dice: Random) -> Callable[[Outbox], Call]:
        """A send, or a requeue, which another process asks for."""
        if dice.random() < 0.5:
            return _rotation(dice, 1)
        call = self._sends("send" if dice.random() < 0.4 else "again", dice, "", 1)
        return lambda _: call

    def _refused(self, dice: Random, worker: int) -> Callable[[Outbox], Call]:
        """What is refused."""
        why, place = dice.choice((*_WRONG, *_MALFORMED, "alive", "in use")), dice.random()

        def call(state: Outbox) -> Call:
            if why in _WRONG:
                args = {**SEND, "client_message_id": "refused", "request": {**SEND["request"], **_WRONG[why]}}
                return Call("send", "send", args, why, worker=worker)
            if why in _MALFORMED:
                return Call(why, why, _MALFORMED[why], "REQUEST_MALFORMED", worker=worker)
            names = [name for name in sorted(state.rows) if state.is_dead(name) is (why == "in use")] or ["nowhere"]
            used = max(state.rows, default="") if why == "in use" else ""
            return requeue(names[int(place * len(names))], used or "unused", worker)

        return call

    # How a step is related to what is there

    def features(self, state: Outbox, what: Call | Observation) -> Iterator[str]:
        """See `attacks.any_history.HistoryModel`."""
        if isinstance(what, Observation) or isinstance(what.about, str):
            return
        if what.method == "deliver":
            due, waiting = self.due(state), {name for name, rows in state.rows.items() if rows[0].is_open}
            yield "a row is due" if due else "no row is due"
            yield from ["a row rests"] * bool(waiting - due)
        else:
            yield from (each.said for each in self.outcomes(state, what, None))
            yield from ["names no id"] * (what.method == "send" and "client_message_id" not in what.args)


class OfTwoProcesses(OutboxHistory):
    """The same by two processes, with calls and rounds that overlap."""

    workers = 2


class EveryAnswer(OutboxHistory):
    """Each kind of answer once: in every other history to a first attempt, else to a second."""

    relations: ClassVar[Mapping[str, Sequence[str]]] = {}

    def history(self, now: Now[Outbox], dice: Random, number: int) -> Iterator[Step]:
        """See `attacks.any_history.HistoryModel`. A round for every few kinds, each to a send of its own."""
        quick = dice.sample(others := [each for each in ANSWERS if each not in (*SLOW, _LAST)], len(others))
        # No two for which a daemon waits in one round. What asks for a long pause is last: then all is too old.
        late, drip = sorted(SLOW)
        kinds = [late, *quick[: len(NAMES)], drip, *quick[len(NAMES) :]]
        for group in (*(kinds[at : at + len(NAMES)] for at in range(0, len(kinds), len(NAMES))), (_LAST,)):
            for kind in group:
                yield Step(send({**_args(dice), "client_message_id": f"row-{kind}"}))
            if number % 2 and _LAST not in group:
                yield from self._rounds(now, ("unavailable",) * len(ANSWERS), 0)
                yield Step(None, "+10m")
            yield from self._rounds(now, group, 0)
        yield Step(None, f"+{self.limit // timedelta(hours=1) + 1}h")
        yield from self._rounds(now, (), 0)


def send(args: Args, worker: int = 0) -> Call:
    """A send of a caller."""
    told = (repr(args.get("client_message_id")), *map(str, args["request"].values()))
    return Call("send", "send", args, named=f"send w{worker} {' '.join(each[:8] for each in told)}", worker=worker)


def requeue(name: str, new: str, worker: int = 0) -> Call:
    """A dead row that is sent again under another id."""
    return Call("requeue", "requeue", {"client_message_id": name, "new_id": new}, worker=worker)


def deliver(answers: Sequence[str], worker: int = 0, missed: str = "over_refusal") -> Call:
    """A round, and what is said to its attempts. `missed` is the verdict on what is due and left."""
    return _round(Round(answers, missed), worker)


def _round(about: Round, worker: int) -> Call:
    named = f"deliver w{worker} {' '.join(about.answers or ())}"[:80]
    return Call("deliver", "deliver", {}, about, named=named, worker=worker)


def together(answers: Sequence[str], *, shared: bool = False, count: int = 2) -> tuple[Call, ...]:
    """Rounds that overlap; of those that have begun at once nobody knows which attempt is whose (`shared`)."""
    one = Round(answers, shared=shared)
    others = [Round(None, "", beside=one, shared=shared) for _ in range(1, count)]
    one.beside = others[0]
    return tuple(_round(each, worker) for worker, each in enumerate((one, *others)))


def _quick(answers: Sequence[str]) -> Sequence[str]:
    return [name for name in answers if name not in SLOW]


def _rotation(dice: Random, worker: int) -> Callable[[Outbox], Call]:
    """The requeue of a dead row by its place, or of any where none is dead; and the id that it shall have."""
    place, new = dice.random(), dice.choice((*NAMES, "six", "seven", "eight", "nine"))

    def call(state: Outbox) -> Call:
        names = [name for name in sorted(state.rows) if state.is_dead(name)] or sorted(state.rows) or ["nowhere"]
        return requeue(names[int(place * len(names))], new, worker)

    return call


def _answers(dice: Random) -> tuple[str, ...]:
    names, weights = tuple(ANSWERS), tuple(each.weight for each in ANSWERS.values())
    drawn = dice.choices(names, weights, k=dice.choice((0, 1, 2, 3, 5, 5)))
    slow = [at for at, name in enumerate(drawn) if name in SLOW]
    return tuple("unavailable" if at in slow[1:] else name for at, name in enumerate(drawn))


def _args(dice: Random) -> dict[str, Any]:
    request: dict[str, Any] = {
        "envelope_version": dice.choice((1, 1, 2)),
        "destination_kind": dice.choice(("topic", "queue")),
        "destination_ref": dice.choice(("alerts", "Alerts")),
        "body": dice.choice(BODIES),
    }
    if dice.random() < 0.4:
        request["priority"] = dice.choice(("now", "next"))
    if dice.random() < 0.4:
        request["meta"] = base64url(dice.choice((b'{ "b": 1.0, "a": "x" }', b"{}")))
    named = {"client_message_id": dice.choice(NAMES)} if dice.random() < 0.9 else {}
    return {"mesh_id": dice.choice(MESHES), **named, "request": request}


def _changed(dice: Random, args: Args) -> Args:
    """A send from before, or one that differs from it in one member."""
    other = _args(dice)
    if dice.random() < 0.7:
        return args
    if dice.random() < 0.3:
        return {**args, "mesh_id": other["mesh_id"]}
    name = dice.choice(tuple(other["request"]))
    return {**args, "request": {**args["request"], name: other["request"][name]}}
