"""Bugs of the table of keys and its store."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Self

from fastapi import Request as HttpRequest

from holdfast.reference_impl.idempotency_key.broker import Broker
from holdfast.reference_impl.idempotency_key.databases import (
    Databases,
    Postgres,
    PostgresTransaction,
    Sqlite,
    SqliteTransaction,
    make,
)
from holdfast.reference_impl.idempotency_key.records import MAKE, Claim, Database, Found, Records, Row, Transaction
from holdfast.reference_impl.idempotency_key.terms import Answer, Limits, StoreError
from holdfast.reference_impl.planting import part, value

_TWENTY = 20
_in_turn = threading.Lock()


class AnyPayload(Records):
    def judged(self, row: Row, print_: str, now: int) -> Claim:
        return super().judged(row, row.print, now)


class OtherOvertakes(Records):
    def judged(self, row: Row, print_: str, now: int) -> Claim:
        if row.state == "running" and row.print != print_:
            return Claim(Found.MINE, row.token)
        return super().judged(row, print_, now)


class LookedUpFirst(Records):
    def claim(self, scope: str, name: str, print_: str, now: int) -> Claim:
        with self._database.transaction() as change:
            known = change.execute("SELECT name FROM records WHERE scope = ? AND name = ?", (scope, name))
        claim = super().claim(scope, name, print_, now)
        return claim if known or claim.found is Found.OTHER else replace(claim, found=Found.MINE)


class RunningExecuted(Records):
    def running(self, row: Row, now: int) -> Claim:
        return Claim(Found.MINE, row.token) if now < row.lease else super().running(row, now)


class LeaseExecuted(Records):
    def running(self, row: Row, now: int) -> Claim:
        return super().running(row, now) if now < row.lease else Claim(Found.MINE, row.token)


class RunningForEver(Records):
    def running(self, row: Row, now: int) -> Claim:
        return super().running(row, min(now, row.lease - 1))


class OldRowStands(Records):
    def claim(self, scope: str, name: str, print_: str, now: int) -> Claim:
        with self._database.transaction() as change:
            old = "SELECT name FROM records WHERE scope = ? AND name = ? AND expires <= ?"
            if change.execute(old, (scope, name, now)):
                raise StoreError("UNIQUE constraint failed")
        return super().claim(scope, name, print_, now)


class FutureForgotten(Records):
    def remove_expired(self, change: Transaction, scope: str, name: str, now: int) -> None:
        super().remove_expired(change, scope, name, now)
        late = "DELETE FROM records WHERE scope = ? AND name = ? AND expires > ?"
        change.execute(late, (scope, name, now + self._lifetime_ms))


class WithoutWaiting(PostgresTransaction):
    def execute(self, statement: str, values: tuple[object, ...]) -> list[tuple[object, ...]]:
        super().execute("SET LOCAL synchronous_commit = off", ())
        return super().execute(statement, values)


class HastyPostgres(Postgres):
    transactions = WithoutWaiting


class Hasty(Databases):
    def opened(self, environment: Mapping[str, str]) -> Database:
        dsn = environment.get("STORE_DSN")
        return HastyPostgres(dsn) if dsn else super().opened(environment)


class OfThisProcess(Databases):
    def opened(self, environment: Mapping[str, str]) -> Database:
        if "STORE_DSN" in environment:
            return super().opened(environment)
        own = Path(environment["DATA"]) / f"keys-{os.getpid()}.db"
        Sqlite.make(own)
        return Sqlite(own)


class TwentyKeys(Records):
    def claim(self, scope: str, name: str, print_: str, now: int) -> Claim:
        with self._database.transaction() as change:
            if change.execute("SELECT count(*) FROM records", ())[0][0] >= _TWENTY:
                change.execute("DELETE FROM records WHERE state = 'done'", ())
        return super().claim(scope, name, print_, now)


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


class ClaimUnsynced(Records):
    def claim(self, scope: str, name: str, print_: str, now: int) -> Claim:
        if not isinstance(self._database, Sqlite):
            return super().claim(scope, name, print_, now)
        with _in_turn:
            self._database.transactions = NeverSynced
            try:
                return super().claim(scope, name, print_, now)
            finally:
                self._database.transactions = SqliteTransaction


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


class IdsWithMessages(Broker):
    def consumed(self, body: bytes) -> None:
        super().consumed(body)
        with self.guard.records._database.transaction() as change:
            change.execute("DELETE FROM records WHERE state = 'done'", ())


class DuplicatesLater(Broker):
    def answer(self, request: HttpRequest, body: bytes) -> Answer:
        answer = super().answer(request, body)
        if answer.replayed:
            threading.Timer(1.0, self.queue.put, (body,)).start()
        return answer


def _a_thousandth(limits: Limits) -> Limits:
    return replace(limits, lifetime_ms=limits.lifetime_ms // 1000)


BUGS = {
    "payload-not-compared": part(records=AnyPayload),
    "other-payload-overtakes": part(records=OtherOvertakes),
    "looked-up-before-the-claim": part(records=LookedUpFirst),
    "running-is-free": part(records=RunningExecuted),
    "lease-ends-in-an-execution": part(records=LeaseExecuted),
    "running-for-ever": part(records=RunningForEver),
    "old-row-stands-in-the-way": part(records=OldRowStands),
    "rows-of-the-future-removed": part(records=FutureForgotten),
    "commit-does-not-wait": part(databases=Hasty),
    "store-of-the-process": part(databases=OfThisProcess),
    "keeps-twenty-keys": part(records=TwentyKeys),
    "claim-is-not-synced": part(records=ClaimUnsynced),
    "file-is-never-synced": part(databases=_in_files(NeverSynced)),
    "failed-sync-counts": part(databases=_in_files(SyncedByHand)),
    "sweep-switches-syncs-off": part(records=SweepsInHaste),
    "lock-is-an-empty-store": part(databases=_in_files(LockIsEmpty)),
    "full-disk-is-a-commit": part(databases=_in_files(FullIsDone)),
    "duplicates-are-consumed-later": part(broker=DuplicatesLater),
    "ids-leave-with-their-messages": part(broker=IdsWithMessages),
    "damaged-store-made-anew": part(databases=MadeAnew),
    "lifetime-in-the-wrong-unit": value(_a_thousandth),
}
