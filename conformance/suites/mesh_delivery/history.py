"""Histories of a broker: sends, retries and changes of them by two processes, jobs, clocks, the flag, and kills."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any, ClassVar

from holdfast.conformance.attacks.any_history import HistoryModel, Now, Step
from holdfast.conformance.attacks.histories import mixed
from holdfast.conformance.attacks.model import Call, Observation
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import base64url
from holdfast.conformance.suites.mesh_delivery.model import (
    REUSED,
    Broker,
    BrokerModel,
    accept,
    advertised,
    job,
    make,
    prune,
)
from holdfast.conformance.suites.mesh_delivery.sends import BODIES, MEMBERS, MESHES, QUEUES, TOPICS, Args, args_of

# The last of them is no member of any mesh; few names, so that sends meet.
_SENDERS = (*MEMBERS, "d" * 64, "e" * 64, "f" * 64)
_NAMES = ("one", "two", "One", "1")
_AGES = (timedelta(seconds=1), timedelta(hours=1), timedelta(days=3), timedelta(days=8), timedelta(days=31))
# A clock may be put back, too.
_SPANS = ("+1s", "+1h", "+3d", "+8d", "+31d", "-5d")
_LENGTH = 36
_KINDS: Mapping[str, int] = {
    "send": 30,
    "again": 30,
    "clock": 6,
    "expire": 5,
    "prune": 4,
    "orphans": 4,
    "lose": 2,
    "flag": 3,
    "restart": 3,
    "kill": 2,
    "die": 8,
    "delete": 1,
    "migrate": 1,
}
# What leads to situations that single steps seldom reach; each history has each of them, between its other steps.
_SCENES = (
    ("on", "right", "same", "other sender", "other request"),
    ("on", "right", "month", "same", "expire", "same", "same"),
    ("on", "right", "clock", "all", "same", "orphans"),
    ("off", "right", "same", "on", "same", "same"),
    ("on", "right", "delete", "same", "migrate"),
    ("on", "right", "lose", "orphans", "same"),
    ("on", "fresh", "restart", "same"),
)


class BrokerHistory(BrokerModel, HistoryModel[Broker]):
    """The model of the broker with histories."""

    workers = 2
    relations: ClassVar[Mapping[str, Sequence[str]]] = {
        "accept": (
            "accepted new",
            "accepted prior",
            "refused AUTH_MISSING",
            "refused DESTINATION_NOT_FOUND",
            f"{REUSED} sender_mismatch",
            f"{REUSED} request_fingerprint_mismatch",
            "has a record that is not in force",
            "has no message any more",
            "is over",
        ),
        "expire": ("takes a record",),
        "prune": ("takes a message", "leaves a message"),
        "check_orphans": ("finds one",),
        "delete_mesh": ("takes a record",),
    }

    def __init__(self, session: SuiteSession) -> None:
        """See `attacks.model.Model`."""
        super().__init__(session)
        self._sent: list[Args] = []

    # What is drawn

    def history(self, now: Now[Broker], dice: Random, number: int) -> Iterator[Step]:
        """See `attacks.any_history.HistoryModel`. A message that is gone is found at the end, past all that came."""
        del number
        for scene in mixed(dice, _KINDS, _LENGTH, _SCENES):
            if len(scene) > 1:
                yield from self._there(now.state)
            for what in scene:
                yield from self._drawn(what, dice)
        yield from self._there(now.state)
        for what in ("on", "last", "lose", "orphans"):
            yield from self._drawn(what, dice)

    def _there(self, state: Broker) -> Iterator[Step]:
        """Each mesh that is not there; one that was deleted comes back without what belonged to it."""
        return (Step(make(mesh_id)) for mesh_id in MESHES if mesh_id not in state.meshes)

    def _drawn(self, what: str, dice: Random) -> Iterator[Step]:
        worker = dice.randrange(self.workers)
        match what:
            case "clock" | "month":
                yield Step(None, dice.choice(_SPANS) if what == "clock" else "+31d")
            case "restart" | "kill":
                yield Step(None, what, worker)
            case "prune" | "all":
                age = dice.choice(_AGES) if what == "prune" else -_AGES[0]
                yield Step(prune(self.now - age + timedelta(seconds=1), worker))
            case "orphans":
                yield Step(job("check_orphans", worker))
            case "lose" if self._sent:
                yield Step(partial(_lost, self._sent[-1]), "remove_message")
            case "flag" | "on" | "off":
                enabled = what == "on" or (what == "flag" and dice.random() < 0.5)
                yield Step(job("set_flag", worker, enabled=enabled))
                yield Step(partial(advertised, worker=1 - worker), "features")
            case "delete":
                yield Step(job("delete_mesh", worker, mesh_id=self._sent[-1]["mesh_id"] if self._sent else MESHES[0]))
            case "expire" | "migrate":
                yield Step(job(what, worker))
            case "lose":
                pass
            case _:
                args = self._args(what, dice)
                self._sent.append(args)
                yield Step(accept(args, worker), f"kill at {dice.choice(self.points)}" if what == "die" else "")

    def _args(self, what: str, dice: Random) -> Args:
        """The arguments of a send, new ones or those of one before."""
        last = self._sent[-1] if self._sent else _send(dice)
        match what:
            case "send":
                return _send(dice)
            case "right" | "last":
                # Nothing is wrong with it.
                name = dice.choice(_NAMES) if what == "right" else "the last one"
                return args_of(name, dice.choice(("topic", "dm", "queue")))
            case "fresh":
                return args_of(f"name {len(self._sent)}")
            case "same":
                return last
            case "other sender":
                return {**last, "sender": MEMBERS[(MEMBERS.index(last["sender"]) + 1) % len(MEMBERS)]}
            case "other request":
                return {**last, "sender": args_of("")["sender"], "request": {**last["request"], "body": BODIES[0]}}
        before, other = dice.choice(self._sent or [last]), _send(dice)
        if dice.random() < 0.5:
            return before
        name = dice.choice(("mesh_id", "sender", *sorted({**before["request"], **other["request"]})))
        if name in ("mesh_id", "sender"):
            return {**before, name: other[name]}
        # A kind and its destination go together.
        names = ("destination_kind", "destination_ref") if name.startswith("destination") else (name,)
        request = {**before["request"], **{each: other["request"].get(each) for each in names}}
        return {**before, "request": {each: value for each, value in request.items() if value is not None}}

    # How a step is related to what is there

    def features(self, state: Broker, what: Call | Observation) -> Iterator[str]:
        """See `attacks.any_history.HistoryModel`."""
        if isinstance(what, Observation):
            return
        after = next(iter(self.outcomes(state, what, None))).state
        if what.method == "accept":
            yield from self._sends(state, what.args)
        elif what.method == "check_orphans":
            yield from ["finds one"] * bool(state.orphans())
        yield from ["takes a record"] * (len(after.records) < len(state.records))
        yield from ["takes a message"] * (len(after.messages) < len(state.messages))
        yield from ["leaves a message"] * bool(after.messages)

    def _sends(self, state: Broker, args: Args) -> Iterator[str]:
        record, due = state.known(args), next(iter(self.outcomes(state, accept(args), None)))
        yield due.said if record is None or not due.value else f"{due.said} {due.value.get('conflict', '')}".strip()
        if record is not None:
            yield from ["has a record that is not in force"] * (not state.enforced)
            yield from ["has no message any more"] * (not record.row["history_available"])
            yield from ["is over"] * record.is_over(self.now)


def _lost(args: Args, state: Broker) -> Call | None:
    """The message row of this send goes, past the broker; or the newest one."""
    record = state.known(args)
    lost = max(state.messages, default=None)
    if record is not None and record.row["broker_message_id"] in state.messages:
        lost = record.row["broker_message_id"]
    return None if lost is None else job("remove_message", broker_message_id=lost)


def _send(dice: Random) -> Args:
    kind = dice.choice(("topic", "dm", "queue"))
    names = {
        "topic": (*TOPICS, *TOPICS, "here", "there", "ALERTS", "nowhere"),
        "dm": (*MEMBERS, *_SENDERS, MEMBERS[0].upper()),
        "queue": (*QUEUES, *QUEUES, "nearby", "far", "Jobs", *TOPICS),
    }[kind]
    request: dict[str, Any] = {
        "envelope_version": dice.choice((1, 1, 2)),
        "destination_kind": kind,
        "destination_ref": dice.choice(names),
        "body": dice.choice(BODIES),
    }
    if priority := dice.choice((None, "now", "next")):
        request["priority"] = priority
    if meta := dice.choice((None, b"{}", b'{"k":1}')):
        request["meta"] = base64url(meta)
    sender = dice.choices(_SENDERS, (6, 6, 6, 2, 2, 1))[0]
    named = {"mesh_id": dice.choice(MESHES), "sender": sender, "client_message_id": dice.choice(_NAMES)}
    return {**named, "request": request}
