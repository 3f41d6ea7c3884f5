"""mesh-delivery: histories of broker and daemon together, with a network between them that loses, cuts and repeats.

Worker 0 is the broker, worker 1 the daemon. Each request of the daemon passes through the harness, which decides what
becomes of it. At each moment what is there must be possible; at the end, when nothing fails any more, all is delivered.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.histories import run_histories
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import base64url
from holdfast.conformance.suites.mesh_delivery.sends import BODIES, MEMBERS, MESHES, QUEUES, TOPICS
from holdfast.vectors.derive import derive

_BROKER, _DAEMON = 0, 1
_MESH, _SENDER = MESHES[0], MEMBERS[0]
_FATES = ("whole", "cut", "drop", "half", "again")
_POINTS = ("before_dedupe", "after_dedupe", "after_message", "before_commit", "after_commit")
_KINDS = ("send", "again", "round", "clock", "end", "away", "dark", "die")
_WEIGHTS = (30, 5, 25, 20, 6, 3, 3, 8)
_SPANS = ("+1s", "+30s", "+10m")
_HISTORIES, _LENGTH, _TRIALS = 3, 40, 16
# A daemon waits no longer than this behind an attempt that failed. A history is far shorter than the max age.
_LATEST = "+5h"
_ROUNDS = 3
_WHOLE: Mapping[str, Any] = {"through": True}
# More requests than a round can have.
_ENOUGH = 200
_STATES = frozenset({"pending", "inflight", "done"})


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its kind, the worker that does it, and what it is about."""

    what: str
    worker: int = 0
    args: tuple[tuple[str, Any], ...] = ()
    point: str = ""

    def __str__(self) -> str:
        about = " ".join(f"{name}={str(value)[:12]}" for name, value in self.args)
        return " ".join(filter(None, (self.what, f"w{self.worker}", self.point, about)))


def draw(dice: Random, length: int) -> list[Step]:
    """The steps of one history."""
    steps = []
    for _ in range(length):
        (what,) = dice.choices(_KINDS, _WEIGHTS)
        args: dict[str, Any] = {}
        match what:
            case "send":
                kind = dice.choice(("topic", "dm", "queue"))
                args = {"kind": kind, "reference": dice.choice({"topic": TOPICS, "dm": MEMBERS, "queue": QUEUES}[kind])}
                args |= {"body": dice.choice(BODIES), "meta": dice.choice((None, '{ "k": 1.0 }'))}
            case "again":
                args = {"which": dice.random()}
            case "round":
                args = {"fates": tuple(dice.choice(_FATES) for _ in range(12))}
            case "clock":
                args = {"to": dice.choice(_SPANS)}
            case "end":
                args = {"how": dice.choice(("restart", "kill"))}
        point = dice.choice(_POINTS) if what == "die" else ""
        steps.append(Step(what, dice.choice((_BROKER, _DAEMON)), tuple(args.items()), point))
    return steps


