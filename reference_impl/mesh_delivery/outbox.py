"""The outbox of a daemon: one SQLite file, in which a send is durable before it is answered (section 4.8)."""

from __future__ import annotations

import contextlib
import fcntl
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import IO
from uuid import uuid4

from holdfast.reference_impl.mesh_delivery.terms import Reason, Word
from holdfast.reference_impl.sqlite import FILE_MODE, UncertainError
from holdfast.servers.pace import scaled

# The name of the file in the folder of the contract (contract.yaml, `inspection`).
OUTBOX = "outbox.db"
# An operation has 2 s by the protocol; another process of this daemon holds the file for a few milliseconds.
_BUSY_S = scaled(0.5)


class OutboxError(Exception):
    """The outbox cannot be read or written; nothing was."""


@dataclass(frozen=True, slots=True)
class Row:
    """One send. Times are seconds since 1970."""

    id: str
    client_message_id: str
    request_fingerprint: bytes
    payload: bytes
    enqueued_at: int
    attempts: int
    next_attempt_at: int
    status: str
    last_error: str | None
    delivered_at: int | None
    broker_message_id: str | None


_COLUMNS = ", ".join(Row.__dataclass_fields__)


def _table() -> str:
    """The table of the source. SQLite lets NULL pass where the source has a primary key or a check alone."""
    return (
        "CREATE TABLE outbox ("
        "id TEXT NOT NULL PRIMARY KEY, "
        "client_message_id TEXT NOT NULL UNIQUE, "
        "request_fingerprint BLOB NOT NULL "
        "CHECK (typeof(request_fingerprint) = 'blob' AND length(request_fingerprint) = 32), "
        "payload BLOB NOT NULL, "
        "enqueued_at INTEGER NOT NULL, "
        "attempts INTEGER NOT NULL DEFAULT 0, "
        "next_attempt_at INTEGER NOT NULL, "
        "status TEXT NOT NULL CHECK (status IN ('pending', 'inflight', 'done', 'dead')), "
        "last_error TEXT, "
        "delivered_at INTEGER, "
        "broker_message_id TEXT)"
    )


def _index() -> str:
    """What the delivery looks along."""
    return "CREATE INDEX outbox_pending ON outbox (status, next_attempt_at)"


class Outbox:
    """The rows. Every change is committed, and on the disk, when its method returns. Raises OutboxError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: IO[str] | None = None

    def make(self) -> None:
        """Make the file, which must not be there."""
        self._path.parent.mkdir(exist_ok=True)
        self._path.touch(mode=FILE_MODE, exist_ok=False)
        with self.transaction() as connection:
            connection.execute(_table())
            connection.execute(_index())

    def own(self) -> bool:
        """Whether this process is the daemon of the outbox: the first one that asks is, until it ends."""
        if self._lock is not None:
            return True
        try:
            lock = self._path.with_name("daemon.lock").open("a")
        except OSError as error:
            raise OutboxError(str(error)) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return False
        self._lock = lock
        return True

    def release(self) -> None:
        """This process is the daemon no longer."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.close()

    @contextlib.contextmanager
    def transaction(self, mode: Word = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """A connection with a transaction, committed at the end; `mode` as of BEGIN. Raises UncertainError, too."""
        try:
            connection = sqlite3.connect(f"file:{self._path}?mode=rw", uri=True, timeout=_BUSY_S, isolation_level=None)
        except sqlite3.Error as error:
            raise OutboxError(str(error)) from error
        try:
            self.settle(connection)
            connection.execute(f"BEGIN {mode}")
            yield connection
            self.commit(connection)
        except sqlite3.Error as error:
            raise OutboxError(str(error)) from error
        finally:
            # Closing rolls back what is open.
            connection.close()

    def commit(self, connection: sqlite3.Connection) -> None:
        """Commit. Raises UncertainError where it is not known whether that happened."""
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            # The disk was full before the last frame of the log. After any other error that may be in the file.
            if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
                raise
            raise UncertainError(str(error)) from error

    def settle(self, connection: sqlite3.Connection) -> None:
        """A commit is on the disk when it returns."""
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    def insert(self, name: str, fingerprint: bytes, payload: bytes, now: int) -> tuple[Row, bool]:
        """The row of a send, and whether it is new: else it is the one that has the id already, in any state."""
        with self.transaction() as connection:
            known = self.by_name(connection, name)
            is_new = known is None
            if known is None:
                statement = (
                    "INSERT INTO outbox (id, client_message_id, request_fingerprint, payload, enqueued_at, "
                    "next_attempt_at, status) VALUES (?, ?, ?, ?, ?, ?, 'pending')"
                )
                connection.execute(statement, (str(uuid4()), name, fingerprint, payload, now, now))
                known = self.by_name(connection, name)
        assert known is not None
        return known, is_new

    def by_name(self, connection: sqlite3.Connection, name: str) -> Row | None:
        """The row of an id, in any state."""
        found = connection.execute(f"SELECT {_COLUMNS} FROM outbox WHERE client_message_id = ?", (name,)).fetchone()
        return None if found is None else Row(*found)

    def take_due(self, now: int) -> list[Row]:
        """The pending rows that are due, now in flight, in the order of their times.

        The daemon makes one round at a time, so what is in flight before one is of a round that did not end.
        """
        owned = self.own()
        with self.transaction() as connection:
            if owned:
                self.recover(connection)
            statement = (
                f"SELECT {_COLUMNS} FROM outbox WHERE status = 'pending' AND next_attempt_at <= ? "
                "ORDER BY next_attempt_at, enqueued_at, id"
            )
            rows = [Row(*found) for found in connection.execute(statement, (now,)).fetchall()]
            for row in rows:
                connection.execute("UPDATE outbox SET status = 'inflight' WHERE id = ?", (row.id,))
        return rows

    def recover(self, connection: sqlite3.Connection) -> None:
        """What is in flight is pending again."""
        connection.execute("UPDATE outbox SET status = 'pending' WHERE status = 'inflight'")

    def settle_row(self, row: Row, changes: Mapping[str, str | bytes | int | None]) -> None:
        """Write what became of a row."""
        names = ", ".join(f"{name} = ?" for name in changes)
        with self.transaction() as connection:
            connection.execute(f"UPDATE outbox SET {names} WHERE id = ?", (*changes.values(), row.id))

    def dead(self) -> list[Row]:
        """The rows that an operator has to look at, in the order of their ids."""
        with self.transaction("DEFERRED") as connection:
            statement = f"SELECT {_COLUMNS} FROM outbox WHERE status = 'dead' ORDER BY client_message_id"
            return [Row(*found) for found in connection.execute(statement).fetchall()]

    def rotate(self, name: str, new: str, now: int) -> Enum | None:
        """Give a dead row another id, to be sent from now on; the reason of a refusal, if it is one."""
        with self.transaction() as connection:
            row = self.by_name(connection, name)
            if row is None or row.status != "dead":
                return Reason.NOT_DEAD
            if self.by_name(connection, new) is not None:
                return Reason.ID_IN_USE
            statement = (
                "UPDATE outbox SET client_message_id = ?, status = 'pending', attempts = 0, next_attempt_at = ?, "
                "enqueued_at = ?, last_error = NULL WHERE id = ?"
            )
            connection.execute(statement, (new, now, now, row.id))
        return None
