"""Bugs of calyx-replay: receiving (CALYX-HARD-3 to -7, CALYX-ALG-1 to -5 and -10)."""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Refused
from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.failpoints import Point
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.mutants.planting import mutant
from holdfast.reference_impl.calyx_replay.provision import Provisioner
from holdfast.reference_impl.calyx_replay.signatures import Signatures
from holdfast.reference_impl.calyx_replay.store import KeyTakenError, Row, Store
from holdfast.reference_impl.calyx_replay.terms import Purpose, Reason, RefusedError
from holdfast.reference_impl.calyx_replay.timing import written
from holdfast.reference_impl.failpoints import AbortedError
from holdfast.reference_impl.mutants.catalogue import Mutant
from holdfast.reference_impl.mutants.planting import EVERYTHING, also, part
from holdfast.reference_impl.sqlite import StoreError

# One transaction for all of it, and what the store itself refuses


class PlacesItsOwn(Mailbox):
    """Its transactions are others than those of the reference, so it says itself where its failpoints are."""

    def reach(self, point: Point) -> None:
        """The failpoints of the session take its place (`failpoints.PlacesItsOwn`)."""


class CheckedBefore(PlacesItsOwn):
    """Looks for the key in a transaction that is over when the row is written."""

    def record(self, envelope: Envelope, key: str, timestamp: datetime, receipt: str, *, now: datetime) -> None:
        with self._store.reading(Purpose.RECEIVE) as connection:
            self.guard_duplicate(connection, key)
            self.guard_blocked(connection, envelope, timestamp)
            self.guard_provable(connection, timestamp)
        self.reach(Point.BEFORE_INSERT)
        with self._store.writing(Purpose.RECEIVE) as connection:
            self.insert(connection, self.row(envelope, key, now=now))
            self.reach(Point.AFTER_INSERT)
            self._delivery.deliver(connection, envelope, key, receipt)
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
    def record(self, envelope: Envelope, key: str, timestamp: datetime, receipt: str, *, now: datetime) -> None:
        with self._store.writing(Purpose.RECEIVE) as connection:
            self.guard_duplicate(connection, key)
            self.guard_blocked(connection, envelope, timestamp)
            self.guard_provable(connection, timestamp)
            self.reach(Point.BEFORE_INSERT)
            self.insert(connection, self.row(envelope, key, now=now))
        self.reach(Point.AFTER_INSERT)
        with self._store.writing(Purpose.RECEIVE) as connection:
            self._delivery.deliver(connection, envelope, key, receipt)
            self.reach(Point.BEFORE_COMMIT)
        with contextlib.suppress(AbortedError):
            self.reach(Point.AFTER_COMMIT)


class DeliveredFirst(PlacesItsOwn):
    def record(self, envelope: Envelope, key: str, timestamp: datetime, receipt: str, *, now: datetime) -> None:
        with self._store.writing(Purpose.RECEIVE) as connection:
            self.guard_duplicate(connection, key)
            self.guard_blocked(connection, envelope, timestamp)
            self.guard_provable(connection, timestamp)
            self._delivery.deliver(connection, envelope, key, receipt)
        self.reach(Point.BEFORE_INSERT)
        with self._store.writing(Purpose.RECEIVE) as connection:
            self.insert(connection, self.row(envelope, key, now=now))
            self.reach(Point.AFTER_INSERT)
            self.reach(Point.BEFORE_COMMIT)
        with contextlib.suppress(AbortedError):
            self.reach(Point.AFTER_COMMIT)


class SeenInMemory(Store):
    """A set of this process says what was seen; the table is only written."""

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


# A store that cannot be asked


class ErrorsMeanUnseen(Mailbox):
    def record(self, envelope: Envelope, key: str, timestamp: datetime, receipt: str, *, now: datetime) -> None:
        # "No mail is lost because of the replay protection."
        with contextlib.suppress(StoreError):
            super().record(envelope, key, timestamp, receipt, now=now)


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
    """Does something more about a copy, for good, before it is refused."""

    def record(self, envelope: Envelope, key: str, timestamp: datetime, receipt: str, *, now: datetime) -> None:
        try:
            super().record(envelope, key, timestamp, receipt, now=now)
        except RefusedError as error:
            if error.reason is Reason.REPLAY_DUPLICATE:
                with self._store.writing(Purpose.RECEIVE) as connection:
                    self.touch(connection, envelope, key, receipt, now=now)
            raise

    def touch(
        self, connection: sqlite3.Connection, envelope: Envelope, key: str, receipt: str, *, now: datetime
    ) -> None:
        raise NotImplementedError


class DuplicateDelivered(Touched):
    def touch(
        self,
        connection: sqlite3.Connection,
        envelope: Envelope,
        key: str,
        receipt: str,
        *,
        now: datetime,
    ) -> None:
        self._delivery.deliver(connection, envelope, key, receipt)


