"""Bugs of calyx-replay: receiving (CALYX-HARD-3 to -7, CALYX-ALG-1 to -5 and -10)."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping
from datetime import datetime

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Refused
from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.failpoints import Point
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.signatures import Signatures
from holdfast.reference_impl.calyx_replay.store import KeyTakenError, Row
from holdfast.reference_impl.calyx_replay.terms import Purpose, Reason, RefusedError
from holdfast.reference_impl.calyx_replay.timing import written
from holdfast.reference_impl.planting import Change, part

# One transaction for all of it, and the refusals of the store itself


class PlacesItsOwn(Mailbox):
    """Its transactions differ from those of the reference, so it reaches its failpoints itself."""

    def reach(self, point: Point) -> None:
        """The failpoints of the session take its place (`failpoints.PlacesItsOwn`)."""


# A store that cannot be read


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
    "duplicate-is-success": part(mailbox=DuplicateIsSuccess),
    "duplicate-delivered": part(mailbox=DuplicateDelivered),
    "row-forgotten": part(mailbox=RowForgotten),
    "seen-at-from-sender": part(mailbox=SeenAtFromSender),
    "seen-at-refreshed": part(mailbox=SeenAtRefreshed),
    "row-before-signature": part(mailbox=RowBeforeSignature),
    "signature-unchecked": part(signatures=SignatureUnchecked),
}
