"""Bugs that show only to one who looks at the database itself, or alters it while the broker runs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import psycopg

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Refused
from holdfast.reference_impl.instants import format_instant, parse_instant
from holdfast.reference_impl.mesh_delivery.broker import Broker
from holdfast.reference_impl.mesh_delivery.broker_admin import Administrator
from holdfast.reference_impl.mesh_delivery.broker_jobs import Jobs
from holdfast.reference_impl.mesh_delivery.broker_schema import BrokerSchema
from holdfast.reference_impl.mesh_delivery.broker_store import BrokerStore, Found, Send, Sight, UnavailableError
from holdfast.reference_impl.mesh_delivery.mutants.tables import NoIndex
from holdfast.reference_impl.mesh_delivery.terms import Reason
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.postgres import Connection

_RETENTION = timedelta(days=30)
_SHORT_S = 1.0


class EndsWithTheSchema(BrokerStore):
    def seen(self, connection: Connection, found: Found) -> Sight:
        sight = super().seen(connection, found)
        return replace(sight, is_enforced=sight.is_enforced and self.schema.is_migrated(connection))


class RenamesFirst(BrokerSchema):
    """The old relation is put aside before the rest is done, and comes back behind it."""

    def migrate(self, connection: psycopg.Connection[Any]) -> None:
        if not self.is_migrated(connection):
            connection.execute("ALTER TABLE mesh.topic_message RENAME TO topic_message_before")
            connection.execute(self.dedupe_table())
            connection.execute("ALTER TABLE mesh.topic_message_before RENAME TO topic_message")
        super().migrate(connection)


class TableAlone(BrokerSchema):
    """Steps that are transactions of their own, of which the first one counts for all."""

    def migrate(self, connection: psycopg.Connection[Any]) -> None:
        for statement in self.migration():
            connection.execute(statement)

    def is_migrated(self, connection: psycopg.Connection[Any]) -> bool:
        found = connection.execute("SELECT to_regclass('mesh.client_message_dedupe') IS NOT NULL")
        return found.fetchone() == (True,)


class IndexTold(Administrator):
    def catalogue(self) -> dict[str, Any]:
        found = super().catalogue()
        for name, relation in found.items():
            if name == "client_message_dedupe":
                where = "(expires_at IS NOT NULL)"
                relation["indexes"] = [{"columns": ["expires_at"], "unique": False, "where": where}]
        return found


class ExpiryNotStored(BrokerStore):
    def insert_record(
        self, connection: Connection, send: Send, message_id: str, now: datetime, expires: datetime | None
    ) -> bool:
        del expires
        return super().insert_record(connection, send, message_id, now, None)


class ExpiryTold(Administrator):
    def state(self) -> dict[str, Any]:
        found = super().state()
        for row in found["dedupe"]:
            row["expires_at"] = format_instant(parse_instant(row["first_seen_at"]) + _RETENTION)
        return found


class ExpiryComputed(Jobs):
    def delete_expired(self, connection: Connection, now: datetime) -> None:
        connection.execute("DELETE FROM mesh.client_message_dedupe WHERE first_seen_at < %s", (now - _RETENTION,))


class CommitErrorIgnored(BrokerStore):
    def commit(self, connection: Connection) -> None:
        with contextlib.suppress(psycopg.Error):
            connection.execute("COMMIT")


class CommitGivenUp(BrokerStore):
    """It waits a second for a commit, and then says that there is none."""

    def commit(self, connection: Connection) -> None:
        connection.pgconn.send_query(b"COMMIT")
        ends = time.monotonic() + _SHORT_S
        while connection.pgconn.is_busy():
            if time.monotonic() > ends:
                self.close()
                raise UnavailableError("the commit took too long")
            time.sleep(0.001)
            connection.pgconn.consume_input()
        while connection.pgconn.get_result() is not None:
            pass


class KnowsByHeart(Broker):
    """A retry of what this process has accepted is answered from memory while the database cannot be asked."""

    def accept(self, args: Mapping[str, Any]) -> Answer:
        kept: dict[str, Accepted] = self.__dict__.setdefault("kept", {})
        answer = super().accept(args)
        if isinstance(answer, Accepted):
            kept.setdefault(str(args), replace(answer, effect=Effect.PRIOR))
        if isinstance(answer, Refused) and answer.reason == Reason.BROKER_UNAVAILABLE.value:
            return kept.get(str(args), answer)
        return answer


BUGS: Mapping[str, Change] = {
    "migration-renames-first": part(broker_schema=RenamesFirst),
    "table-alone-is-migrated": part(broker_schema=TableAlone),
    "deduplication-ends-with-the-schema": part(broker_store=EndsWithTheSchema),
    "index-told-and-not-there": part(broker_schema=NoIndex, administrator=IndexTold),
    "expiry-told-and-not-stored": part(broker_store=ExpiryNotStored, administrator=ExpiryTold, jobs=ExpiryComputed),
    "commit-error-ignored": part(broker_store=CommitErrorIgnored),
    "late-commit-is-refused": part(broker_store=CommitGivenUp),
    "retry-known-by-heart": part(broker=KnowsByHeart),
}
