"""Makes the surface: a separate and explicit step, which the registrar never does (source sections 2, 6 and 7)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from holdfast.reference_impl.postgres import connect, describe
from holdfast.reference_impl.rs4a_replay.ddl import SCHEMA, PostgresDialect, SqliteDialect
from holdfast.specs import Relation


class ProvisionError(Exception):
    """The surface cannot be made; the text says what was found and what to do."""


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


def sqlite_paths(folder: Path) -> tuple[Path, Path]:
    """Where the surface and the audit lie in a folder: two files, because one transaction must not cover both."""
    return folder / "surface" / "registrar.sqlite3", folder / "audit" / "audit.sqlite3"


def provision_sqlite(
    folder: Path, relations: Mapping[str, Relation], *, dialect: SqliteDialect | None = None
) -> Sequence[str]:
    """Make the surface and its audit as two database files under `folder`.

    Returns what was made. Raises ProvisionError when either is there already.
    """
    dialect = dialect or SqliteDialect()
    made: list[str] = []
    paths = sqlite_paths(folder)
    for path in paths:
        if path.exists():
            raise ProvisionError(f"{path} exists already; a surface is never overwritten: use another folder")
    for path, wants_audit in zip(paths, (False, True), strict=True):
        chosen = {name: relation for name, relation in relations.items() if relation.audit is wants_audit}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise ProvisionError(f"cannot make {path}: {error}") from error
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            for statement in dialect.statements(chosen):
                connection.execute(statement)
            connection.execute("COMMIT")
        finally:
            connection.close()
        made += [f"file {path}", *(f"table {name}" for name in chosen)]
    return made
