"""Bugs of rs4a-replay that show when a lock, a full disk or a crash strikes one of the two files of its store."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast.reference_impl.answers import Answer
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.service import Service
from holdfast.reference_impl.rs4a_replay.settings import Settings
from holdfast.reference_impl.rs4a_replay.sqlite_store import SqliteStore
from holdfast.reference_impl.rs4a_replay.store import (
    Insert,
    RolledBackError,
    Row,
    StoreError,
)
from holdfast.reference_impl.rs4a_replay.surface import SurfaceJudge

# How often a row that is kept in memory is tried again.
_AGAIN_S = 0.005


def _is_locked(error: object) -> bool:
    return "locked" in str(error)


class IssueWrittenBehind(SqliteStore):
    """A nonce that cannot be stored now is kept, and stored once the lock is gone."""

    def append(self, inserts: Sequence[Insert]) -> int:
        try:
            return super().append(inserts)
        except RolledBackError as error:
            if not any(each.relation == "nonce_issue" for each in inserts) or not _is_locked(error):
                raise
        rows = [each.row for each in inserts]
        kept: list[Row] = self.__dict__.setdefault("_kept", [])
        kept += rows
        threading.Thread(target=self._write_behind, args=(rows,), daemon=True).start()
        return len(rows)

    def _write_behind(self, rows: Sequence[Row]) -> None:
        columns = self._relations["nonce_issue"].columns
        statement = f"INSERT INTO nonce_issue VALUES ({', '.join('?' * len(columns))})"
        while True:
            time.sleep(_AGAIN_S)
            with (
                contextlib.suppress(sqlite3.Error),
                contextlib.closing(sqlite3.connect(self._database.path, timeout=0)) as behind,
                behind,
            ):
                behind.executemany(statement, [tuple(row[column] for column in columns) for row in rows])
                self.__dict__["_kept"] = [row for row in self.__dict__["_kept"] if row not in rows]
                return


class ShowsWhatIsKept(Service):
    def state(self) -> dict[str, Any]:
        found = super().state()
        kept = getattr(self._parts.ports.store, "_kept", ())
        return {**found, "nonce_issue": [*found["nonce_issue"], *kept]}


class VerificationBestEffort(SqliteStore):
    def append(self, inserts: Sequence[Insert]) -> int:
        try:
            return super().append(inserts)
        except RolledBackError as error:
            if not any(each.relation == "verification" for each in inserts) or not _is_locked(error):
                raise
            return len(inserts)


class OpenDropsJournal(SqliteStore):
    """What a killed process left beside its database is cleared away, and not rolled back."""

    def __init__(self, path: Path, settings: Settings, judge: SurfaceJudge, patience: Patience) -> None:
        path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
        super().__init__(path, settings, judge, patience)

    def _begin(self) -> sqlite3.Connection:
        with contextlib.suppress(sqlite3.Error):
            self._database.connection().execute("PRAGMA journal_mode = DELETE").fetchone()
        return super()._begin()


class CompactsUnsynced(Custody):
    """Retention compacts the store, in a hurry."""

    def maintain(self, *, now: datetime) -> Answer:
        answer = super().maintain(now=now)
        store = self._ports.store
        with contextlib.suppress(sqlite3.Error, StoreError):
            assert isinstance(store, SqliteStore)
            connection = store._database.connection()
            for statement in ("synchronous = OFF", "VACUUM", "wal_checkpoint(TRUNCATE)", "synchronous = FULL"):
                connection.execute(statement if statement == "VACUUM" else f"PRAGMA {statement}").fetchone()
        return answer


BUGS: Mapping[str, Change] = {
    "issue-written-behind": part(sqlite_store=IssueWrittenBehind, service=ShowsWhatIsKept),
    "verification-best-effort": part(sqlite_store=VerificationBestEffort),
    "open-drops-journal": part(sqlite_store=OpenDropsJournal),
    "retention-compacts-unsynced": part(custody=CompactsUnsynced),
}
