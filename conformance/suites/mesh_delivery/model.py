"""The broker as a pure model: what it has, what sends and jobs may answer, and what is shown. See `attacks.model`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from holdfast.conformance.attacks.model import DONE, Call, Model, Observation, Outcome
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.suites.mesh_delivery.sends import MADE, MESHES, PLACES, Args, Mesh, args_of
from holdfast.vectors.derive import derive

_KEY, _PREFIX = "mesh.fingerprint", "mesh.prefix"
REUSED, _NOWHERE = "refused IDEMPOTENCY_KEY_REUSED", "refused DESTINATION_NOT_FOUND"
MISMATCHES = "cm_broker_dedupe_fingerprint_mismatch_total"
_CHECKS, _FOUND = "cm_broker_dedupe_orphan_check_total", "cm_broker_dedupe_orphan_found"
# So many members of a mesh are asked what they are handed out.
_SHOWN = 4
_LATER = timedelta(hours=1)
Row = Mapping[str, Any]
# A counter of a worker, with its labels.
Counter = tuple[int, str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Message:
    """A message row as it is shown. Of a legacy one it is open whether it has the id that it was `sent` with."""

    created: datetime
    sent: str
    row: Row


@dataclass(frozen=True, slots=True)
class Record:
    """A dedupe record as it is shown, and whose it is."""

    sender: str
    row: Row

    def is_over(self, now: datetime) -> bool:
        """Whether its time is over."""
        return self.row["expires_at"] is not None and datetime.fromisoformat(self.row["expires_at"]) < now


@dataclass(frozen=True, slots=True)
class Broker:
    """What is in the database, and how often each counter has counted at least and at most."""

    meshes: Mapping[str, Mesh] = field(default_factory=dict)
    records: Mapping[tuple[str, str], Record] = field(default_factory=dict)
    messages: Mapping[str, Message] = field(default_factory=dict)
    enforced: bool = True
    counted: Mapping[Counter, tuple[int, int]] = field(default_factory=dict)

    def known(self, args: Args) -> Record | None:
        """The record of a send's id."""
        return self.records.get((args["mesh_id"], args["client_message_id"]))

    def takes(self, args: Args) -> bool:
        """Whether the sender of a send is a member."""
        mesh = self.meshes.get(args["mesh_id"])
        return mesh is not None and args["sender"] in mesh.members

    def reaches(self, args: Args) -> bool:
        """Whether the destination of a send is there."""
        return self.meshes[args["mesh_id"]].has(args["request"]["destination_kind"], _reference(args["request"]))

    def receivers(self, message: Message) -> list[str]:
        """Who is handed it out, in order."""
        row = message.row
        if row["destination_kind"] != "topic":
            return [row["destination_ref"]]
        return sorted(each for each in self.meshes[row["mesh_id"]].members if each != row["sender"])

    def counting(self, worker: int, name: str, *, sure: bool = True, **labels: str) -> Broker:
        """One more of a counter; or perhaps one more."""
        key = worker, name, tuple(sorted(labels.items()))
        least, most = self.counted.get(key, (0, 0))
        return replace(self, counted={**self.counted, key: (least + sure, most + 1)})

    def orphans(self) -> list[dict[str, str]]:
        """What the orphan check reports."""
        rows = (each.row for _, each in sorted(self.records.items()))
        lost = (row for row in rows if row["history_available"] and row["broker_message_id"] not in self.messages)
        return [{name: row[name] for name in ("mesh_id", "client_message_id")} for row in lost]


