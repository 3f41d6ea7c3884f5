"""The database of a mailbox, and the statements on it. No failure of it ever means "not received before"."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.location import Location
from holdfast.reference_impl.calyx_replay.schema import statements
from holdfast.reference_impl.calyx_replay.terms import Hex, Settings
from holdfast.reference_impl.calyx_replay.timing import Written, seen_at
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.sqlite import ProvenDatabase, verify_tables

Row: TypeAlias = Mapping[str, str | int | float | None]

COLUMNS = ("replay_key", "msg_id", "sender_fp", "recipient_fp", "seen_at", "envelope_timestamp")


class KeyTakenError(Exception):
    """The key is there already: the store itself refused the row."""


@contextlib.contextmanager
def _key_taken() -> Iterator[None]:
    """Tell a key that is there from all other errors. Raises KeyTakenError."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        if error.sqlite_errorcode in (sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE):
            raise KeyTakenError(str(error)) from error
        raise


@dataclass(frozen=True, slots=True)
class MailboxState:
    """What the mailbox remembers besides its mail; times as written in the database."""

    last_automatic: str | None
    automatic: int
    pruned_before: str | None


class Store(ProvenDatabase):
    """The database, with a connection for each `Purpose`."""

    location: Location

    def __init__(self, location: Location, settings: Settings, patience: Patience) -> None:
        super().__init__(location, patience, "the mailbox")
        self.settings = settings

    def waits(self) -> float:
        """See `ProvenDatabase`: never beyond the operation's deadline, nor longer than is set."""
        return min(self.settings.busy_timeout.total_seconds(), super().waits())

    def prepare(self, connection: sqlite3.Connection, purpose: Enum | None) -> None:
        """See `ProvenDatabase`."""
        super().prepare(connection, purpose)
        connection.create_function("instant", 1, seen_at)

    def verify_schema(self, connection: sqlite3.Connection) -> None:
        """Raise StoreError unless the database has exactly our tables and indexes."""
        verify_tables(connection, statements())

    # The inbox of the owner, in the transaction that records the key. What follows raises sqlite3.Error.

    def deliver(self, connection: sqlite3.Connection, envelope: Envelope, key: Hex) -> None:
        """Put one envelope into the inbox; it is there if and only if its key is recorded."""
        connection.execute(
            "INSERT INTO inbox (replay_key, msg_id, envelope) VALUES (?, ?, ?)",
            (key, envelope.msg_id, envelope.canonical),
        )

    def deliveries(self, connection: sqlite3.Connection) -> Sequence[dict[str, str]]:
        """The delivered envelopes, in order."""
        rows = connection.execute("SELECT replay_key, msg_id FROM inbox ORDER BY position").fetchall()
        return [{"replay_key": key, "msg_id": msg_id} for key, msg_id in rows]

    # Statements

    def has(self, connection: sqlite3.Connection, key: Hex) -> bool:
        """Whether the key is recorded."""
        return connection.execute("SELECT 1 FROM replay_state WHERE replay_key = ?", (key,)).fetchone() is not None

    def is_ahead(self, connection: sqlite3.Connection, key: Hex) -> bool:
        """Whether the key was migrated from ahead; its record may be pruned by now."""
        return connection.execute("SELECT 1 FROM migrated_ahead WHERE replay_key = ?", (key,)).fetchone() is not None

    def insert(self, connection: sqlite3.Connection, row: Row) -> None:
        """Record one envelope. Raises KeyTakenError too."""
        with _key_taken():
            connection.execute(self.insert_statement(), [row[name] for name in COLUMNS])

    def insert_statement(self) -> str:
        """The INSERT of one row, its values in the order of COLUMNS; a duplicate is an error."""
        return f"INSERT INTO replay_state ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"

    def blocked_until(self, connection: sqlite3.Connection, msg_id: str) -> str | None:
        """The last timestamp with which an envelope of that id is refused; None if the id is not blocked."""
        found = connection.execute('SELECT "until" FROM blocked_msg_id WHERE msg_id = ?', (msg_id,)).fetchone()
        return None if found is None else str(found[0])

    def block(self, connection: sqlite3.Connection, msg_id: str, until: Written) -> bool:
        """Block a message id; whether it was not blocked before. The first block stays as it is."""
        statement = 'INSERT INTO blocked_msg_id (msg_id, "until") VALUES (?, ?) ON CONFLICT (msg_id) DO NOTHING'
        return connection.execute(statement, (msg_id, until)).rowcount == 1

    def remember_ahead(self, connection: sqlite3.Connection, key: Hex, until: Written) -> None:
        """Remember a key until prunes pass this timestamp, even if its record is removed earlier."""
        connection.execute('INSERT INTO migrated_ahead (replay_key, "until") VALUES (?, ?)', (key, until))

    def unblock_before(self, connection: sqlite3.Connection, cutoff: Written) -> None:
        """Remove blocks and keys that ended before `cutoff`: older envelopes are refused as unprovable anyway."""
        for table in ("blocked_msg_id", "migrated_ahead"):
            connection.execute(f'DELETE FROM {table} WHERE "until" < ?', (cutoff,))

    def state(self, connection: sqlite3.Connection) -> MailboxState:
        """What the mailbox remembers."""
        found = connection.execute("SELECT last_automatic, automatic, pruned_before FROM mailbox_state").fetchone()
        return MailboxState(*found)

    def remember(self, connection: sqlite3.Connection, state: MailboxState) -> None:
        """Change what the mailbox remembers."""
        connection.execute(
            "UPDATE mailbox_state SET last_automatic = ?, automatic = ?, pruned_before = ?",
            (state.last_automatic, state.automatic, state.pruned_before),
        )

    def delete_before(self, connection: sqlite3.Connection, cutoff: int) -> int:
        """Remove the rows first seen before `cutoff`, microseconds since 1970. Returns their number.

        `instant` is NULL for a value that is no instant, and such a row is never removed.
        """
        return connection.execute("DELETE FROM replay_state WHERE instant(seen_at) < ?", (cutoff,)).rowcount

    def counts(self, connection: sqlite3.Connection) -> tuple[int, int]:
        """How many rows there are, and how many of them have a seen_at that is no instant."""
        rows, unreadable = connection.execute(
            "SELECT count(*), count(*) FILTER (WHERE instant(seen_at) IS NULL) FROM replay_state"
        ).fetchone()
        return int(rows), int(unreadable)

    def rows(self, connection: sqlite3.Connection) -> Sequence[dict[str, Any]]:
        """Every row of replay_state as stored, ordered by key."""
        found = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM replay_state ORDER BY replay_key")
        found.row_factory = sqlite3.Row
        return [dict(row) for row in found]
