"""Migration of the state of version 0 (source section 8): it reads and checks everything, then writes it at once."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Indeterminate
from holdfast.reference_impl.calyx_replay.codec import Codec, Envelope, EnvelopeError
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.store import Store
from holdfast.reference_impl.calyx_replay.terms import Hex, Purpose, Reason, Settings
from holdfast.reference_impl.calyx_replay.timing import later, written
from holdfast.reference_impl.sqlite import StoreError, UncertainError
from holdfast.reference_impl.terms import RefusedError
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.strictjson import loads

# methods.yaml, $defs/msg_id.
_MOST_CHARACTERS = 256
# These errors mean that there is no such file. Every other error of a read is a failure.
_ABSENT = (errno.ENOENT, errno.ENAMETOOLONG)


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """The state that version 0 left: the ids in order, each once, and the envelopes that it kept."""

    listed: Sequence[str]
    envelopes: Sequence[Envelope]
    unmigrated: Sequence[str]


class Migration:
    """Reads version 0's files and never changes them."""

    def __init__(self, settings: Settings, codec: Codec, mailbox: Mailbox, store: Store) -> None:
        self._settings = settings
        self._codec = codec
        self._mailbox = mailbox
        self._store = store

    def migrate(self, *, now: datetime) -> Answer:
        """Migrate. A second run finds the records of the first, so an operator can repeat an interrupted run."""
        try:
            self.guard_store()
            left = self.read(now=now)
            migrated, blocked = self.write(left, now=now)
        except RefusedError as error:
            return error.answer()
        except UncertainError as error:
            return Indeterminate(str(error))
        except StoreError as error:
            return RefusedError(Reason.STORE_UNAVAILABLE, str(error)).answer()
        value = {
            "listed": len(left.listed),
            "migrated": migrated,
            "present": len(left.envelopes) - migrated,
            "unmigrated": list(left.unmigrated),
        }
        return Accepted(Effect.NEW if migrated or blocked else Effect.PRIOR, value)

    def guard_store(self) -> None:
        """Check that the database can be read. Raises StoreError."""
        with self._store.reading(Purpose.MIGRATE):
            pass

    # Reading

    def read(self, *, now: datetime) -> LeftBehind:
        """Everything that version 0 left, checked. Raises RefusedError."""
        listed = self.read_list(self._store.location.seen_cache)
        envelopes, unmigrated = [], []
        for msg_id in listed:
            raw = self.find(msg_id)
            if raw is None:
                unmigrated.append(msg_id)
            else:
                envelopes.append(self.check(msg_id, raw, now=now))
        return LeftBehind(listed, envelopes, unmigrated)

    def read_list(self, path: Path) -> Sequence[str]:
        """The message ids. Raises RefusedError."""
        try:
            value = loads(path.read_bytes())
        except FileNotFoundError:
            raise RefusedError(Reason.NOTHING_TO_MIGRATE, f"there is no {self._settings.seen_cache_path}") from None
        except (OSError, StrictJsonError) as error:
            raise self.malformed(path.name, f"expected a JSON array of message ids: {error}") from error
        if not isinstance(value, list):
            raise self.malformed(path.name, f"expected an array, got {type(value).__name__}")
        for entry in value:
            if not isinstance(entry, str) or not 0 < len(entry) <= _MOST_CHARACTERS:
                raise self.malformed(path.name, f"expected message ids, got {str(entry)[:64]!r} among them")
        return list(dict.fromkeys(value))

    def find(self, msg_id: str) -> bytes | None:
        """The bytes of the envelope of that id; None if there is none. Raises RefusedError."""
        # An id is no path. An id that would lead to another folder names no envelope of version 0.
        if "/" in msg_id or "\0" in msg_id:
            return None
        path = self._store.location.envelopes / f"{msg_id}.json"
        try:
            with path.open("rb") as file:
                return file.read(self._settings.max_envelope_bytes + 1)
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise self.malformed(path.name, f"cannot be read: {error.strerror}") from error

    def check(self, msg_id: str, raw: bytes, *, now: datetime) -> Envelope:
        """The envelope, decoded and checked as if it arrived, but for the window. Raises RefusedError."""
        try:
            envelope = self._mailbox.decode(raw)
            self._mailbox.timestamp(envelope, now=now)
            self._mailbox.guard_signature(envelope)
        except (RefusedError, EnvelopeError) as error:
            raise self.malformed(f"{msg_id}.json", str(error)) from error
        if envelope.msg_id != msg_id:
            raise self.malformed(f"{msg_id}.json", f"holds the envelope of {envelope.msg_id}")
        return envelope

    def malformed(self, name: str, detail: str) -> RefusedError:
        """The refusal of everything, because of one file."""
        return RefusedError(Reason.MIGRATION_MALFORMED, f"{name}: {detail}; nothing was migrated")

    # Writing

    def write(self, left: LeftBehind, *, now: datetime) -> tuple[int, int]:
        """Record and block in one transaction; how many of each are new. Raises StoreError."""
        with self._store.writing(Purpose.MIGRATE) as connection:
            return self.take_over_all(connection, left, now=now)

    def take_over_all(self, connection: sqlite3.Connection, left: LeftBehind, *, now: datetime) -> tuple[int, int]:
        """Record every envelope and block every other id; how many of each are new."""
        migrated = sum(self.take_over(connection, envelope, now=now) for envelope in left.envelopes)
        blocked = sum(self.block(connection, msg_id, now=now) for msg_id in left.unmigrated)
        return migrated, blocked

    def take_over(self, connection: sqlite3.Connection, envelope: Envelope, *, now: datetime) -> bool:
        """Record one envelope as received now, without delivery. Returns whether it is new. An earlier record stays."""
        key = self.key(envelope)
        if self._store.has(connection, key):
            return False
        self._store.insert(connection, self._mailbox.row(envelope, key, now=now))
        self.keep_ahead(connection, envelope, key, now=now)
        return True

    def keep_ahead(self, connection: sqlite3.Connection, envelope: Envelope, key: Hex, *, now: datetime) -> None:
        """A migrated envelope may come from further ahead than any prune keeps its record: its key is kept longer."""
        timestamp = self._mailbox.timestamp(envelope, now=now)
        if timestamp > later(now, self._settings.window):
            self._store.remember_ahead(connection, key, written(timestamp))

    def key(self, envelope: Envelope) -> str:
        """The key by which its next copy is searched."""
        return self._codec.replay_key(envelope)

    def block(self, connection: sqlite3.Connection, msg_id: str, *, now: datetime) -> bool:
        """Block an id while an envelope of version 0 may still be admissible. Returns whether the block is new."""
        return self._store.block(connection, msg_id, written(later(now, self._settings.window)))
