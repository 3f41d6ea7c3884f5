"""What an administrator does with the database of a broker, and what the observations show of it."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from holdfast.reference_impl.instants import format_instant
from holdfast.reference_impl.mesh_delivery import broker_schema
from holdfast.reference_impl.mesh_delivery.broker_schema import ENFORCED, MESSAGE_TABLES, is_migrated
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.postgres import Dsn, Link, with_database
from holdfast.reference_impl.postgres_databases import MAINTENANCE

_DEDUPE = """
SELECT mesh_id::text, client_message_id, broker_message_id::text,
       encode(request_fingerprint, 'hex') request_fingerprint,
       destination_kind, destination_ref, first_seen_at, expires_at, history_available
FROM mesh.client_message_dedupe ORDER BY mesh_id, client_message_id COLLATE "C"
"""
# Before the migration there is no client_message_id.
_MESSAGES = " UNION ALL ".join(
    f"SELECT '{table}' relation, id::text, mesh_id::text, to_jsonb(m) ->> 'client_message_id' client_message_id, "
    f"sender, destination_kind, destination_ref, body FROM mesh.{table} m"
    for table in MESSAGE_TABLES
)
_CATALOGUE = """
SELECT c.relname AS name,
  (SELECT jsonb_agg(jsonb_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
                    'nullable', NOT a.attnotnull, 'has_default', a.atthasdef) ORDER BY a.attnum)
     FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
  (SELECT coalesce(jsonb_agg(a.attname ORDER BY k.n), '[]')
     FROM pg_constraint o, unnest(o.conkey) WITH ORDINALITY k(a, n), pg_attribute a
    WHERE o.conrelid = c.oid AND o.contype = 'p' AND a.attrelid = c.oid AND a.attnum = k.a) AS primary_key,
  (SELECT coalesce(jsonb_agg(jsonb_build_object(
            'columns', (SELECT jsonb_agg(a.attname ORDER BY k.n)
                          FROM unnest(o.conkey) WITH ORDINALITY k(a, n), pg_attribute a
                         WHERE a.attrelid = c.oid AND a.attnum = k.a),
            'references', o.confrelid::regclass::text,
            'on_delete', CASE o.confdeltype WHEN 'a' THEN 'no action' WHEN 'r' THEN 'restrict' WHEN 'c' THEN 'cascade'
                         WHEN 'n' THEN 'set null' ELSE 'set default' END)), '[]')
     FROM pg_constraint o WHERE o.conrelid = c.oid AND o.contype = 'f') AS foreign_keys,
  (SELECT coalesce(jsonb_agg(jsonb_build_object(
            'columns', (SELECT jsonb_agg(a.attname ORDER BY a.attnum)
                          FROM pg_attribute a WHERE a.attrelid = x.indexrelid),
            'unique', x.indisunique, 'where', pg_get_expr(x.indpred, x.indrelid))), '[]')
     FROM pg_index x WHERE x.indrelid = c.oid AND NOT x.indisprimary) AS indexes
FROM pg_class c
WHERE c.relnamespace = to_regnamespace('mesh')
  AND c.relname IN ('client_message_dedupe', 'topic_message', 'message_queue')