class HistoryRunner:
    """One history under way. Implements `histories.HistoryRunner`."""

    def __init__(self, bench: Bench, session: SuiteSession) -> None:
        self._bench, self._session = bench, session
        # What was taken in, in its order; and the message of each that was seen done.
        self._sent: dict[str, Mapping[str, Any]] = {}
        self._done: dict[str, str] = {}
        made = {"mesh_id": _MESH, "members": [*MEMBERS], "topics": [*TOPICS], "queues": [*QUEUES]}
        session.provoke("make_mesh", made, _BROKER)

    def step(self, step: Step) -> None:
        """See `histories.HistoryRunner`."""
        args, session = dict(step.args), self._session
        match step.what:
            case "send":
                self._send(f"c-{len(self._sent)}", _request(args))
            case "again" if self._sent:
                name = list(self._sent)[int(args["which"] * len(self._sent))]
                self._send(name, self._sent[name])
            case "round":
                self._round([{"through": True, "how": how} for how in args["fates"]])
            case "clock":
                session.clock(args["to"])
            case "end":
                session.begin_again(args["how"], step.worker)
            case "away":
                session.kill(_BROKER)
                self._round([])
                session.reopen(_BROKER)
            case "dark":
                session.provoke("break_broker", {"broken": True}, _BROKER)
                self._round([])
                session.provoke("break_broker", {"broken": False}, _BROKER)
            case "die":
                self._die(step.point)
        self._look()

    def compare(self) -> None:
        """See `histories.HistoryRunner`. From now on nothing fails."""
        for _ in range(_ROUNDS):
            if len(self._done) == len(self._sent):
                break
            self._session.clock(_LATEST)
            self._round([])
            self._look()
        self._same("sends that are delivered in the end", set(self._sent), set(self._done))
        for receiver in (*MEMBERS, *QUEUES):
            self._inbox(receiver)

    def _send(self, name: str, request: Mapping[str, Any]) -> None:
        args = {"mesh_id": _MESH, "client_message_id": name, "request": request}
        answer, effect = self._session.call("send", args, _DAEMON), "prior" if name in self._sent else "new"
        if answer.words != f"accepted {effect}":
            self._bench.fail("over_refusal", f"a send: {answer.words}, accepted {effect} is due", at=answer.n)
        self._sent.setdefault(name, request)

    def _round(self, answers: list[dict[str, Any]]) -> None:
        self._session.answers([*answers, *[_WHOLE] * _ENOUGH])
        self._bench.must_be(self._session.call("deliver", {}, _DAEMON), "accepted", "deliver")

    def _die(self, point: str) -> None:
        """The broker is killed in the transaction of a message that it does not know yet."""
        # The failpoint is for the next request, so no row may wait that the broker knows.
        self._session.clock(_LATEST)
        self._round([])
        name = f"c-{len(self._sent)}"
        self._send(name, _request({"kind": "queue", "reference": QUEUES[0], "body": BODIES[1], "meta": None}))
        session = self._session
        session.answers([_WHOLE] * _ENOUGH)
        session.hold_at(point, _BROKER)
        delivering = session.start("deliver", {}, _DAEMON)
        session.reached(point)
        session.kill(_BROKER)
        session.finish(delivering)
        session.reopen(_BROKER)

    # What is there

    def _look(self) -> None:
        """Hold the rows of the outbox and of the broker against each other, and against what was sent."""
        state = self._session.observe("broker_state", {}, _BROKER)
        rows = self._session.inspect()["rows"]["outbox"]
        names = Counter(row["client_message_id"] for row in rows)
        self._same("rows of the outbox", Counter(list(self._sent)), names)
        for row in rows:
            if row["status"] not in _STATES:
                told = f"a row of the outbox is {row['status']}, although nothing refused it: {row['last_error']}"
                self._bench.fail("lost_durability", told)
        records = {each["client_message_id"]: each for each in state["dedupe"]}
        messages = {each["client_message_id"]: each["id"] for each in state["messages"]}
        if len(records) != len(state["dedupe"]) or len(messages) != len(state["messages"]):
            self._bench.fail("fail_open", f"{len(state['messages'])} messages of {len(messages)} sends")
        known = {name: each["broker_message_id"] for name, each in records.items()}
        self._same("messages and records", known, messages)
        for name, each in records.items():
            due = derive("mesh.fingerprint", self._sent[name]) if name in self._sent else "no such send"
            if each["request_fingerprint"] != due:
                self._bench.fail("fail_open", f"the fingerprint of {name}: {each['request_fingerprint']}, due is {due}")
        done = {row["client_message_id"]: row["broker_message_id"] for row in rows if row["status"] == "done"}
        for name, message in {**self._done, **done}.items():
            if done.get(name) != message or known.get(name) != message:
                told = f"{name} was done as {message}; its row has {done.get(name)}, the broker {known.get(name)}"
                self._bench.fail("lost_durability", told)
        self._done = done

    def _inbox(self, receiver: str) -> None:
        args = {"mesh_id": _MESH, "receiver": receiver}
        came = Counter(each["client_message_id"] for each in self._session.observe("inbox", args, _BROKER)["messages"])
        due = Counter(name for name, request in self._sent.items() if receiver in _receivers(request))
        self._same(f"messages of {receiver[:8]}", due, came)

    def _same(self, what: str, due: Any, came: Any) -> None:
        if due == came:
            return
        missing = [each for each in due if each not in came]
        verdict = "lost_durability" if missing else "fail_open"
        self._bench.fail(verdict, f"the {what} differ", expected=str(due)[:200], received=str(came)[:200])


def _request(args: Mapping[str, Any]) -> dict[str, Any]:
    meta = {} if args["meta"] is None else {"meta": base64url(args["meta"].encode())}
    named = {"destination_kind": args["kind"], "destination_ref": args["reference"]}
    return {"envelope_version": 1, **named, "body": args["body"], **meta}


def _receivers(request: Mapping[str, Any]) -> tuple[str, ...]:
    if request["destination_kind"] != "topic":
        return (request["destination_ref"],)
    return tuple(member for member in MEMBERS if member != _SENDER)


@contextlib.contextmanager
def playing(bench: Bench) -> Generator[HistoryRunner, None, None]:
    """A history of a fresh broker and a fresh daemon."""
    config = {"transport": "http", "broker": "{peer}", "member": _SENDER}
    with bench.session(2, config=config, hurried=False) as session:
        yield HistoryRunner(bench, session)


@clause("MESH-4.1-E2", whole=True)
def test_any_history_of_a_broker_and_a_daemon_delivers_each_send_once(bench: Bench) -> None:
    """Sends, rounds over a bad network, outages of the database, and deaths of both at any point."""
    run_histories(
        bench, count=_HISTORIES, draw=partial(draw, length=_LENGTH), begin=partial(playing, bench), trials=_TRIALS
    )
