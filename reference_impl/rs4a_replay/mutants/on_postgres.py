"""Bugs of the store on PostgreSQL. Beside the others, they would load its driver for a bug on SQLite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.postgres_pipeline import Step, run
from holdfast.reference_impl.rs4a_replay.postgres_store import PostgresAudit, PostgresStore
from holdfast.reference_impl.rs4a_replay.store import Committed, Consumption, Insert, RolledBackError, Row
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


class NothingAwaited(PostgresStore):
    def insert_statement(self, insert: Insert) -> str:
        # A read decides that another transaction has the key, before the outcome of that transaction is known.
        statement = super().insert_statement(insert)
        names, _, rest = statement.partition(" VALUES (")
        values, _, tail = rest.partition(")")
        return f"{names} SELECT {values} WHERE pg_try_advisory_xact_lock(4711) {tail}"


class CommitLeftToBackground(PostgresStore):
    synchronous_commit = "off"


class AuditProbedByReading(PostgresAudit):
    def probe(self, record: Row) -> None:
        self._try(lambda connection: run(connection, Step("SELECT 1")))


class ServerSyncLeftOut(ConfinedServer):
    settings: ClassVar[Mapping[str, str]] = {**ConfinedServer.settings, "fsync": "off"}


BUGS: Mapping[str, Change] = {
    "serialization-is-success": part(postgres_store=SerializationIsSuccess),
    "collision-decided-early": part(postgres_store=NothingAwaited),
    "commit-left-to-background": part(postgres_store=CommitLeftToBackground),
    "audit-probed-by-reading": part(postgres_audit=AuditProbedByReading),
    "server-sync-left-out": part(confined_server=ServerSyncLeftOut),
}