class SeenAtRefreshed(Touched):
    def touch(
        self,
        connection: sqlite3.Connection,
        envelope: Envelope,
        key: str,
        receipt: str,
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


_COPIES = "its copies are accepted"

MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "check-outside-transaction",
        "The key is looked for before the transaction, and the row written over what came in between",
        part(mailbox=CheckedBefore, store=Replacing),
        {"HARD-3": "fail_open"},
        also("processes race for one envelope", "HARD-5 HARD-6 HARD-7"),
    ),
    mutant(
        "committed-before-delivery",
        "The row is committed, and the delivery follows in a transaction of its own",
        part(mailbox=CommittedBeforeDelivery),
        {"HARD-4": "state_leak"},
        also("a kill or a failure between the two leaves a row without a delivery", "ALG-1 ALG-3 ALG-11")
        | also("nothing is locked between the two", "ALG-6 HARD-6 HARD-7"),
        faults={"kill": "lost_durability"},
    ),
    mutant(
        "seen-in-memory",
        "What was seen is remembered by each process for itself",
        part(store=SeenInMemory),
        {"HARD-5": "fail_open"},
        {EVERYTHING: "every other process and every restart accepts copies"},
    ),
    mutant(
        "errors-mean-unseen",
        "A store that cannot be asked has not seen the envelope",
        part(mailbox=ErrorsMeanUnseen),
        {"HARD-6": "fail_open"},
        also("it meets a store that is busy or gone", "ALG-6 HARD-2 HARD-3 HARD-4 HARD-7 PRN-11"),
        faults={"store-missing": "fail_open"},
    ),
    mutant(
        "mailbox-made-anew",
        "A database that is gone is made anew",
        part(store=MadeAnew),
        {"HARD-6": "fail_open"},
        also("its database is gone", "ALG-6"),
        faults={"store-missing": "fail_open"},
    ),
    mutant(
        "constraint-is-success",
        "The key is looked for before the transaction, and a violated constraint is passed over as success",
        part(mailbox=CollisionIsSuccess),
        {"HARD-7": "fail_open"},
        also("processes race for one envelope", "HARD-3 HARD-5 HARD-6"),
    ),
    mutant(
        "collision-is-store-error",
        "The key is looked for before the transaction, and a violated constraint is an error of the store",
        part(mailbox=CollisionIsStoreError),
        {"HARD-7": "wrong_reason"},
        also("processes race for one envelope", "HARD-3 HARD-5 HARD-6"),
    ),
    mutant(
        "delivered-first",
        "An envelope is delivered, and its row is written afterwards",
        part(mailbox=DeliveredFirst),
        {"ALG-1": "fail_open"},
        also("a kill or a failure between the two leaves a delivery without a row", "ALG-3 ALG-11 HARD-4")
        | also("processes race for one envelope", "HARD-3 HARD-5 HARD-6 HARD-7"),
    ),
    mutant(
        "duplicate-is-success",
        "A copy is dropped and answered as accepted",
        part(mailbox=DuplicateIsSuccess),
        {"ALG-2": "fail_open"},
        {EVERYTHING: _COPIES},
    ),
    mutant(
        "duplicate-delivered",
        "A copy is refused and delivered all the same",
        part(mailbox=DuplicateDelivered),
        {"ALG-2": "state_leak"},
        {EVERYTHING: "its copies are delivered"},
    ),
    mutant(
        "row-forgotten",
        "An envelope is delivered and never recorded",
        part(mailbox=RowForgotten),
        {"ALG-3": "lost_durability"},
        {EVERYTHING: "nothing is ever recorded"},
        faults={"power-loss": "lost_durability"},
    ),
    mutant(
        "seen-at-from-sender",
        "seen_at is the envelope's timestamp",
        part(mailbox=SeenAtFromSender),
        {"ALG-4": "lost_durability"},
        also("its envelopes are not of the moment", "ALG-5 MIG-2 MIG-5 PRN-1 PRN-2 PRN-6a PRN-7 PRN-10 SCH-6 SCH-7"),
    ),
    mutant(
        "insert-or-replace",
        "The row is written with INSERT OR REPLACE, and nobody looks for the key before",
        part(mailbox=NotLookedFor, store=Replacing),
        {"ALG-5": "fail_open"},
        {EVERYTHING: _COPIES},
    ),
    mutant(
        "seen-at-refreshed",
        "A copy that is refused renews seen_at",
        part(mailbox=SeenAtRefreshed),
        {"ALG-5": "state_leak"},
        also("a copy comes later, or over a row of another's", "KEY-5 MIG-6 PRN-7 SCH-13"),
    ),
    mutant(
        "row-before-signature",
        "The row is written before the signature is checked",
        part(mailbox=RowBeforeSignature),
        {"ALG-10": "state_leak"},
        also("its signature is wrong", "KEY-4d KEY-7"),
    ),
    mutant(
        "signature-unchecked",
        "Nobody checks the signature",
        part(signatures=SignatureUnchecked),
        {"ALG-10": "fail_open"},
        also("its signature is wrong", "KEY-4d KEY-7 MIG-7"),
    ),
)
