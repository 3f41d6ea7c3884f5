"""The database: connections that are proven before they are trusted, one transaction each, and the statements.

Every failure of SQLite is a StoreError: busy, locked, missing, truncated, corrupt, foreign, read-only, full, not in WAL
mode. None of these ever means "not received before". No function here makes a database.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.location import Location
from holdfast.reference_impl.calyx_replay.schema import statements
from holdfast.reference_impl.calyx_replay.settings import Settings
from holdfast.reference_impl.calyx_replay.terms import Hex, Purpose
from holdfast.reference_impl.calyx_replay.timing import Written, seen_at
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.sqlite import Held, ProvenDatabase, StoreError, verify_tables

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
    """One connection for each purpose, opened when first needed, and again when the files are not the same any more."""

    def __init__(self, location: Location, settings: Settings, patience: Patience) -> None:
        self.location = location
        self.settings = settings
        self.patience = patience
        self._held: dict[Purpose, Held] = {}

    # Connections

    def connection(self, purpose: Purpose) -> sqlite3.Connection:
        """A proven connection. Raises sqlite3.Error, OSError, StoreError."""
        identity, held = self.location.identity(), self._held.get(purpose)
        if held is not None and held.identity == identity:
            return held.connection
        self.drop(purpose)
        connection = self.connect(purpose)
        with contextlib.ExitStack() as failing:
            failing.callback(connection.close)
            self.prepare(connection, purpose)
            self.verify(connection)
            self.location.tighten()
            self._held[purpose] = Held(
                connection=connection,
                identity=self.location.identity(),
                schema_version=self.schema_version(connection),
            )
            failing.pop_all()
        return connection

    def connect(self, purpose: Purpose) -> sqlite3.Connection:  # noqa: ARG002 - all purposes open the same file
        """A connection to the existing file; `mode=rw` never makes one. Raises sqlite3.Error."""
        return sqlite3.connect(
            f"{self.location.database.as_uri()}?mode=rw",
            uri=True,
            isolation_level=None,
            timeout=self.waits().total_seconds(),
            # A session may be opened in one thread and used in another; only one at a time uses it.
            check_same_thread=False,
        )

    def prepare(self, connection: sqlite3.Connection, purpose: Purpose) -> None:  # noqa: ARG002 - see connect
        """The settings that SQLite loses with each connection. Raises sqlite3.Error."""
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        connection.create_function("instant", 1, seen_at)

    def verify_schema(self, connection: sqlite3.Connection) -> None:
        """Raise StoreError unless the database has exactly our tables and indexes."""
        verify_tables(connection, statements())

    def waits(self) -> timedelta:
        """How long a statement may wait for a lock: never beyond the operation's deadline."""
        return min(self.settings.busy_timeout, timedelta(seconds=self.patience.left()))

    def drop(self, purpose: Purpose) -> None:
        """Close a connection; an open transaction rolls back. Never raises."""
        held = self._held.pop(purpose, None)
        if held is not None:
            with contextlib.suppress(sqlite3.Error):
                held.connection.close()

    def close(self) -> None:
        """Close every connection. Never raises."""
        for purpose in tuple(self._held):
            self.drop(purpose)

    # Transactions

    @contextlib.contextmanager
    def _asked(self, purpose: Purpose) -> Iterator[sqlite3.Connection]:
        try:
            connection = self.connection(purpose)
            connection.execute(f"PRAGMA busy_timeout = {int(self.waits().total_seconds() * 1000)}")
            yield connection
        except (sqlite3.Error, OSError, StoreError) as error:
            self.drop(purpose)
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{type(error).__name__}: {error}") from error

    @contextlib.contextmanager
    def writing(self, purpose: Purpose) -> Iterator[sqlite3.Connection]:
        """One transaction: it commits at the end of the block and rolls back if the block raises.

        Raises StoreError where it did not happen, UncertainError where that is unknown.
        """
        with self._asked(purpose) as connection:
            self.begin(connection)
            try:
                self.verify_unchanged(self._held[purpose])
                yield connection
            except BaseException:
                self.roll_back(connection)
                raise
            self.commit(connection)
            self._settle(purpose)

    def _settle(self, purpose: Purpose) -> None:
        """Note the files after our own commit, so that its changes do not cause a new connection."""
        with contextlib.suppress(StoreError):
            self._held[purpose].identity = self.location.identity()

    @contextlib.contextmanager
    def reading(self, purpose: Purpose) -> Iterator[sqlite3.Connection]:
        """One read transaction, hence one snapshot. Raises StoreError."""
        with self._asked(purpose) as connection:
            connection.execute("BEGIN")
            try:
                self.verify_unchanged(self._held[purpose])
                yield connection
            finally:
                self.roll_back(connection)

    def begin(self, connection: sqlite3.Connection) -> None:
        """Take the one write lock before the first read, so that the data does not change between read and write."""
        connection.execute("BEGIN IMMEDIATE")

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