"""


class Administrator:
    """Works on a connection of its own, past the broker. Raises psycopg.Error."""

    def __init__(self, dsn: Dsn, patience: Patience) -> None:
        self._link = Link(dsn, patience=patience)
        self._maintenance = Link(with_database(dsn, MAINTENANCE), patience=patience)

    def close(self) -> None:
        """Give back the connections. Never raises."""
        self._link.drop()
        self._maintenance.drop()

    # What is there

    def state(self) -> dict[str, Any]:
        """Every row, as one snapshot."""
        connection = self._link.alive()
        with connection.transaction(), connection.cursor(row_factory=dict_row) as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT to_regclass('mesh.client_message_dedupe') IS NOT NULL there")
            (found,) = cursor.fetchall()
            dedupe = cursor.execute(_DEDUPE).fetchall() if found["there"] else []
            messages = cursor.execute(f"{_MESSAGES} ORDER BY 2").fetchall()
            fan_out = cursor.execute(
                'SELECT broker_message_id::text, receiver FROM mesh.fan_out ORDER BY 1, receiver COLLATE "C"'
            ).fetchall()
        return {
            "dedupe": [{name: _written(value) for name, value in row.items()} for row in dedupe],
            "messages": [{name: _written(value) for name, value in row.items()} for row in messages],
            "fan_out": fan_out,
        }

    def catalogue(self) -> dict[str, Any]:
        """Columns, keys and indexes of the three relations."""
        with self._link.alive().cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(_CATALOGUE).fetchall()
        return {row.pop("name"): row for row in rows}

    def inbox(self, mesh_id: str, receiver: str) -> list[dict[str, Any]]:
        """What the fan-out hands to a receiver."""
        if "\0" in receiver:
            # PostgreSQL cannot store this character, so no receiver has such a name.
            return []
        statement = (
            f"SELECT m.client_message_id, m.id AS broker_message_id, m.body FROM ({_MESSAGES}) m "
            "JOIN mesh.fan_out f ON f.broker_message_id::text = m.id "
            "WHERE f.mesh_id = %s AND f.receiver = %s ORDER BY m.id"
        )
        with self._link.alive().cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(statement, (mesh_id, receiver)).fetchall()
        return [{name: _written(value) for name, value in row.items()} for row in rows]

    def is_enforced(self) -> bool:
        """Whether ids are deduplicated."""
        connection = self._link.alive()
        found = connection.execute("SELECT value FROM mesh.setting WHERE name = %s", (ENFORCED,)).fetchone()
        return found == ("on",) and is_migrated(connection)

    # What an administrator changes

    def make_mesh(self, mesh_id: str, *, members: Sequence[str], topics: Sequence[str], queues: Sequence[str]) -> None:
        """A mesh and all that belongs to it."""
        connection = self._link.alive()
        with connection.transaction():
            connection.execute("INSERT INTO mesh.mesh VALUES (%s)", (mesh_id,))
            for table, names in (("member", members), ("topic", topics), ("queue", queues)):
                for name in names:
                    connection.execute(f"INSERT INTO mesh.{table} VALUES (%s, %s)", (mesh_id, name))

    def delete_mesh(self, mesh_id: str) -> None:
        """The mesh; its rows go with it."""
        self._link.alive().execute("DELETE FROM mesh.mesh WHERE id = %s", (mesh_id,))

    def migrate(self) -> None:
        """Steps 1 to 3 of section 17."""
        broker_schema.migrate(self._link.alive())

    def set_flag(self, *, enabled: bool) -> None:
        """Switch enforcement for every process. It stays off where the schema cannot hold a record."""
        connection = self._link.alive()
        enabled = enabled and is_migrated(connection)
        connection.execute(
            "INSERT INTO mesh.setting VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (ENFORCED, "on" if enabled else "off"),
        )

    # Test hooks

    def raw_insert(self, relation: str, row: Mapping[str, str | None]) -> bool:
        """Whether a row got in."""
        connection = self._link.alive()
        known: list[Any] = connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
            (f"mesh.{relation}",),
        ).fetchall()
        # What the contract does not name and a row needs, where it does not say it.
        others = {
            "sender": "0" * 64,
            "reply_to": "",
            "priority": "next",
            "meta": "",
            "created_at": "2026-01-01T00:00:00Z",
        }
        filled = {name: value for name, value in others.items() if (name,) in known}
        whole = {**filled, **row}
        statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
            sql.Identifier("mesh", relation),
            sql.SQL(", ").join(map(sql.Identifier, whole)),
            sql.SQL(", ").join(sql.Literal(value) for value in whole.values()),
        )
        try:
            connection.execute(statement)
        except psycopg.IntegrityError:
            return False
        return True

    def remove_message(self, message_id: str) -> None:
        """A message row goes, and its record stays as it is."""
        for table in MESSAGE_TABLES:
            self._link.alive().execute(f"DELETE FROM mesh.{table} WHERE id = %s", (message_id,))

    def refuse_rows(self, relation: str, *, refuse: bool) -> None:
        """A real constraint that no new row meets; those that are there are not looked at."""
        change = "ADD CONSTRAINT refused CHECK (false) NOT VALID" if refuse else "DROP CONSTRAINT refused"
        self._link.alive().execute(f"ALTER TABLE mesh.{relation} {change}")

    def set_reachable(self, database: str, *, reachable: bool) -> None:
        """Let nobody connect to the database, and end who is connected; or let them again."""
        connection = self._maintenance.connection()
        name = sql.Identifier(database)
        allowed = sql.SQL("true" if reachable else "false")
        connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}").format(name, allowed))
        if not reachable:
            self._link.drop()
            connection.execute(
                "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE datname = %s", (database,)
            )


def _written(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, (bytes, memoryview)):
        return base64.urlsafe_b64encode(bytes(value)).rstrip(b"=").decode()
    return value
