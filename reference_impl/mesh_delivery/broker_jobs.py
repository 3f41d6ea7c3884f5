"""The jobs of the broker: expiry of records, retention of messages, the orphan check (sections 4.7 and 17)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from holdfast.reference_impl.mesh_delivery.broker_schema import MESSAGE_TABLES, is_migrated
from holdfast.reference_impl.mesh_delivery.broker_store import BrokerStore
from holdfast.reference_impl.mesh_delivery.counters import Counters
from holdfast.reference_impl.mesh_delivery.terms import Mode, Settings, Word
from holdfast.reference_impl.postgres import Connection

CHECK_TOTAL = "cm_broker_dedupe_orphan_check_total"
FOUND = "cm_broker_dedupe_orphan_found"


class Jobs:
    """Each job is one transaction. They raise UnavailableError and UncertainError."""

    def __init__(self, settings: Settings, store: BrokerStore, counters: Counters) -> None:
        self.settings = settings
        self.store = store
        self.counters = counters

    def expire(self, now: datetime) -> None:
        """Delete the records that expired before now; none in mode permanent."""
        if self.settings.mode is not Mode.PERMANENT:
            self.store.transaction(lambda connection: self.delete_expired(connection, now))

    def delete_expired(self, connection: Connection, now: datetime) -> None:
        """A record without expires_at is none of them."""
        connection.execute("DELETE FROM mesh.client_message_dedupe WHERE expires_at < %s", (now,))

    def prune(self, older_than: datetime) -> None:
        """Delete message rows that are older, and note in their records that the history is gone."""
        self.store.transaction(lambda connection: self.prune_all(connection, older_than))

    def prune_all(self, connection: Connection, older_than: datetime) -> None:
        """Both changes of each relation, in one transaction."""
        migrated = is_migrated(connection)
        for table in MESSAGE_TABLES:
            gone = self.delete_messages(connection, table, older_than)
            if migrated:
                self.note_gone(connection, gone)

    def delete_messages(self, connection: Connection, table: Word, older_than: datetime) -> list[str]:
        """The ids of the rows that were deleted, with their fan-out."""
        statement = f"DELETE FROM mesh.{table} WHERE created_at < %s RETURNING id::text"
        gone: list[Any] = connection.execute(statement, (older_than,)).fetchall()
        ids = [message_id for (message_id,) in gone]
        connection.execute("DELETE FROM mesh.fan_out WHERE broker_message_id = ANY(%s::uuid[])", (ids,))
        return ids

    def note_gone(self, connection: Connection, ids: list[str]) -> None:
        """Of a record, the message is known by its own id: a client_message_id is unique in its mesh alone."""
        connection.execute(
            "UPDATE mesh.client_message_dedupe SET history_available = FALSE WHERE broker_message_id = ANY(%s::uuid[])",
            (ids,),
        )

    def check_orphans(self) -> list[dict[str, str]]:
        """The records whose message is gone though nobody took it. They are reported, and nothing is repaired."""
        found = self.store.transaction(self.orphans)
        self.counters.add(CHECK_TOTAL)
        for orphan in found:
            self.counters.add(FOUND, mesh_id=orphan["mesh_id"])
        return found

    def orphans(self, connection: Connection) -> list[dict[str, str]]:
        """In the order of mesh and id."""
        statement = (
            "SELECT d.mesh_id::text, d.client_message_id FROM mesh.client_message_dedupe d WHERE d.history_available "
            f"AND NOT EXISTS ({self.message_of('topic_message')}) AND NOT EXISTS ({self.message_of('message_queue')}) "
            'ORDER BY d.mesh_id, d.client_message_id COLLATE "C"'
        )
        rows: list[Any] = connection.execute(statement).fetchall()
        return [{"mesh_id": mesh_id, "client_message_id": client_id} for mesh_id, client_id in rows]

    def message_of(self, table: str) -> str:
        """The message row of record d."""
        return f"SELECT 1 FROM mesh.{table} m WHERE m.id = d.broker_message_id"