class BrokerModel(Model[Broker]):
    """The model of the broker for one session."""

    operations = ("accept",)
    unavailable = ("BROKER_UNAVAILABLE",)
    exclusive = False
    chosen = "broker_state"
    first = Broker()
    config: Mapping[str, str] = {"dedupe_retention_days": "30"}
    hurried = False
    untold = "fail_open"
    points = ("before_dedupe", "after_dedupe", "after_message", "before_commit", "after_commit")
    stops = {"accept": points, "prune": ("between_prune",)}  # noqa: RUF012 - as all of these
    beside = ("accept", "again", "prune", "expire", "check_orphans", "delete_mesh", "set_flag", "migrate")

    def __init__(self, session: SuiteSession) -> None:
        self._session = session
        days = session.config.get("dedupe_retention_days")
        self._lives = None if days is None else timedelta(days=int(days))
        self._last = accept(args_of(""))
        self._counts = True

    @property
    def now(self) -> datetime:
        """The time of the session."""
        return datetime.fromisoformat(self._session.now)

    # Calls

    def needs(self, state: Broker, row: str) -> str:
        """See `attacks.model.Model`."""
        if row != "make_mesh" and MESHES[0] not in state.meshes:
            return "make_mesh"
        if row not in ("make_mesh", "enforce") and not state.enforced:
            return "enforce"
        return "accept" if row in ("prune", "again") and not state.messages else ""

    def call(self, state: Broker, row: str, number: int, count: int = 5) -> Call:
        """See `attacks.model.Model`."""
        del state, count
        if row == "accept":
            self._last = accept(args_of(f"{number}", [*PLACES][number % len(PLACES)]))
        if row in ("accept", "again"):
            return self._last
        if row == "prune":
            # All that there is, and all that comes meanwhile.
            return prune(self.now + _LATER)
        made: Mapping[str, Callable[[], Call]] = {
            "make_mesh": lambda: make(MESHES[0]),
            "delete_mesh": lambda: job("delete_mesh", mesh_id=MESHES[0]),
            "enforce": lambda: job("set_flag", enabled=True),
            "set_flag": lambda: job("set_flag", enabled=False),
        }
        return made.get(row, partial(job, row))()

    def passes(self, state: Broker, call: Call, point: str) -> bool:
        """See `attacks.model.Model`."""
        if call.method != "accept":
            return True
        is_new = any(each.said == "accepted new" for each in self.outcomes(state, call, None))
        return is_new and (state.enforced or point in self.points[2:])

    def held(self, state: Broker, call: Call) -> Broker:
        """See `attacks.model.Model`. It is open whether what fails beside it has counted."""
        self._counts = False
        return super().held(state, call)

    def ended(self, state: Broker, worker: int) -> Broker:
        """See `attacks.model.Model`. The counters of a worker begin again."""
        self._counts = True
        return replace(state, counted={key: each for key, each in state.counted.items() if key[0] != worker})

    # What may be answered

    def outcomes(self, state: Broker, call: Call, seen: Any) -> Iterator[Outcome[Broker]]:
        """See `attacks.model.Model`."""
        due: Iterator[Outcome[Broker]] = getattr(self, f"_{call.method}")(state, call, seen)
        return due

    def _accept(self, state: Broker, call: Call, seen: Any) -> Iterator[Outcome[Broker]]:
        args, record = call.args, state.known(call.args) if state.enforced else None
        if not state.takes(args):
            yield Outcome("refused AUTH_MISSING", state)
        elif record is None:
            yield from self._new(state, args, seen or {}) if state.reaches(args) else [Outcome(_NOWHERE, state)]
        elif (record.sender, record.row["request_fingerprint"]) == (args["sender"], derive(_KEY, args["request"])):
            names = ("broker_message_id", "client_message_id", "history_available", "first_seen_at")
            yield Outcome("accepted prior", state, {**{name: record.row[name] for name in names}, "duplicate": True})
        else:
            is_other = record.sender != args["sender"]
            labels = {"client_id": args["sender"], "mesh_id": args["mesh_id"]}
            # Whether a conflict of senders counts as well is open.
            counted = state.counting(call.worker, MISMATCHES, sure=not is_other, **labels)
            yield Outcome(REUSED, counted, self._conflict(args, record, is_other=is_other))
            if not state.reaches(args):
                # A conflict to a destination that is not there may have either reason.
                yield Outcome(_NOWHERE, state)

    def _conflict(self, args: Args, record: Record, *, is_other: bool) -> Mapping[str, Any]:
        """Of another member's message nothing more is told."""
        told = {"client_message_id": args["client_message_id"], "field": None}
        if is_other:
            return {**told, "conflict": "sender_mismatch", "broker_fingerprint_prefix": None}
        prefix = record.row["request_fingerprint"][: len(derive(_PREFIX, args["request"]))]
        return {**told, "conflict": "request_fingerprint_mismatch", "broker_fingerprint_prefix": prefix}

    def _new(self, state: Broker, args: Args, seen: Row) -> Iterator[Outcome[Broker]]:
        """A first send has an id of its own; without an answer it is one of those that nothing else explains."""
        shown = {each["id"] for each in seen.get("messages", ())} - state.messages.keys()
        told = {"duplicate": False, "history_available": None, "first_seen_at": None}
        for message_id in sorted(shown) or [seen.get("broker_message_id", "")]:
            if message_id in state.messages:
                yield Outcome("accepted new", state, {"broker_message_id": "another one"}, "fail_open")
            else:
                after = self._stored(state, args, message_id)
                yield Outcome("accepted new", after, {**told, "client_message_id": args["client_message_id"]})

    def _stored(self, state: Broker, args: Args, message_id: str) -> Broker:
        request, name = args["request"], args["client_message_id"]
        kind, reference = request["destination_kind"], _reference(request)
        place = {"mesh_id": args["mesh_id"], "destination_kind": kind, "destination_ref": reference}
        row = {
            **place,
            "id": message_id,
            "client_message_id": name if state.enforced else None,
            "sender": args["sender"],
            "body": request["body"],
            # The contract leaves open where the row of a dm lies.
            "relation": {"topic": "topic_message", "queue": "message_queue"}.get(kind),
        }
        after = replace(state, messages={**state.messages, message_id: Message(self.now, name, row)})
        if not state.enforced:
            return after
        record = {
            **place,
            "client_message_id": name,
            "broker_message_id": message_id,
            "request_fingerprint": derive(_KEY, request),
            "first_seen_at": written(self.now),
            "expires_at": None if self._lives is None else written(self.now + self._lives),
            "history_available": True,
        }
        return replace(after, records={**state.records, (args["mesh_id"], name): Record(args["sender"], record)})

    def _expire(self, state: Broker, _: Call, __: Any) -> Iterator[Outcome[Broker]]:
        left = {key: each for key, each in state.records.items() if not each.is_over(self.now)}
        yield Outcome(DONE, replace(state, records=left))

    def _prune(self, state: Broker, call: Call, _: Any) -> Iterator[Outcome[Broker]]:
        moment = datetime.fromisoformat(call.args["older_than"])
        left = {name: each for name, each in state.messages.items() if each.created >= moment}
        gone = state.messages.keys() - left.keys()
        records = dict(state.records)
        for key, each in state.records.items():
            if each.row["broker_message_id"] in gone:
                records[key] = replace(each, row={**each.row, "history_available": False})
        yield Outcome(DONE, replace(state, messages=left, records=records), {"done": True}, "over_refusal")

    def _check_orphans(self, state: Broker, call: Call, _: Any) -> Iterator[Outcome[Broker]]:
        due, after = state.orphans(), state.counting(call.worker, _CHECKS)
        for each in due:
            after = after.counting(call.worker, _FOUND, mesh_id=each["mesh_id"])
        yield Outcome(DONE, after, {"orphans": due})

    def _make_mesh(self, state: Broker, call: Call, _: Any) -> Iterator[Outcome[Broker]]:
        mesh = Mesh(*(tuple(call.args[name]) for name in ("members", "topics", "queues")))
        yield Outcome(DONE, replace(state, meshes={**state.meshes, call.args["mesh_id"]: mesh}))

    def _delete_mesh(self, state: Broker, call: Call, _: Any) -> Iterator[Outcome[Broker]]:
        """It goes with all that belongs to it."""
        gone = call.args["mesh_id"]
        meshes = {name: each for name, each in state.meshes.items() if name != gone}
        records = {key: each for key, each in state.records.items() if key[0] != gone}
        messages = {name: each for name, each in state.messages.items() if each.row["mesh_id"] != gone}
        yield Outcome(DONE, replace(state, meshes=meshes, records=records, messages=messages))

    def _set_flag(self, state: Broker, call: Call, _: Any) -> Iterator[Outcome[Broker]]:
        yield Outcome(DONE, replace(state, enforced=call.args["enabled"]))

    def _migrate(self, state: Broker, _: Call, __: Any) -> Iterator[Outcome[Broker]]:
        """There is nothing left to migrate, whatever a record has by now."""
        yield Outcome(DONE, state)

    def _remove_message(self, state: Broker, call: Call, _: Any) -> Iterator[Outcome[Broker]]:
        gone = call.args["broker_message_id"]
        yield Outcome(DONE, replace(state, messages={key: each for key, each in state.messages.items() if key != gone}))

    # What is shown

    def observations(self, state: Broker) -> Iterator[Observation]:
        """See `attacks.model.Model`."""
        records = [each.row for _, each in sorted(state.records.items())]
        messages = [each.row for _, each in sorted(state.messages.items())]
        due = {"dedupe": records, "messages": messages}
        yield self._observed("broker_state", due, {}, partial(_plain, state))
        for mesh_id, mesh in state.meshes.items():
            for receiver in (*mesh.members[:_SHOWN], *mesh.queues):
                yield self._inbox(state, mesh_id, receiver)
        for worker in range(self._session.workers):
            counted = {f"{key}": least for key, (least, _) in state.counted.items() if key[0] == worker and least}
            part = partial(_counters, state, worker)
            if self._counts:
                yield Observation("counters", {"counters": counted}, {}, part, "wrong_reason", worker=worker)
            yield advertised(state, worker)

    def _observed(self, method: str, due: Mapping[str, Any], args: Args, part: Callable[[Any], Args]) -> Observation:
        """Rows: what is missing is lost; what is more, or is said to be there and is not, fails open."""

        def verdict(found: Mapping[str, Any]) -> str:
            told, there = (
                {row["broker_message_id"] for row in each.get("dedupe", ()) if row["history_available"]}
                for each in (found, due)
            )
            lost = any(row not in found[name] for name, rows in due.items() for row in rows)
            return "lost_durability" if lost and told <= there else "fail_open"

        return Observation(method, due, args, part, verdict)

    def _inbox(self, state: Broker, mesh_id: str, receiver: str) -> Observation:
        due = [
            {"broker_message_id": name, **{part: each.row[part] for part in ("client_message_id", "body")}}
            for name, each in sorted(state.messages.items())
            if each.row["mesh_id"] == mesh_id and receiver in state.receivers(each)
        ]
        part = lambda shown: {"messages": [_as_legacy(state, each) for each in shown["messages"]]}  # noqa: E731
        return self._observed("inbox", {"messages": due}, {"mesh_id": mesh_id, "receiver": receiver}, part)


