"""Bugs of calyx-replay: what version 0 left (CALYX-MIG-*)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path, PosixPath

from holdfast.reference_impl.answers import Accepted, Answer
from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.migration import LeftBehind, Migration
from holdfast.reference_impl.calyx_replay.store import KeyTakenError
from holdfast.reference_impl.calyx_replay.terms import Purpose, Reason, RefusedError
from holdfast.reference_impl.calyx_replay.timing import written
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.sqlite import StoreError
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.strictjson import loads

# What is read


class SkippedInUse(Migration):
    def read_list(self, path: Path) -> Sequence[str]:
        listed = super().read_list(path)
        with self._store.reading(Purpose.MIGRATE) as connection:
            rows, _ = self._store.counts(connection)
        # "It was migrated before."
        return [] if rows else listed


class _Replaced(PosixPath):
    def read_bytes(self) -> bytes:
        return super().read_bytes().decode("utf-8", "replace").encode()


class ReplacedBytes(Migration):
    def read_list(self, path: Path) -> Sequence[str]:
        return super().read_list(_Replaced(path))


class FirstOnly(Migration):
    def read_list(self, path: Path) -> Sequence[str]:
        return super().read_list(path)[:1]


class BadSkipped(Migration):
    def read_list(self, path: Path) -> Sequence[str]:
        try:
            return super().read_list(path)
        except RefusedError as error:
            if error.reason is not Reason.MIGRATION_MALFORMED:
                raise
            try:
                value = loads(path.read_bytes())
            except (OSError, StrictJsonError):
                value = []
            return [entry for entry in value if isinstance(entry, str)]

    def find(self, msg_id: str) -> bytes | None:
        raw = super().find(msg_id)
        with contextlib.suppress(RefusedError):
            if raw is not None:
                self._mailbox.decode(raw)
            return raw
        return None


class UnreadableGone(Migration):
    def find(self, msg_id: str) -> bytes | None:
        try:
            return super().find(msg_id)
        except RefusedError:
            return None


class FileNameTrusted(Migration):
    def check(self, msg_id: str, raw: bytes, *, now: datetime) -> Envelope:
        with contextlib.suppress(RefusedError):
            msg_id = self._mailbox.decode(raw).msg_id
        return super().check(msg_id, raw, now=now)


# The treatment of an envelope


class KeyOfMsgId(Migration):
    def key(self, envelope: Envelope) -> str:
        return hashlib.sha256(envelope.msg_id.encode()).hexdigest()


class AnotherCodec(Migration):
    def key(self, envelope: Envelope) -> str:
        # As version 0 wrote its files: the standard library's JSON, with blanks.
        return hashlib.sha256(json.dumps(json.loads(envelope.raw)).encode()).hexdigest()


class NotRepeatable(Migration):
    def take_over(self, connection: sqlite3.Connection, envelope: Envelope, *, now: datetime) -> bool:
        try:
            self._store.insert(connection, self._mailbox.row(envelope, self.key(envelope), now=now))
        except KeyTakenError as error:
            raise StoreError(str(error)) from error
        return True


class Refreshing(Migration):
    def take_over(self, connection: sqlite3.Connection, envelope: Envelope, *, now: datetime) -> bool:
        if super().take_over(connection, envelope, now=now):
            return True
        connection.execute(
            "UPDATE replay_state SET seen_at = ? WHERE replay_key = ?", (written(now), self.key(envelope))
        )
        return False


class InPieces(Migration):
    def take_over(self, connection: sqlite3.Connection, envelope: Envelope, *, now: datetime) -> bool:
        taken = super().take_over(connection, envelope, now=now)
        connection.execute("COMMIT")
        connection.execute("BEGIN IMMEDIATE")
        return taken


# The treatment of an id without envelope


class UnmigratedKeyed(Migration):
    def block(self, connection: sqlite3.Connection, msg_id: str, *, now: datetime) -> bool:
        unknown = "0" * 64
        row = {
            "replay_key": hashlib.sha256(msg_id.encode()).hexdigest(),
            "msg_id": msg_id,
            "sender_fp": unknown,
            "recipient_fp": unknown,
            "seen_at": written(now),
            "envelope_timestamp": written(now),
        }
        try:
            self._store.insert(connection, row)
        except KeyTakenError:
            return False
        return True


class UnmigratedUntold(Migration):
    def migrate(self, *, now: datetime) -> Answer:
        answer = super().migrate(now=now)
        return replace(answer, value={**answer.value, "unmigrated": []}) if isinstance(answer, Accepted) else answer


class Unblocked(Migration):
    def block(self, connection: sqlite3.Connection, msg_id: str, *, now: datetime) -> bool:
        return False


class BlockedForEver(Mailbox):
    def guard_blocked(self, connection: sqlite3.Connection, envelope: Envelope, timestamp: datetime) -> None:
        super().guard_blocked(connection, envelope, datetime.min.replace(tzinfo=timestamp.tzinfo))


# The treatment of the list


class BackupRemoved(Migration):
    def write(self, left: LeftBehind, *, now: datetime) -> tuple[int, int]:
        written_now = super().write(left, now=now)
        self._store.location.seen_cache.unlink()
        return written_now


class BackupRewritten(Migration):
    def write(self, left: LeftBehind, *, now: datetime) -> tuple[int, int]:
        written_now = super().write(left, now=now)
        self._store.location.seen_cache.write_text(json.dumps(list(left.listed)), encoding="utf-8")
        return written_now


BUGS: Mapping[str, Change] = {
    "list-with-replaced-bytes": part(migration=ReplacedBytes),
    "migration-skipped-if-store-exists": part(migration=SkippedInUse),
    "migration-stops-at-first": part(migration=FirstOnly),
    "unreadable-envelope-taken-for-gone": part(migration=UnreadableGone),
    "migrated-key-of-msg-id": part(migration=KeyOfMsgId),
    "backup-removed": part(migration=BackupRemoved),
    "backup-rewritten": part(migration=BackupRewritten),
    "unmigrated-gets-a-key": part(migration=UnmigratedKeyed),
    "unmigrated-untold": part(migration=UnmigratedUntold),
    "unmigrated-unblocked": part(migration=Unblocked),
    "blocked-for-ever": part(mailbox=BlockedForEver),
    "migration-not-repeatable": part(migration=NotRepeatable),
    "migration-refreshes": part(migration=Refreshing),
    "migration-in-pieces": part(migration=InPieces),
    "migration-with-another-codec": part(migration=AnotherCodec),
    "bad-entries-skipped": part(migration=BadSkipped),
    "file-name-trusted": part(migration=FileNameTrusted),
}
