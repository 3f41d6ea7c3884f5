"""Bugs of the schema and of the migration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from holdfast.reference_impl.mesh_delivery.broker_admin import Administrator
from holdfast.reference_impl.mesh_delivery.broker_schema import ENFORCED, BrokerSchema
from holdfast.reference_impl.mesh_delivery.broker_store import BrokerStore, Found, Sight
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.postgres import Connection


def _table(before: str, after: str) -> Change:
    """The dedupe table with another text in one place."""

    class Changed(BrokerSchema):
        def dedupe_table(self) -> str:
            found = super().dedupe_table()
            assert found.count(before) == 1, before
            return found.replace(before, after)

    return part(broker_schema=Changed)


def _column(table: str, more: str) -> Change:
    """The column of the id in one of the message relations."""

    class Changed(BrokerSchema):
        def message_column(self, name: str) -> str:
            return super().message_column(name) + (more if name == table else "")

    return part(broker_schema=Changed)


class NoIndex(BrokerSchema):
    def expires_index(self) -> str:
        return "SELECT 1"


class Anew(BrokerSchema):
    def migration(self) -> Iterator[str]:
        yield "DROP TABLE IF EXISTS mesh.client_message_dedupe"
        yield from super().migration()


class Emptied(BrokerSchema):
    def migration(self) -> Iterator[str]:
        yield "TRUNCATE mesh.topic_message"
        yield from super().migration()


class Truncates(Administrator):
    def set_flag(self, *, enabled: bool) -> None:
        super().set_flag(enabled=enabled)
        if not enabled:
            self.connection().execute("TRUNCATE mesh.client_message_dedupe")


class FlagIgnored(BrokerStore):
    def seen(self, connection: Connection, found: Found) -> Sight:
        return replace(super().seen(connection, found), is_enforced=self.schema.is_migrated(connection))


class FlagAlone(Administrator):
    def is_enforced(self) -> bool:
        return True


class Late(BrokerStore):
    """What was read once is believed from then on."""

    known: bool | None = None

    def seen(self, connection: Connection, found: Found) -> Sight:
        sight = super().seen(connection, found)
        if self.known is None:
            self.known = sight.is_enforced
        return replace(sight, is_enforced=self.known)


class ByItself(Administrator):
    def migrate(self) -> None:
        super().migrate()
        statement = "INSERT INTO mesh.setting VALUES (%s, 'on') ON CONFLICT (name) DO UPDATE SET value = 'on'"
        self.connection().execute(statement, (ENFORCED,))


_NOT_NULL: Mapping[str, str] = {
    "fingerprint-nullable": "request_fingerprint BYTEA",
    "destination-nullable": "destination_ref TEXT",
    "kind-nullable": "destination_kind TEXT",
    "message-id-nullable": "broker_message_id UUID",
    "first-time-nullable": "first_seen_at TIMESTAMPTZ",
    "history-flag-nullable": "history_available BOOLEAN",
}
_REFERENCES = " REFERENCES mesh.mesh(id) ON DELETE CASCADE"
_MESSAGE = " REFERENCES mesh.topic_message(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED"
_CHANGES: Mapping[str, Callable[[], Change]] = {
    "mesh-not-referenced": lambda: _table(_REFERENCES, ""),
    "id-of-bounded-length": lambda: _table("client_message_id TEXT", "client_message_id VARCHAR(400)"),
    "record-goes-with-its-message": lambda: _table(
        "broker_message_id UUID NOT NULL", f"broker_message_id UUID{_MESSAGE}"
    ),
    "table-kind-unchecked": lambda: _table(" CHECK (destination_kind IN ('topic', 'dm', 'queue'))", ""),
    "first-time-without-default": lambda: _table(" DEFAULT NOW()", ""),
    "history-flag-without-default": lambda: _table("history_available BOOLEAN NOT NULL DEFAULT TRUE", _FLAG),
    "fingerprint-in-the-key": lambda: _table(_KEY, "PRIMARY KEY (mesh_id, client_message_id, request_fingerprint)"),
    "id-unique-across-meshes": lambda: _table(_KEY, f"{_KEY}, UNIQUE (client_message_id)"),
    "status-kept": lambda: _table(_KEY, f"status TEXT NOT NULL DEFAULT 'accepted', {_KEY}"),
    "topic-row-needs-an-id": lambda: _column("topic_message", " NOT NULL"),
    "queue-row-needs-an-id": lambda: _column("message_queue", " NOT NULL"),
}
_KEY = "PRIMARY KEY (mesh_id, client_message_id)"
_FLAG = "history_available BOOLEAN NOT NULL DEFAULT FALSE"

BUGS: Mapping[str, Change] = {
    **{name: _table(f"{column} NOT NULL", column) for name, column in _NOT_NULL.items()},
    **{name: make() for name, make in _CHANGES.items()},
    "no-expires-index": part(broker_schema=NoIndex),
    "migration-begins-anew": part(broker_schema=Anew),
    "migration-empties-a-relation": part(broker_schema=Emptied),
    "rollback-truncates": part(administrator=Truncates),
    "flag-ignored": part(broker_store=FlagIgnored),
    "advertised-always": part(administrator=FlagAlone),
    "flag-read-once": part(broker_store=Late),
    "migration-switches-on": part(administrator=ByItself),
}
