"""Histories of a broker: any steps in any order, by two processes, held against the model."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.suites.mesh_delivery.generate import (
    MADE,
    MEMBERS,
    MESHES,
    POINTS,
    QUEUES,
    WORKERS,
    Step,
    asked,
)
from holdfast.conformance.suites.mesh_delivery.model import Args, Due, Message, Model
from holdfast.conformance.suites.mesh_delivery.sends import Compared

_MISMATCHES = "cm_broker_dedupe_fingerprint_mismatch_total"
_CHECKS, _FOUND = "cm_broker_dedupe_orphan_check_total", "cm_broker_dedupe_orphan_found"
# A counter, with its labels.
_Counter: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]


class HistoryRunner(Compared):
    """One history under way. Implements `histories.HistoryRunner`."""

    def __init__(self, bench: Bench, session: SuiteSession, days: int | None) -> None:
        self._bench, self._session, self._model = bench, session, Model(days)
        self._counted: list[Counter[_Counter]] = [Counter() for _ in range(WORKERS)]
        self._may_count: list[Counter[_Counter]] = [Counter() for _ in range(WORKERS)]
        for mesh_id in MESHES:
            self._make(mesh_id)

    def _make(self, mesh_id: str) -> None:
        mesh = self._model.meshes[mesh_id] = MADE[mesh_id]
        names = {"members": list(mesh.members), "topics": list(mesh.topics), "queues": list(mesh.queues)}
        self._session.provoke("make_mesh", {"mesh_id": mesh_id, **names})

    def step(self, step: Step) -> None:
        """See `histories.HistoryRunner`."""
        args, session, worker = dict(step.args), self._session, step.worker
        match step.what:
            case "send" | "again":
                self._accept(asked(step), worker)
            case "die":
                self._die(asked(step), worker, step.point)
            case "clock":
                session.clock(args["to"])
            case "expire":
                session.provoke("expire", {}, worker)
                self._model.expire(self._now)
            case "prune":
                self._prune(args["to"], worker)
            case "orphans":
                self._check_orphans(worker)
            case "lose" if self._model.messages:
                # The newest message row goes, past the broker.
                self._remove(sorted(self._model.messages)[-1])
            case "flag":
                self._model.enforced = args["to"] == "on"
                session.provoke("set_flag", {"enabled": self._model.enforced}, worker)
                self._advertised(1 - worker)
            case "delete":
                session.provoke("delete_mesh", {"mesh_id": MESHES[args["to"]]}, worker)
                self._model.delete_mesh(MESHES[args["to"]])
            case "migrate":
                # There is nothing left to migrate, whatever a record has by now.
                session.provoke("migrate", {}, worker)
            case "restart" | "kill":
                self._end(step.what, worker)

    def compare(self) -> None:
        """See `histories.HistoryRunner`."""
        self._state()
        for worker in range(WORKERS):
            self._counters(worker)
            self._advertised(worker)
        self._handed_out()
        self._orphan()

    # Sends

    def _accept(self, args: Args, worker: int) -> None:
        due, answer = self._model.due(args), self._session.call("accept", args, worker)
        if due.effect is None:
            self._refused(args, worker, due, answer)
            return
        if answer.outcome != "accepted":
            self._differs("over_refusal", "a send", f"accepted as {due.effect}", answer.reason or answer.outcome)
        self._must_be(answer.effect, due.effect, "fail_open", "the effect of a send")
        value = answer.value
        if due.record is None:
            self._new(args, value)
        else:
            known = {
                "broker_message_id": due.record.message_id,
                "duplicate": True,
                "history_available": due.record.history,
                "first_seen_at": _written(due.record.first),
            }
            came = {name: value.get(name) for name in known}
            self._must_be(came, known, "wrong_reason", "the answer to a retry")

    def _new(self, args: Args, value: Mapping[str, Any]) -> None:
        known = {"client_message_id": args["client_message_id"], "duplicate": False}
        came = {name: each for name, each in value.items() if name not in ("broker_message_id", "history_id")}
        self._must_be(came, known, "wrong_reason", "the answer to a first send")
        if value["broker_message_id"] in self._model.messages:
            self._differs("fail_open", "the id of a first send", "a new one", value["broker_message_id"])
        self._model.accepted(args, value["broker_message_id"], self._now)

    def _refused(self, args: Args, worker: int, due: Due, answer: Any) -> None:
        if answer.outcome != "refused":
            self._differs("fail_open", "a send", f"refused with {due.reason}", f"{answer.outcome} as {answer.effect}")
        if answer.reason == due.or_reason:
            return
        self._must_be(answer.reason, due.reason, "wrong_reason", "a refusal")
        if due.data and answer.data != due.data:
            self._weigh("wrong_reason", "the data of a conflict", due.data, answer.data)
        if due.data.get("conflict") == "request_fingerprint_mismatch":
            self._count(worker, _MISMATCHES, client_id=args["sender"], mesh_id=args["mesh_id"])
        elif due.data:
            # Whether a conflict of senders counts as well is open.
            self._may_count[worker][_counter(_MISMATCHES, client_id=args["sender"], mesh_id=args["mesh_id"])] += 1

    def _die(self, args: Args, worker: int, point: str) -> None:
        """The process is killed at a point of its transaction. What reaches the point is there, or not at all."""
        session, due = self._session, self._model.due(args)
        passed = due.effect == "new" and (self._model.enforced or point in POINTS[2:])
        if not passed:
            self._accept(args, worker)
            return
        session.hold_at(point, worker)
        session.start("accept", args, worker)
        session.reached(point)
        self._end("kill", worker)
        if point == "after_commit":
            found = {each["id"] for each in session.observe("broker_state", {}, worker)["messages"]}
            new = found - self._model.messages.keys()
            if len(new) != 1:
                self._differs("lost_durability", "messages behind a commit", "one new", len(new))
            self._model.accepted(args, new.pop(), self._now)
        self._state(worker)

    # Jobs and processes

    def _prune(self, span: str, worker: int) -> None:
        units = {"s": 1, "h": 3600, "d": 86400}
        seconds = int(span[1:-1]) * units[span[-1]]
        moment = datetime.fromtimestamp(self._now.timestamp() - seconds + 1, tz=self._now.tzinfo)
        done = self._session.provoke("prune", {"older_than": _written(moment)}, worker)
        if done != {"done": True}:
            self._differs("over_refusal", "prune", "done", done)
        self._model.prune(moment)

    def _check_orphans(self, worker: int) -> None:
        due, came = self._model.orphans(), self._session.provoke("check_orphans", {}, worker)["orphans"]
        if came != due:
            missing = [each for each in due if each not in came]
            self._weigh("fail_open" if missing else "wrong_reason", "the orphan check", due, came)
        self._count(worker, _CHECKS)
        for orphan in due:
            self._count(worker, _FOUND, mesh_id=orphan["mesh_id"])

    def _remove(self, lost: str) -> None:
        self._session.provoke("remove_message", {"broker_message_id": lost})
        del self._model.messages[lost]

    def _orphan(self) -> None:
        """A message that was accepted a moment ago is gone, and the check finds it. A history seldom comes to both."""
        if not self._model.meshes:
            self._make(MESHES[0])
        mesh_id = next(iter(self._model.meshes))
        self.step(Step("flag", args=(("to", "on"),)))
        request = {"envelope_version": 1, "destination_kind": "queue", "destination_ref": QUEUES[0], "body": ""}
        named = {"mesh_id": mesh_id, "client_message_id": "the last one"}
        self._accept({**named, "sender": MEMBERS[0], "request": request}, 0)
        self._remove(self._model.records[mesh_id, named["client_message_id"]].message_id)
        self._check_orphans(0)

    def _end(self, how: str, worker: int) -> None:
        self._session.begin_again(how, worker)
        self._counted[worker].clear()
        self._may_count[worker].clear()

    def _count(self, worker: int, name: str, **labels: str) -> None:
        self._counted[worker][_counter(name, **labels)] += 1

    # What is there

    def _state(self, worker: int = 0) -> None:
        model, state = self._model, self._session.observe("broker_state", {}, worker)
        records = [
            {
                "mesh_id": mesh_id,
                "client_message_id": name,
                "broker_message_id": each.message_id,
                "request_fingerprint": each.fingerprint,
                "destination_kind": each.kind,
                "destination_ref": each.reference,
                "first_seen_at": _written(each.first),
                "expires_at": None if each.expires is None else _written(each.expires),
                "history_available": each.history,
            }
            for (mesh_id, name), each in sorted(model.records.items())
        ]
        self._same("records", records, state["dedupe"])
        messages = [_row(message_id, each) for message_id, each in sorted(model.messages.items())]
        shown = [_plain(self._model.as_legacy(row, row["id"])) for row in state["messages"]]
        self._same("messages", messages, shown)

    def _same(self, what: str, due: Sequence[Any], came: Sequence[Any]) -> None:
        if list(due) == list(came):
            return
        lost = [row for row in due if row not in came]
        more = [row for row in came if row not in due]
        self._differs("lost_durability" if lost else "fail_open", f"the {what}", lost[:1], more[:1])

    def _counters(self, worker: int) -> None:
        found = self._session.observe("counters", {}, worker)["counters"]
        came = {(each["name"], tuple(sorted(each["labels"].items()))): each["value"] for each in found}
        names = (_MISMATCHES, _CHECKS, _FOUND)
        shown = {key: value for key, value in came.items() if key[0] in names and value}
        due, more = self._counted[worker], self._may_count[worker]
        if any(not due[key] <= shown.get(key, 0) <= due[key] + more[key] for key in {*due, *shown}):
            self._weigh("wrong_reason", f"the counters of worker {worker}", dict(due), shown)

    def _advertised(self, worker: int) -> None:
        supported = self._session.observe("features", {}, worker)["supported"]
        if ("client_message_id_dedupe" in supported) is not self._model.enforced:
            verdict = "wrong_reason" if self._model.enforced else "fail_open"
            self._weigh(verdict, "what is advertised", self._model.enforced, sorted(supported))

    def _handed_out(self) -> None:
        for mesh_id, mesh in self._model.meshes.items():
            for receiver in (*mesh.members, *mesh.queues):
                self._inbox(mesh_id, receiver)

    def _inbox(self, mesh_id: str, receiver: str) -> None:
        args = {"mesh_id": mesh_id, "receiver": receiver}
        due = [
            {"client_message_id": each.client_message_id, "broker_message_id": name, "body": each.body}
            for name, each in sorted(self._model.messages.items())
            if each.mesh_id == mesh_id and receiver in self._model.receivers(each)
        ]
        found = self._session.observe("inbox", args)["messages"]
        came = [self._model.as_legacy(row, row["broker_message_id"]) for row in found]
        self._same(f"messages of {receiver[:8]}", due, came)


def _counter(name: str, **labels: str) -> _Counter:
    return name, tuple(sorted(labels.items()))


def _written(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _row(message_id: str, each: Message) -> dict[str, Any]:
    return {
        "id": message_id,
        "mesh_id": each.mesh_id,
        "client_message_id": each.client_message_id,
        "sender": each.sender,
        "destination_kind": each.kind,
        "destination_ref": each.reference,
        "body": each.body,
        "relation": None if each.kind == "dm" else each.relation,
    }


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A message row; where that of a dm lies is the implementation's own."""
    return {**row, "relation": None} if row["destination_kind"] == "dm" else dict(row)


@contextlib.contextmanager
def playing(bench: Bench, days: int | None, transport: str | None = None) -> Generator[HistoryRunner, None, None]:
    """A history on a fresh broker, over a socket if a transport is named."""
    config = {"mode": "permanent"} if days is None else {"dedupe_retention_days": str(days)}
    if transport is not None:
        config["transport"] = transport
    with bench.session(WORKERS, config=config, hurried=False) as session:
        yield HistoryRunner(bench, session, days)
