"""Bugs of the table of keys and its store."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Self

from holdfast.reference_impl.idempotency_key.databases import (
    Databases,
    Sqlite,
    SqliteTransaction,
    make,
)
from holdfast.reference_impl.idempotency_key.records import MAKE, Claim, Database, Records
from holdfast.reference_impl.idempotency_key.terms import StoreError
from holdfast.reference_impl.planting import part


class NeverSynced(SqliteTransaction):
    pragmas = ("synchronous = OFF",)


class SyncedByHand(NeverSynced):
    # As long as it is open, SQLite leaves the log in its place.
    _keeper: ClassVar[sqlite3.Connection | None] = None

    def __enter__(self) -> Self:
        entered = super().__enter__()
        if SyncedByHand._keeper is None:
            SyncedByHand._keeper = sqlite3.connect(self._path, check_same_thread=False)
            SyncedByHand._keeper.execute("SELECT count(*) FROM records").fetchall()
        return entered

    def __exit__(self, kind: object, *more: object) -> None:
        super().__exit__(kind, *more)
        for synced in (f"{self._path}-wal", self._path.parent):
            number = os.open(synced, os.O_RDONLY)
            with suppress(OSError):
                os.fsync(number)
            os.close(number)


class SweepsInHaste(Records):
    def claim(self, scope: str, name: str, print_: str, now: int) -> Claim:
        with self._database.transaction() as change:
            swept = change.execute("DELETE FROM records WHERE expires <= ? RETURNING name", (now,))
        if swept and isinstance(self._database, Sqlite):
            self._database.transactions = NeverSynced
        return super().claim(scope, name, print_, now)


class LockIsEmpty(SqliteTransaction):
    def __enter__(self) -> Self:
        try:
            return super().__enter__()
        except StoreError as error:
            if "locked" not in str(error):
                raise
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._connection.execute(MAKE.format(bytes="BLOB"))
        self._connection.execute("BEGIN")
        return self


class FullIsDone(SqliteTransaction):
    def __exit__(self, kind: object, *more: object) -> None:
        with suppress(StoreError):
            super().__exit__(kind, *more)


def _in_files(kind: type[SqliteTransaction]) -> type[Databases]:
    class OfFiles(Databases):
        def opened(self, environment: Mapping[str, str]) -> Database:
            database = super().opened(environment)
            if isinstance(database, Sqlite):
                database.transactions = kind
            return database

    return OfFiles


class MadeAnew(Databases):
    def opened(self, environment: Mapping[str, str]) -> Database:
        try:
            return super().opened(environment)
        except StoreError:
            for left in Path(environment["DATA"]).glob("keys.db*"):
                left.unlink()
            make(environment)
            return super().opened(environment)


BUGS = {
    "failed-sync-counts": part(databases=_in_files(SyncedByHand)),
    "sweep-switches-syncs-off": part(records=SweepsInHaste),
    "lock-is-an-empty-store": part(databases=_in_files(LockIsEmpty)),
    "full-disk-is-a-commit": part(databases=_in_files(FullIsDone)),
    "damaged-store-made-anew": part(databases=MadeAnew),
}