def advertised(state: Broker, worker: int) -> Observation:
    """Whether a worker advertises the deduplication that is in force."""
    part = lambda shown: {"advertised": "client_message_id_dedupe" in shown["supported"]}  # noqa: E731
    verdict = "wrong_reason" if state.enforced else "fail_open"
    return Observation("features", {"advertised": state.enforced}, {}, part, verdict, worker=worker)


def accept(args: Args, worker: int = 0) -> Call:
    """A send."""
    request = args["request"]
    told = (args["mesh_id"][:4], args["sender"][:2], repr(args["client_message_id"]), *map(str, request.values()))
    return Call(
        "accept", "accept", args, named=f"accept w{worker} {' '.join(each[:8] for each in told)}", worker=worker
    )


def job(method: str, worker: int = 0, **args: Any) -> Call:
    """What an administrator does, or a job."""
    return Call(method, method, args, worker=worker)


def prune(moment: datetime, worker: int = 0) -> Call:
    """The retention sweep of what is older."""
    return job("prune", worker, older_than=written(moment))


def make(mesh_id: str) -> Call:
    """A mesh with all that belongs to it."""
    mesh = MADE[mesh_id]
    names = {"members": list(mesh.members), "topics": list(mesh.topics), "queues": list(mesh.queues)}
    return Call("make_mesh", "make_mesh", {"mesh_id": mesh_id, **names}, named=f"make_mesh {mesh_id[:4]}")


