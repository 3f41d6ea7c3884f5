"""Bugs of the jobs, of expiry and of what is advertised."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from holdfast.reference_impl.mesh_delivery.broker import Broker
from holdfast.reference_impl.mesh_delivery.broker_jobs import Jobs
from holdfast.reference_impl.mesh_delivery.broker_service import BrokerService
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.postgres import Connection

# What a statement of a job takes in at most.
_PAGE = 500


class AtOnce(Broker):
    def expires(self) -> datetime | None:
        return None if super().expires() is None else self.now


class Minutes(Broker):
    def expires(self) -> datetime | None:
        return None if super().expires() is None else self.now + timedelta(minutes=self.settings.dedupe_retention_days)


class Always(Broker):
    def expires(self) -> datetime | None:
        return self.now + timedelta(days=self.settings.dedupe_retention_days)


class Never(Broker):
    def expires(self) -> datetime | None:
        return None


class NotNoted(Jobs):
    def note_gone(self, connection: Connection, ids: list[str]) -> None:
        pass


class NotedById(Jobs):
    def note_gone(self, connection: Connection, ids: list[str]) -> None:
        connection.execute(
            "UPDATE mesh.client_message_dedupe SET history_available = FALSE WHERE client_message_id IN "
            "(SELECT client_message_id FROM mesh.client_message_dedupe WHERE broker_message_id = ANY(%s::uuid[]))",
            (ids,),
        )


class NotedByTime(Jobs):
    """Each change of the sweep selects by time, so the second one takes in what came behind the first."""

    def prune_all(self, connection: Connection, older_than: datetime) -> None:
        self._older_than = older_than
        super().prune_all(connection, older_than)

    def note_gone(self, connection: Connection, ids: list[str]) -> None:
        del ids
        connection.execute(
            "UPDATE mesh.client_message_dedupe SET history_available = FALSE WHERE first_seen_at < %s",
            (self._older_than,),
        )


class RecordsPruned(Jobs):
    def note_gone(self, connection: Connection, ids: list[str]) -> None:
        connection.execute("DELETE FROM mesh.client_message_dedupe WHERE broker_message_id = ANY(%s::uuid[])", (ids,))


class TwoTransactions(Jobs):
    def delete_messages(self, connection: Connection, table: str, older_than: datetime) -> list[str]:
        gone = super().delete_messages(connection, table, older_than)
        connection.execute("COMMIT")
        connection.execute("BEGIN")
        return gone


class TopicsAlone(Jobs):
    def message_of(self, table: str) -> str:
        return super().message_of("topic_message")


class ById(Jobs):
    def message_of(self, table: str) -> str:
        return f"SELECT 1 FROM mesh.{table} m WHERE m.client_message_id = d.client_message_id"


class Pruned(Jobs):
    def orphans(self, connection: Connection) -> list[dict[str, str]]:
        gone: list[Any] = connection.execute(
            "SELECT mesh_id::text, client_message_id FROM mesh.client_message_dedupe WHERE NOT history_available"
        ).fetchall()
        pruned = [{"mesh_id": mesh, "client_message_id": client} for mesh, client in gone]
        return sorted([*super().orphans(connection), *pruned], key=lambda one: tuple(one.values()))


class NoneFound(Jobs):
    def orphans(self, connection: Connection) -> list[dict[str, str]]:
        return []


class Repaired(Jobs):
    def orphans(self, connection: Connection) -> list[dict[str, str]]:
        found = super().orphans(connection)
        for orphan in found:
            connection.execute(
                "DELETE FROM mesh.client_message_dedupe WHERE mesh_id = %s AND client_message_id = %s",
                tuple(orphan.values()),
            )
        return found


class Uncounted(Jobs):
    def check_orphans(self) -> list[dict[str, str]]:
        return self.store.transaction(self.orphans)


class Equal(Jobs):
    def delete_expired(self, connection: Connection, now: datetime) -> None:
        super().delete_expired(connection, now + timedelta(microseconds=1))


class Null(Jobs):
    def delete_expired(self, connection: Connection, now: datetime) -> None:
        super().delete_expired(connection, now)
        connection.execute("DELETE FROM mesh.client_message_dedupe WHERE expires_at IS NULL")


class AnyMode(Jobs):
    def expire(self, now: datetime) -> None:
        self.store.transaction(lambda connection: self.delete_expired(connection, now))


class NoExpiry(Jobs):
    def delete_expired(self, connection: Connection, now: datetime) -> None:
        pass


class SweepNotesAPage(Jobs):
    def note_gone(self, connection: Connection, ids: list[str]) -> None:
        super().note_gone(connection, ids[:_PAGE])


class ExpiresAPage(Jobs):
    def delete_expired(self, connection: Connection, now: datetime) -> None:
        page = "SELECT ctid FROM mesh.client_message_dedupe WHERE expires_at < %s LIMIT %s"
        connection.execute(f"DELETE FROM mesh.client_message_dedupe WHERE ctid = ANY(ARRAY({page}))", (now, _PAGE))


class AtMostAQuarter(Broker):
    def expires(self) -> datetime | None:
        expires = super().expires()
        return None if expires is None else min(expires, self.now + timedelta(days=90))


class PrunedExpire(Jobs):
    def delete_expired(self, connection: Connection, now: datetime) -> None:
        super().delete_expired(connection, now)
        old = "NOT history_available AND expires_at IS NOT NULL AND first_seen_at < %s"
        connection.execute(f"DELETE FROM mesh.client_message_dedupe WHERE {old}", (now - timedelta(days=7),))


class VersionOne(BrokerService):
    def parameters(self) -> dict[str, Any]:
        return {**super().parameters(), "version": 1}


class NoFingerprint(BrokerService):
    def parameters(self) -> dict[str, Any]:
        return {name: value for name, value in super().parameters().items() if name != "request_fingerprint"}


class OneMode(BrokerService):
    def parameters(self) -> dict[str, Any]:
        return {**super().parameters(), "mode": "retention_scoped", "dedupe_retention_days": 30}


BUGS: Mapping[str, Change] = {
    "expires-at-once": part(broker=AtOnce),
    "minutes-for-days": part(broker=Minutes),
    "permanent-record-expires": part(broker=Always),
    "record-never-expires": part(broker=Never),
    "history-flag-forgotten": part(jobs=NotNoted),
    "history-flag-by-id-alone": part(jobs=NotedById),
    "history-flag-by-time": part(jobs=NotedByTime),
    "record-pruned-with-its-message": part(jobs=RecordsPruned),
    "pruned-in-two-transactions": part(jobs=TwoTransactions),
    "orphans-of-topics-alone": part(jobs=TopicsAlone),
    "orphans-by-id-alone": part(jobs=ById),
    "pruned-record-is-an-orphan": part(jobs=Pruned),
    "no-orphan-is-found": part(jobs=NoneFound),
    "orphans-deleted": part(jobs=Repaired),
    "orphan-check-uncounted": part(jobs=Uncounted),
    "expires-now-too": part(jobs=Equal),
    "record-without-expiry-deleted": part(jobs=Null),
    "permanent-mode-expires": part(jobs=AnyMode),
    "nothing-expires": part(jobs=NoExpiry),
    "sweep-notes-a-page": part(jobs=SweepNotesAPage),
    "job-expires-a-page": part(jobs=ExpiresAPage),
    "expires-in-a-quarter": part(broker=AtMostAQuarter),
    "job-takes-pruned-records": part(jobs=PrunedExpire),
    "advertised-as-version-one": part(broker_service=VersionOne),
    "advertised-without-fingerprint": part(broker_service=NoFingerprint),
    "advertised-with-other-terms": part(broker_service=OneMode),
}
