"""Makes the surface on PostgreSQL: a separate and explicit step, as in `provision`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import errors, sql

from holdfast.reference_impl.postgres import connect, describe
from holdfast.reference_impl.rs4a_replay.ddl import SCHEMA, PostgresDialect
from holdfast.reference_impl.rs4a_replay.provision import ProvisionError
from holdfast.specs import Relation


def provision_postgres(dsn: str, relations: Mapping[str, Relation], *, writer: str) -> Sequence[str]:
    """Make the surface in the database of `dsn`, and grant the role `writer` to read and append.

    Returns what was made, a line for each. The role must exist. One transaction: all or nothing. Raises
    ProvisionError when anything of the surface is there already: a surface is never overwritten.
    """
    try:
        with connect(dsn) as connection, connection.transaction():
            for statement in PostgresDialect().statements(relations):
                connection.execute(statement)
            grant(connection, relations, sql.Identifier(writer))
    except psycopg.Error as error:
        raise ProvisionError(
            f"cannot provision {describe(dsn)}, use a database that has no schema {SCHEMA}: {error}"
        ) from error
    return [f"schema {SCHEMA}", *(f"table {SCHEMA}.{name}" for name in relations), f"grants to {writer}"]


def grant(connection: psycopg.Connection[Any], relations: Mapping[str, Relation], writer: sql.Identifier) -> None:
    """The rights of the restricted writer: read and append only. Raises psycopg.Error."""
    tables = sql.SQL(", ").join(sql.Identifier(SCHEMA, name) for name in relations)
    for statement in (
        sql.SQL("REVOKE ALL ON SCHEMA {schema} FROM PUBLIC"),
        sql.SQL("GRANT USAGE ON SCHEMA {schema} TO {writer}"),
        sql.SQL("REVOKE ALL ON {tables} FROM PUBLIC"),
        sql.SQL("GRANT SELECT, INSERT ON {tables} TO {writer}"),
    ):
        connection.execute(statement.format(schema=sql.Identifier(SCHEMA), tables=tables, writer=writer))


def unprovision_postgres(connection: psycopg.Connection[Any]) -> None:
    """Remove the surface from a database that has one user only. Raises psycopg.Error."""
    connection.execute(f"DROP SCHEMA {SCHEMA} CASCADE")


def ensure_writer(connection: psycopg.Connection[Any], writer: str, *, password: str | None) -> None:
    """Make the restricted writer role unless it exists, with a password or without one. Raises psycopg.Error."""
    statement = sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT PASSWORD {}")
    with suppress(errors.DuplicateObject):
        connection.execute(statement.format(sql.Identifier(writer), sql.Literal(password)))
