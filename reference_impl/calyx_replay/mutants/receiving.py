"""Bugs of calyx-replay: receiving (CALYX-HARD-3 to -7, CALYX-ALG-1 to -5 and -10)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import datetime

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Refused
from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.failpoints import Point
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.signatures import Signatures
from holdfast.reference_impl.calyx_replay.store import Row
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


class RowForgotten(Mailbox):
    def insert(self, connection: sqlite3.Connection, row: Row) -> None:
        pass


class SeenAtFromSender(Mailbox):
    def row(self, envelope: Envelope, key: str, *, now: datetime) -> Row:
        sent = written(datetime.fromisoformat(envelope.timestamp))
        return {**super().row(envelope, key, now=now), "seen_at": sent}


# Whose it is


class SignatureUnchecked(Signatures):
    def valid(self, envelope: Envelope) -> bool:
        return True


BUGS: Mapping[str, Change] = {
    "duplicate-is-success": part(mailbox=DuplicateIsSuccess),
    "duplicate-delivered": part(mailbox=DuplicateDelivered),
    "row-forgotten": part(mailbox=RowForgotten),
    "seen-at-from-sender": part(mailbox=SeenAtFromSender),
    "signature-unchecked": part(signatures=SignatureUnchecked),
}
