"""Makes the surface on PostgreSQL: a separate and explicit step, as in `provision`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg import sql

from holdfast.reference_impl.postgres import connect, describe
from holdfast.reference_impl.rs4a_replay.ddl import SCHEMA, PostgresDialect
from holdfast.reference_impl.rs4a_replay.provision import ProvisionError
from holdfast.specs import Relation


def provision_postgres(
    dsn: str, relations: Mapping[str, Relation], *, writer: str, dialect: PostgresDialect | None = None
) -> Sequence[str]:
    """Make the surface in the database of `dsn`, and grant the role `writer` to read and append.

    Returns what was made, a line for each. The role must exist. One transaction: all or nothing. Raises
    ProvisionError when anything of the surface is there already.
    """
    dialect = dialect or PostgresDialect()
    try:
        with connect(dsn) as connection, connection.transaction():
            if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (SCHEMA,)).fetchone():
                raise ProvisionError(
                    f"the schema {SCHEMA!r} exists already in {describe(dsn)}; a surface is never overwritten: "
                    "use another database, or take the old one away yourself"
                )
            for statement in dialect.statements(relations):
                connection.execute(statement)
            for statement in dialect.grants(relations, writer=writer):
                connection.execute(statement)
    except psycopg.Error as error:
        raise ProvisionError(f"cannot provision {describe(dsn)}: {error}") from error
    return [f"schema {SCHEMA}", *(f"table {SCHEMA}.{name}" for name in relations), f"grants to {writer}"]


def unprovision_postgres(connection: psycopg.Connection[Any]) -> None:
    """Remove the surface from a database that has one user only. Raises psycopg.Error."""
    connection.execute("SET client_min_messages = warning")
    connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(SCHEMA)))


def ensure_writer(connection: psycopg.Connection[Any], writer: str, *, password: str | None) -> bool:
    """Make the restricted writer role unless it exists; whether it was made."""
    if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (writer,)).fetchone():
        return False
    statement = sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT").format(
        sql.Identifier(writer)
    )
    if password is not None:
        statement = sql.SQL("{} PASSWORD {}").format(statement, sql.Literal(password))
    connection.execute(statement)
    return True
