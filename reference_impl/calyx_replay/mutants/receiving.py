"""Bugs of calyx-replay: receiving (CALYX-HARD-3 to -7, CALYX-ALG-1 to -5 and -10)."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Refused
from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.failpoints import Point
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.provision import Provisioner
from holdfast.reference_impl.calyx_replay.signatures import Signatures
from holdfast.reference_impl.calyx_replay.store import KeyTakenError, Row, Store
from holdfast.reference_impl.calyx_replay.terms import Purpose, Reason, RefusedError
from holdfast.reference_impl.calyx_replay.timing import written
from holdfast.reference_impl.failpoints import AbortedError
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.sqlite import StoreError

# One transaction for all of it, and the refusals of the store itself


class PlacesItsOwn(Mailbox):
    """Its transactions differ from those of the reference, so it reaches its failpoints itself."""

    def reach(self, point: Point) -> None:
        """The failpoints of the session take its place (`failpoints.PlacesItsOwn`)."""


class CheckedBefore(PlacesItsOwn):
    """Searches the key in one transaction and writes the row in another."""

    def record(self, envelope: Envelope, key: str, timestamp: datetime, *, now: datetime) -> None:
        with self._store.reading(Purpose.RECEIVE) as connection:
            self.guard_duplicate(connection, key)
            self.guard_blocked(connection, envelope, timestamp)
            self.guard_provable(connection, timestamp)
        self.reach(Point.BEFORE_INSERT)
        with self._store.writing(Purpose.RECEIVE) as connection:
            self.insert(connection, self.row(envelope, key, now=now))
            self.reach(Point.AFTER_INSERT)
            self._delivery.deliver(connection, envelope, key)
            self.reach(Point.BEFORE_COMMIT)
        with contextlib.suppress(AbortedError):
            self.reach(Point.AFTER_COMMIT)


class Replacing(Store):
    def insert_statement(self) -> str:
        return super().insert_statement().replace("INSERT INTO", "INSERT OR REPLACE INTO", 1)


class CollisionIsSuccess(CheckedBefore):
    def insert(self, connection: sqlite3.Connection, row: Row) -> None:
        with contextlib.suppress(KeyTakenError):
            self._store.insert(connection, row)


class CollisionIsStoreError(CheckedBefore):
    def insert(self, connection: sqlite3.Connection, row: Row) -> None:
        try:
            self._store.insert(connection, row)
        except KeyTakenError as error:
            raise StoreError(str(error)) from error


class CommittedBeforeDelivery(PlacesItsOwn):
    def record(self, envelope: Envelope, key: str, timestamp: datetime, *, now: datetime) -> None:
        with self._store.writing(Purpose.RECEIVE) as connection:
            self.guard_duplicate(connection, key)
            self.guard_blocked(connection, envelope, timestamp)
            self.guard_provable(connection, timestamp)
            self.reach(Point.BEFORE_INSERT)
            self.insert(connection, self.row(envelope, key, now=now))
        self.reach(Point.AFTER_INSERT)
        with self._store.writing(Purpose.RECEIVE) as connection:
            self._delivery.deliver(connection, envelope, key)
            self.reach(Point.BEFORE_COMMIT)
        with contextlib.suppress(AbortedError):
            self.reach(Point.AFTER_COMMIT)


class DeliveredFirst(PlacesItsOwn):
    def record(self, envelope: Envelope, key: str, timestamp: datetime, *, now: datetime) -> None:
        with self._store.writing(Purpose.RECEIVE) as connection:
            self.guard_duplicate(connection, key)
            self.guard_blocked(connection, envelope, timestamp)
            self.guard_provable(connection, timestamp)
            self._delivery.deliver(connection, envelope, key)
        self.reach(Point.BEFORE_INSERT)
        with self._store.writing(Purpose.RECEIVE) as connection:
            self.insert(connection, self.row(envelope, key, now=now))
            self.reach(Point.AFTER_INSERT)
            self.reach(Point.BEFORE_COMMIT)
        with contextlib.suppress(AbortedError):
            self.reach(Point.AFTER_COMMIT)


class SeenInMemory(Store):
    """A set in memory holds the keys received; the table is written and never read."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._seen: set[str] = set()

    def has(self, connection: sqlite3.Connection, key: str) -> bool:
        return key in self._seen

    def insert(self, connection: sqlite3.Connection, row: Row) -> None:
        self._seen.add(str(row["replay_key"]))
        super().insert(connection, row)

    def insert_statement(self) -> str:
        return super().insert_statement().replace("INSERT INTO", "INSERT OR IGNORE INTO", 1)