def written(moment: datetime) -> str:
    """A moment as an instant."""
    return moment.isoformat().replace("+00:00", "Z")


def _reference(request: Mapping[str, Any]) -> str:
    reference: str = request["destination_ref"]
    return reference.lower() if request["destination_kind"] == "dm" else reference


def _plain(state: Broker, shown: Any) -> Mapping[str, Any]:
    """Records and messages; where the row of a dm lies is the implementation's own."""
    messages = [_as_legacy(state, each) for each in shown["messages"]]
    plain = [{**each, "relation": None} if each["destination_kind"] == "dm" else each for each in messages]
    return {"dedupe": shown["dedupe"], "messages": plain}


def _as_legacy(state: Broker, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row that is shown, without the id of a legacy message."""
    found = state.messages.get(row.get("id", row.get("broker_message_id")))
    is_sent = found is not None and row["client_message_id"] == found.sent
    return {**row, "client_message_id": found.row["client_message_id"]} if found is not None and is_sent else dict(row)


def _counters(state: Broker, worker: int, shown: Any) -> Mapping[str, Any]:
    """The counters that count; one that is within its bounds is as it is due."""
    found: dict[str, int] = {}
    for each in shown["counters"]:
        if each["name"] in (MISMATCHES, _CHECKS, _FOUND):
            key = worker, each["name"], tuple(sorted(each["labels"].items()))
            least, most = state.counted.get(key, (0, 0))
            found[f"{key}"] = least if least <= each["value"] <= most else each["value"]
    return {"counters": {key: value for key, value in found.items() if value}}
