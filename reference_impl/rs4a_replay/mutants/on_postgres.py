"""Bugs of the store on PostgreSQL. Beside the others, they would load its driver for a bug on SQLite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import psycopg
from psycopg import errors

from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.postgres import Connection
from holdfast.reference_impl.postgres_pipeline import Reply, Step, run
from holdfast.reference_impl.rs4a_replay.postgres_store import PostgresAudit, PostgresStore, _Judged
from holdfast.reference_impl.rs4a_replay.store import (
    Committed,
    CommitUncertainError,
    Consumption,
    Insert,
    RolledBackError,
    Row,
)
from holdfast.reference_impl.rs4a_replay.surface import SeenRelation, SurfaceJudge, SurfaceReport
from holdfast.servers.postgres.confined import ConfinedServer


class SerializationIsSuccess(PostgresStore):
    def consume(self, inserts: Sequence[Insert]) -> Consumption:
        self._settings = replace(self._settings, serialization_retries=0)
        try:
            return super().consume(inserts)
        except RolledBackError as error:
            if "concurrent" in str(error):
                return Committed(inserts[-1].row)
            raise

    def insert_all(
        self, connection: Connection, begin: Sequence[Step], inserts: Sequence[Insert], xids: set[int]
    ) -> None:
        # Of a row that it does not see, ON CONFLICT is a serialization failure. A plain INSERT breaks the constraint.
        rows = [reply.row for reply in run(connection, *begin, *map(self._appending, inserts))[len(begin) :]]
        xids.update(int(row[0]) for row in rows if row is not None)
        if None in rows:
            raise errors.UniqueViolation("another transaction was first")


class NothingAwaited(PostgresStore):
    def insert_all(
        self, connection: Connection, begin: Sequence[Step], inserts: Sequence[Insert], xids: set[int]
    ) -> None:
        # A lock decides that another transaction has the key, before the outcome of that transaction is known.
        *_, tried = run(connection, *begin, Step("SELECT pg_try_advisory_xact_lock(4711)"))
        if tried.row != (True,):
            raise errors.UniqueViolation("another transaction is under way")
        super().insert_all(connection, (), inserts, xids)


class CommitLeftToBackground(PostgresStore):
    synchronous_commit = "off"


class JudgedOnce(PostgresStore):
    def _marks_and_rows(self, judged: _Judged, logical_request_key: str | None, nonce: str | None) -> Sequence[Any]:
        # Whatever becomes of the surface, it was fit at first.
        return ("", *super()._marks_and_rows(judged, logical_request_key, nonce)[1:])


class RefusedCommitIsDone(PostgresStore):
    def send_commit(self, connection: Connection, read_back: Step) -> Sequence[Reply]:
        try:
            return super().send_commit(connection, read_back)
        except psycopg.OperationalError as error:
            # It takes every error but a conflict for one behind the commit.
            if error.sqlstate is None:
                raise
            return [Reply("COMMIT", None), Reply(None, None)]


class LateIsFailed(PostgresStore):
    def append(self, inserts: Sequence[Insert]) -> int:
        try:
            return super().append(inserts)
        except CommitUncertainError as error:
            raise RolledBackError(str(error)) from error


class ColumnsUnseen(SurfaceJudge):
    def missing(self, seen: Mapping[str, SeenRelation]) -> SurfaceReport | None:
        # Names of relations say enough.
        known = {name: relation for name, relation in self._required.items() if name in seen}
        whole = {name: frozenset(relation.columns) for name, relation in known.items()}
        return super().missing({name: replace(seen[name], columns=columns) for name, columns in whole.items()})


class AuditProbedByReading(PostgresAudit):
    def probe(self, record: Row) -> None:
        self._try(lambda connection, _: run(connection, Step("SELECT 1")), record)


class ServerSyncLeftOut(ConfinedServer):
    settings: ClassVar[Mapping[str, str]] = {**ConfinedServer.settings, "fsync": "off"}


BUGS: Mapping[str, Change] = {
    "serialization-is-success": part(postgres_store=SerializationIsSuccess),
    "collision-decided-early": part(postgres_store=NothingAwaited),
    "commit-left-to-background": part(postgres_store=CommitLeftToBackground),
    "judged-once": part(postgres_store=JudgedOnce),
    "refused-commit-is-done": part(postgres_store=RefusedCommitIsDone),
    "late-is-failed": part(postgres_store=LateIsFailed),
    "columns-unseen": part(judge=ColumnsUnseen),
    "audit-probed-by-reading": part(postgres_audit=AuditProbedByReading),
    "server-sync-left-out": part(confined_server=ServerSyncLeftOut),
}
