"""The tables of the broker: those before v6, what v6 adds to them (section 4.3), and the way from one to the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg

SCHEMA = "mesh"
MESSAGE_TABLES = ("topic_message", "message_queue")
# The names under which `setting` keeps what an operator has decided.
ENFORCED = "client_message_id_dedupe"


def before_v6() -> Iterator[str]:
    """What a broker had before the migration."""
    yield from (
        f"CREATE SCHEMA {SCHEMA}",
        "CREATE TABLE mesh.mesh (id UUID PRIMARY KEY)",
        *(
            f"CREATE TABLE mesh.{table} (mesh_id UUID NOT NULL REFERENCES mesh.mesh(id) ON DELETE CASCADE, "
            f"{column} TEXT NOT NULL, PRIMARY KEY (mesh_id, {column}))"
            for table, column in (("member", "public_key"), ("topic", "name"), ("queue", "id"))
        ),
        *(
            f"CREATE TABLE mesh.{table} (id UUID PRIMARY KEY, "
            "mesh_id UUID NOT NULL REFERENCES mesh.mesh(id) ON DELETE CASCADE, sender TEXT NOT NULL, "
            "destination_kind TEXT NOT NULL, destination_ref TEXT NOT NULL, reply_to TEXT NOT NULL, "
            "priority TEXT NOT NULL, meta BYTEA NOT NULL, body BYTEA NOT NULL, created_at TIMESTAMPTZ NOT NULL, "
            "position BIGINT GENERATED ALWAYS AS IDENTITY)"
            for table in MESSAGE_TABLES
        ),
        "CREATE TABLE mesh.fan_out (mesh_id UUID NOT NULL REFERENCES mesh.mesh(id) ON DELETE CASCADE, "
        "broker_message_id UUID NOT NULL, receiver TEXT NOT NULL, PRIMARY KEY (broker_message_id, receiver))",
        "CREATE TABLE mesh.setting (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    )


def migration() -> Iterator[str]:
    """The steps 1 to 3 of section 17: they add, change nothing that is there, and may be run again."""
    yield dedupe_table()
    yield expires_index()
    yield from map(message_column, MESSAGE_TABLES)


def dedupe_table() -> str:
    """The record of every accepted id. The sender stands beside the columns of the source (MESH-4.1-S2)."""
    return (
        "CREATE TABLE IF NOT EXISTS mesh.client_message_dedupe ("
        "mesh_id UUID NOT NULL REFERENCES mesh.mesh(id) ON DELETE CASCADE, "
        "client_message_id TEXT NOT NULL, "
        "broker_message_id UUID NOT NULL, "
        "request_fingerprint BYTEA NOT NULL CHECK (octet_length(request_fingerprint) = 32), "
        "sender TEXT NOT NULL, "
        "destination_kind TEXT NOT NULL CHECK (destination_kind IN ('topic', 'dm', 'queue')), "
        "destination_ref TEXT NOT NULL, "
        "first_seen_at TIMESTAMPTZ NOT NULL DEFAULT NOW(), "
        "expires_at TIMESTAMPTZ, "
        "history_available BOOLEAN NOT NULL DEFAULT TRUE, "
        "PRIMARY KEY (mesh_id, client_message_id))"
    )


def expires_index() -> str:
    """What the nightly job looks along."""
    return (
        "CREATE INDEX IF NOT EXISTS client_message_dedupe_expires_idx "
        "ON mesh.client_message_dedupe (expires_at) WHERE expires_at IS NOT NULL"
    )


def message_column(table: str) -> str:
    """The id in the message rows; legacy traffic has none."""
    return f"ALTER TABLE mesh.{table} ADD COLUMN IF NOT EXISTS client_message_id TEXT"


def is_migrated(connection: psycopg.Connection[Any]) -> bool:
    """Whether all that enforcement needs is there. Raises psycopg.Error."""
    statement = (
        "SELECT count(*) FROM pg_attribute WHERE attname = 'client_message_id' AND NOT attisdropped "
        "AND attrelid IN (to_regclass('mesh.client_message_dedupe'), to_regclass('mesh.topic_message'), "
        "to_regclass('mesh.message_queue'))"
    )
    return connection.execute(statement).fetchone() == (1 + len(MESSAGE_TABLES),)


def migrate(connection: psycopg.Connection[Any]) -> None:
    """Bring a database to v6, all of it or nothing. Raises psycopg.Error."""
    with connection.transaction():
        for statement in migration():
            connection.execute(statement)


def provision(connection: psycopg.Connection[Any]) -> None:
    """Make the tables of v6 in an empty database, with enforcement switched on. Raises psycopg.Error."""
    with connection.transaction():
        for statement in (*before_v6(), *migration()):
            connection.execute(statement)
        connection.execute("INSERT INTO mesh.setting VALUES (%s, 'on')", (ENFORCED,))


def unprovision(connection: psycopg.Connection[Any]) -> None:
    """Take them away with all that they hold. Raises psycopg.Error."""
    connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")


def take_back(connection: psycopg.Connection[Any]) -> None:
    """Make of an empty v6 database what it was before the migration. Raises psycopg.Error."""
    with connection.transaction():
        connection.execute("DELETE FROM mesh.setting WHERE name = %s", (ENFORCED,))
        connection.execute("DROP TABLE mesh.client_message_dedupe")
        for table in MESSAGE_TABLES:
            connection.execute(f"ALTER TABLE mesh.{table} DROP COLUMN client_message_id")
