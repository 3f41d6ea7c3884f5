"""The broker as a pure model: what it has after each step, and what is due for a send. It knows no implementation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from holdfast.vectors.derive import derive

Args = Mapping[str, Any]
_KEY = "mesh.fingerprint"
_PREFIX = "mesh.prefix"
_REUSED = "IDEMPOTENCY_KEY_REUSED"


@dataclass(frozen=True, slots=True)
class Mesh:
    """A mesh and what belongs to it."""

    members: tuple[str, ...]
    topics: tuple[str, ...]
    queues: tuple[str, ...]

    def has(self, kind: str, reference: str) -> bool:
        """Whether a message can go there."""
        return reference in {"topic": self.topics, "dm": self.members, "queue": self.queues}[kind]


@dataclass(frozen=True, slots=True)
class Message:
    """A message row. A legacy one has no client_message_id, or that which it was `sent` with: both are right."""

    mesh_id: str
    client_message_id: str | None
    sender: str
    kind: str
    reference: str
    body: str
    created: datetime
    sent: str

    @property
    def relation(self) -> str:
        """Where the row lies; the contract leaves open where that of a dm does, so it is asked of no dm."""
        return "topic_message" if self.kind == "topic" else "message_queue"


@dataclass(frozen=True, slots=True)
class Record:
    """A dedupe record."""

    message_id: str
    fingerprint: str
    sender: str
    kind: str
    reference: str
    first: datetime
    expires: datetime | None
    history: bool


@dataclass(frozen=True, slots=True)
class Due:
    """What is due for a send: `new`, `prior` with the record, or a refusal with its reason and data."""

    effect: str | None
    reason: str | None = None
    record: Record | None = None
    # A conflict to a destination that is not there may have either reason.
    or_reason: str | None = None
    data: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Model:
    """The state of the broker. `days` is None in mode permanent."""

    days: int | None
    meshes: dict[str, Mesh] = field(default_factory=dict)
    records: dict[tuple[str, str], Record] = field(default_factory=dict)
    messages: dict[str, Message] = field(default_factory=dict)
    enforced: bool = True

    def due(self, args: Args) -> Due:
        """What a send must be answered with."""
        mesh, request = self.meshes.get(args["mesh_id"]), args["request"]
        if mesh is None or args["sender"] not in mesh.members:
            return Due(None, "AUTH_MISSING")
        record = self.records.get(_key(args)) if self.enforced else None
        if record is None:
            there = mesh.has(request["destination_kind"], _reference(request))
            return Due("new") if there else Due(None, "DESTINATION_NOT_FOUND")
        told = {"client_message_id": args["client_message_id"]}
        there = mesh.has(request["destination_kind"], _reference(request))
        other = None if there else "DESTINATION_NOT_FOUND"
        if record.sender != args["sender"]:
            return Due(None, _REUSED, or_reason=other, data={**told, "conflict": "sender_mismatch"})
        if record.fingerprint != derive(_KEY, request):
            prefix = {"broker_fingerprint_prefix": record.fingerprint[: len(derive(_PREFIX, request))]}
            told |= {"conflict": "request_fingerprint_mismatch", **prefix}
            return Due(None, _REUSED, or_reason=other, data=told)
        return Due("prior", record=record)

    def accepted(self, args: Args, message_id: str, now: datetime) -> None:
        """A send was accepted as new under this id."""
        request, reference = args["request"], _reference(args["request"])
        kind, name = request["destination_kind"], args["client_message_id"] if self.enforced else None
        self.messages[message_id] = Message(
            args["mesh_id"], name, args["sender"], kind, reference, request["body"], now, args["client_message_id"]
        )
        if self.enforced:
            expires = None if self.days is None else now + timedelta(days=self.days)
            fingerprint = derive(_KEY, request)
            self.records[_key(args)] = Record(
                message_id, fingerprint, args["sender"], kind, reference, now, expires, history=True
            )

    def expire(self, now: datetime) -> None:
        """The nightly job."""
        if self.days is not None:
            self.records = {
                key: each for key, each in self.records.items() if each.expires is None or each.expires >= now
            }

    def prune(self, older_than: datetime) -> None:
        """The retention sweep."""
        gone = {message_id for message_id, each in self.messages.items() if each.created < older_than}
        self.messages = {message_id: each for message_id, each in self.messages.items() if message_id not in gone}
        self.records = {
            key: replace(each, history=False) if each.message_id in gone else each for key, each in self.records.items()
        }

    def orphans(self) -> list[dict[str, str]]:
        """What the orphan check reports."""
        return [
            {"mesh_id": mesh_id, "client_message_id": name}
            for (mesh_id, name), each in sorted(self.records.items())
            if each.history and each.message_id not in self.messages
        ]

    def delete_mesh(self, mesh_id: str) -> None:
        """A mesh goes with all that belongs to it."""
        self.meshes.pop(mesh_id, None)
        self.records = {key: each for key, each in self.records.items() if key[0] != mesh_id}
        self.messages = {name: each for name, each in self.messages.items() if each.mesh_id != mesh_id}

    def as_legacy(self, row: Mapping[str, Any], message_id: str) -> dict[str, Any]:
        """A row that is shown, without the id of a legacy message."""
        found = self.messages.get(message_id)
        is_legacy = found is not None and found.client_message_id is None and row["client_message_id"] == found.sent
        return {**row, "client_message_id": None} if is_legacy else dict(row)

    def receivers(self, message: Message) -> list[str]:
        """Who is handed out a message."""
        if message.kind != "topic":
            return [message.reference]
        return [member for member in self.meshes[message.mesh_id].members if member != message.sender]


def _key(args: Args) -> tuple[str, str]:
    return args["mesh_id"], args["client_message_id"]


def _reference(request: Mapping[str, Any]) -> str:
    reference: str = request["destination_ref"]
    return reference.lower() if request["destination_kind"] == "dm" else reference
