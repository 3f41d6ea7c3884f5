"""Bugs of the outbox and of the delivery: what is kept, what is sent, and what an answer makes of a row."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from holdfast.reference_impl.mesh_delivery.daemon import Daemon, Response
from holdfast.reference_impl.mesh_delivery.outbox import Outbox, OutboxSchema, Row
from holdfast.reference_impl.planting import Change, part
from holdfast.specs.strictjson import loads


def _table(before: str, after: str) -> Change:
    """The outbox with another text in one place."""

    class Changed(OutboxSchema):
        def table(self) -> str:
            found = super().table()
            assert found.count(before) == 1, before
            return found.replace(before, after)

    return part(outbox_schema=Changed)


class NoIndex(OutboxSchema):
    def index(self) -> str:
        return "SELECT 1"


class NewIdEachTime(Daemon):
    def headers(self, row: Row) -> dict[str, str]:
        return {**super().headers(row), self.route.headers["client_message_id"]: str(uuid4())}


class OneId(Daemon):
    def new_name(self) -> str:
        return "message"


class Later(Outbox):
    """Answers before the row is there; it is written with the next one."""

    waiting: tuple[Any, ...] | None = None

    def insert(self, name: str, fingerprint: bytes, payload: bytes, now: int) -> tuple[Row, bool]:
        if self.waiting is not None:
            super().insert(*self.waiting)
        self.waiting = (name, fingerprint, payload, now)
        return Row(name, name, fingerprint, payload, now, 0, now, "pending", None, None, None), True


class Replaces(Outbox):
    def insert(self, name: str, fingerprint: bytes, payload: bytes, now: int) -> tuple[Row, bool]:
        with self.transaction() as connection:
            connection.execute("DELETE FROM outbox WHERE client_message_id = ?", (name,))
        return super().insert(name, fingerprint, payload, now)


class AnySend(Daemon):
    def is_same(self, row: Row, fingerprint: bytes, args: Mapping[str, Any]) -> bool:
        return True


class AnyMesh(Daemon):
    def is_same(self, row: Row, fingerprint: bytes, args: Mapping[str, Any]) -> bool:
        return row.request_fingerprint == fingerprint


class OfThePayload(Daemon):
    def fingerprint_of(self, request: Mapping[str, Any]) -> bytes:
        super().fingerprint_of(request)
        return self.fingerprinter.digest(json.dumps(request, sort_keys=True).encode())


class Encoded(Daemon):
    def body(self, row: Row) -> bytes:
        return json.dumps({**loads(row.payload), "attempt": row.attempts}).encode()


class NoMessageId(Daemon):
    def close(self, row: Row, body: Mapping[str, Any]) -> None:
        self.outbox.settle_row(row, {"status": "done", "attempts": row.attempts + 1})


class NeverDone(Daemon):
    def is_retry(self, row: Row, body: Mapping[str, Any]) -> bool:
        return False


class AlwaysLoud(Daemon):
    def note_history(self, row: Row, body: Mapping[str, Any]) -> None:
        super().note_history(row, {**body, "history_available": False})


class NeverLoud(Daemon):
    def note_history(self, row: Row, body: Mapping[str, Any]) -> None:
        super().note_history(row, {**body, "history_available": True})


class ConflictIsRetried(Daemon):
    def is_conflict(self, row: Row, body: Mapping[str, Any]) -> bool:
        return False


class ConflictIsDone(Daemon):
    def bury(self, row: Row, why: str) -> None:
        self.outbox.settle_row(row, {"status": "done", "last_error": why})


class Rotates(Daemon):
    def bury(self, row: Row, why: str) -> None:
        super().bury(row, why)
        self.outbox.rotate(row.client_message_id, str(uuid4()), self.seconds)


class Unsaid(Daemon):
    def tell(self, level: str, text: str) -> None:
        super().tell("INFO", text)


class NoReason(Daemon):
    def bury(self, row: Row, why: str) -> None:
        super().bury(row, "")


class Hidden(Daemon):
    def failed(self) -> list[dict[str, str | None]]:
        return []


class AnyRow(Outbox):
    def rotate(self, name: str, new: str, now: int) -> str | None:
        with self.transaction() as connection:
            connection.execute("UPDATE outbox SET status = 'dead' WHERE client_message_id = ?", (name,))
        return super().rotate(name, new, now)


class Swallows(Outbox):
    def rotate(self, name: str, new: str, now: int) -> str | None:
        with self.transaction() as connection:
            connection.execute("DELETE FROM outbox WHERE client_message_id = ? AND status <> 'dead'", (new,))
        return super().rotate(name, new, now)


class Anew(Outbox):
    def rotate(self, name: str, new: str, now: int) -> str | None:
        problem = super().rotate(name, new, now)
        with self.transaction() as connection:
            statement = "UPDATE outbox SET request_fingerprint = zeroblob(32) WHERE client_message_id = ?"
            connection.execute(statement, (new,))
        return problem


class AnyId(Daemon):
    def is_of(self, row: Row, body: Mapping[str, Any]) -> bool:
        return isinstance(body["broker_message_id"], str)


class AnyStatus(Daemon):
    def act(self, row: Row, response: Response) -> None:
        super().act(row, Response(201, response.body) if 200 < response.status < 400 else response)


class NoMaxAge(Daemon):
    def is_too_old(self, row: Row) -> bool:
        return False


class AgeOfTheAttempt(Daemon):
    def is_too_old(self, row: Row) -> bool:
        return self.seconds - row.next_attempt_at >= self.settings.max_age_hours * 3600


class Refreshed(Daemon):
    def put_off(self, row: Row, why: str) -> None:
        super().put_off(row, why)
        self.outbox.settle_row(row, {"enqueued_at": self.seconds})


class Uncounted(Daemon):
    def put_off(self, row: Row, why: str) -> None:
        super().put_off(row, why)
        self.outbox.settle_row(row, {"attempts": 0})


class AtOnce(Daemon):
    def put_off(self, row: Row, why: str) -> None:
        super().put_off(row, why)
        self.outbox.settle_row(row, {"next_attempt_at": self.seconds})


class GivesUp(Daemon):
    def put_off(self, row: Row, why: str) -> None:
        self.bury(row, why)


class ComputedAgain(Outbox):
    def take_due(self, now: int) -> list[Row]:
        found = super().take_due(now)
        for row in found:
            self.settle_row(row, {"request_fingerprint": hashlib.sha256(row.payload).digest()})
        return found


class Deleted(Daemon):
    def bury(self, row: Row, why: str) -> None:
        with self.outbox.transaction() as connection:
            connection.execute("DELETE FROM outbox WHERE id = ?", (row.id,))


class NotRecovered(Outbox):
    def recover(self, connection: sqlite3.Connection) -> None:
        pass


BUGS: Mapping[str, Change] = {
    "another-id-each-attempt": part(daemon=NewIdEachTime),
    "one-id-for-all": part(daemon=OneId),
    "answered-before-it-is-kept": part(outbox=Later),
    "second-send-replaces": part(outbox=Replaces),
    "any-send-is-known": part(daemon=AnySend),
    "send-of-any-mesh-is-known": part(daemon=AnyMesh),
    "fingerprint-of-the-text": part(daemon=OfThePayload),
    "encoded-again": part(daemon=Encoded),
    "done-without-an-id": part(daemon=NoMessageId),
    "duplicate-is-sent-again": part(daemon=NeverDone),
    "duplicate-is-loud": part(daemon=AlwaysLoud),
    "gone-history-is-silent": part(daemon=NeverLoud),
    "conflict-is-sent-again": part(daemon=ConflictIsRetried),
    "conflict-is-done": part(daemon=ConflictIsDone),
    "conflict-rotates-the-id": part(daemon=Rotates),
    "conflict-is-not-logged": part(daemon=Unsaid),
    "dead-without-a-reason": part(daemon=NoReason),
    "dead-rows-not-listed": part(daemon=Hidden),
    "any-row-requeued": part(outbox=AnyRow),
    "requeue-overwrites": part(outbox=Swallows),
    "requeue-with-another-fingerprint": part(outbox=Anew),
    "answer-of-any-id": part(daemon=AnyId),
    "any-success-is-done": part(daemon=AnyStatus),
    "no-max-age": part(daemon=NoMaxAge),
    "age-since-the-last-attempt": part(daemon=AgeOfTheAttempt),
    "attempt-moves-its-time": part(daemon=Refreshed),
    "attempts-not-counted": part(daemon=Uncounted),
    "sent-without-a-pause": part(daemon=AtOnce),
    "one-failure-is-death": part(daemon=GivesUp),
    "fingerprint-computed-again": part(outbox=ComputedAgain),
    "dead-rows-deleted": part(daemon=Deleted),
    "in-flight-not-recovered": part(outbox=NotRecovered),
    "row-without-an-id": _table("id TEXT NOT NULL PRIMARY KEY", "id TEXT PRIMARY KEY"),
    "row-id-not-unique": _table("TEXT NOT NULL UNIQUE", "TEXT NOT NULL"),
    "row-without-a-client-id": _table("client_message_id TEXT NOT NULL UNIQUE", "client_message_id TEXT UNIQUE"),
    "row-fingerprint-of-any-length": _table(" AND length(request_fingerprint) = 32", ""),
    "row-without-a-payload": _table("payload BLOB NOT NULL", "payload BLOB"),
    "row-without-a-time": _table("enqueued_at INTEGER NOT NULL", "enqueued_at INTEGER"),
    "row-without-a-next-time": _table("next_attempt_at INTEGER NOT NULL", "next_attempt_at INTEGER"),
    "row-without-a-status": _table("status TEXT NOT NULL", "status TEXT"),
    "row-of-any-status": _table(" CHECK (status IN ('pending', 'inflight', 'done', 'dead'))", ""),
    "no-outbox-index": part(outbox_schema=NoIndex),
}
