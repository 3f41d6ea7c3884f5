"""Bugs of calyx-replay: an acknowledged envelope is not stored, or not yet durable (CALYX-ALG-3 and -11)."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.migration import LeftBehind, Migration
from holdfast.reference_impl.calyx_replay.store import Store
from holdfast.reference_impl.calyx_replay.terms import Purpose
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.sqlite import SYNCHRONOUS_FULL

_LONG, _OFTEN = 32_768, 64


class CommitForgotten(Store):
    def commit(self, connection: sqlite3.Connection) -> None:
        # The next use of the connection rolls back the open transaction.
        self.roll_back(connection)


class HeldInMemory(Store):
    """Receipts stay in one open transaction until something else uses the store."""

    def begin(self, connection: sqlite3.Connection) -> None:
        if not self._receives(connection):
            self._flush()
        if not connection.in_transaction:
            super().begin(connection)
        connection.execute("SAVEPOINT receipt")

    def commit(self, connection: sqlite3.Connection) -> None:
        connection.execute("RELEASE receipt")
        if not self._receives(connection):
            super().commit(connection)

    def roll_back(self, connection: sqlite3.Connection) -> None:
        if self._receives(connection) and connection.in_transaction:
            connection.execute("ROLLBACK TO receipt")
            connection.execute("RELEASE receipt")
        else:
            super().roll_back(connection)

    @contextlib.contextmanager
    def reading(self, purpose: Purpose) -> Iterator[sqlite3.Connection]:
        if purpose is not Purpose.PRUNE:
            self._flush()
        with super().reading(purpose) as connection:
            yield connection

    def close(self) -> None:
        self._flush()
        super().close()

    def _receives(self, connection: sqlite3.Connection) -> bool:
        held = self._held.get(Purpose.RECEIVE)
        return held is not None and held.connection is connection

    def _flush(self) -> None:
        held = self._held.get(Purpose.RECEIVE)
        if held is not None and held.connection.in_transaction:
            super().commit(held.connection)


class AnyLevel(Store):
    """A check that accepts a connection that does not wait for the disk."""

    def verify_pragmas(self, found: Mapping[str, int | str]) -> None:
        super().verify_pragmas({**found, "synchronous": SYNCHRONOUS_FULL})


class Unsynced(AnyLevel):
    level = "NORMAL"

    def prepare(self, connection: sqlite3.Connection, purpose: Purpose) -> None:
        super().prepare(connection, purpose)
        connection.execute(f"PRAGMA synchronous = {self.level}")


class SyncedNever(Unsynced):
    level = "OFF"


class MigrationUnsynced(AnyLevel):
    # "It is done once, and may take long."

    purpose = Purpose.MIGRATE

    def prepare(self, connection: sqlite3.Connection, purpose: Purpose) -> None:
        super().prepare(connection, purpose)
        if purpose is self.purpose:
            connection.execute("PRAGMA synchronous = OFF")


class PruneUnsynced(MigrationUnsynced):
    # "What is pruned again does no harm."

    purpose = Purpose.PRUNE


class EachLevel(AnyLevel):
    level = "FULL"

    def begin(self, connection: sqlite3.Connection) -> None:
        connection.execute(f"PRAGMA synchronous = {self.level}")
        super().begin(connection)


class LaterUnsynced(EachLevel):
    _begun = 0

    def begin(self, connection: sqlite3.Connection) -> None:
        # "Where so much comes in, it has to be fast."
        self._begun += 1
        self.level = "OFF" if self._begun > _OFTEN else "FULL"
        super().begin(connection)


class LongUnsynced(Mailbox):
    def record(self, envelope: Envelope, key: str, timestamp: datetime, *, now: datetime) -> None:
        # "The large ones are slow."
        assert isinstance(self._store, EachLevel)
        self._store.level = "OFF" if len(envelope.raw) > _LONG else "FULL"
        super().record(envelope, key, timestamp, now=now)


class BlocksUnsynced(Migration):
    def write(self, left: LeftBehind, *, now: datetime) -> tuple[int, int]:
        # "They last for minutes."
        assert isinstance(self._store, EachLevel)
        migrated, _ = super().write(replace(left, unmigrated=()), now=now)
        self._store.level = "OFF"
        _, blocked = super().write(replace(left, envelopes=()), now=now)
        self._store.level = "FULL"
        return migrated, blocked


BUGS: Mapping[str, Change] = {
    "commit-forgotten": part(store=CommitForgotten),
    "rows-held-in-memory": part(store=HeldInMemory),
    "sync-left-to-checkpoint": part(store=Unsynced),
    "synchronous-off": part(store=SyncedNever),
    "migration-unsynced": part(store=MigrationUnsynced),
    "prune-unsynced": part(store=PruneUnsynced),
    "blocks-unsynced": part(migration=BlocksUnsynced, store=EachLevel),
    "later-receipts-unsynced": part(store=LaterUnsynced),
    "long-envelopes-unsynced": part(mailbox=LongUnsynced, store=EachLevel),
}