# A store that cannot be read


class ErrorsMeanUnseen(Mailbox):
    def record(self, envelope: Envelope, key: str, timestamp: datetime, *, now: datetime) -> None:
        # "No mail is lost because of the replay protection."
        with contextlib.suppress(StoreError):
            super().record(envelope, key, timestamp, now=now)


class MadeAnew(Store):
    def connection(self, purpose: Purpose) -> sqlite3.Connection:
        if not self.location.database.exists():
            Provisioner(self.schema).make(self.location)
        return super().connection(purpose)


# What happens to a copy, and to its row


class DuplicateIsSuccess(Mailbox):
    def receive(self, raw: bytes, *, now: datetime) -> Answer:
        answer = super().receive(raw, now=now)
        if isinstance(answer, Refused) and answer.reason == Reason.REPLAY_DUPLICATE.value:
            envelope = self._codec.decode(raw)
            value = {"replay_key": self._codec.replay_key(envelope), "msg_id": envelope.msg_id}
            return Accepted(Effect.NEW, value)
        return answer


class Touched(Mailbox):
    """Makes one more durable change for a copy, before it refuses it."""

    def record(self, envelope: Envelope, key: str, timestamp: datetime, *, now: datetime) -> None:
        try:
            super().record(envelope, key, timestamp, now=now)
        except RefusedError as error:
            if error.reason is Reason.REPLAY_DUPLICATE:
                with self._store.writing(Purpose.RECEIVE) as connection:
                    self.touch(connection, envelope, key, now=now)
            raise

    def touch(self, connection: sqlite3.Connection, envelope: Envelope, key: str, *, now: datetime) -> None:
        raise NotImplementedError


class DuplicateDelivered(Touched):
    def touch(
        self,
        connection: sqlite3.Connection,
        envelope: Envelope,
        key: str,
        *,
        now: datetime,
    ) -> None:
        self._delivery.deliver(connection, envelope, key)


class SeenAtRefreshed(Touched):
    def touch(
        self,
        connection: sqlite3.Connection,
        envelope: Envelope,
        key: str,
        *,
        now: datetime,
    ) -> None:
        connection.execute("UPDATE replay_state SET seen_at = ? WHERE replay_key = ?", (written(now), key))


class NotLookedFor(Mailbox):
    def guard_duplicate(self, connection: sqlite3.Connection, key: str) -> None:
        pass


class RowForgotten(Mailbox):
    def insert(self, connection: sqlite3.Connection, row: Row) -> None:
        pass


class SeenAtFromSender(Mailbox):
    def row(self, envelope: Envelope, key: str, *, now: datetime) -> Row:
        sent = written(datetime.fromisoformat(envelope.timestamp))
        return {**super().row(envelope, key, now=now), "seen_at": sent}


# Whose it is


class RowBeforeSignature(Mailbox):
    def admit(self, envelope: Envelope, *, now: datetime) -> datetime:
        try:
            return super().admit(envelope, now=now)
        except RefusedError as error:
            if error.reason is Reason.SIGNATURE_INVALID:
                row = self.row(envelope, self._codec.replay_key(envelope), now=now)
                with contextlib.suppress(KeyTakenError), self._store.writing(Purpose.RECEIVE) as connection:
                    self._store.insert(connection, row)
            raise


class SignatureUnchecked(Signatures):
    def valid(self, envelope: Envelope) -> bool:
        return True


BUGS: Mapping[str, Change] = {
    "check-outside-transaction": part(mailbox=CheckedBefore, store=Replacing),
    "committed-before-delivery": part(mailbox=CommittedBeforeDelivery),
    "seen-in-memory": part(store=SeenInMemory),
    "errors-mean-unseen": part(mailbox=ErrorsMeanUnseen),
    "mailbox-made-anew": part(store=MadeAnew),
    "constraint-is-success": part(mailbox=CollisionIsSuccess),
    "collision-is-store-error": part(mailbox=CollisionIsStoreError),
    "delivered-first": part(mailbox=DeliveredFirst),
    "duplicate-is-success": part(mailbox=DuplicateIsSuccess),
    "duplicate-delivered": part(mailbox=DuplicateDelivered),
    "row-forgotten": part(mailbox=RowForgotten),
    "seen-at-from-sender": part(mailbox=SeenAtFromSender),
    "insert-or-replace": part(mailbox=NotLookedFor, store=Replacing),
    "seen-at-refreshed": part(mailbox=SeenAtRefreshed),
    "row-before-signature": part(mailbox=RowBeforeSignature),
    "signature-unchecked": part(signatures=SignatureUnchecked),
}
