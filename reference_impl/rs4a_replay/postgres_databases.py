"""One database for each session: a clone of the provisioned template, shared by every worker on one workdir."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors, sql

from reference_impl.postgres import connect, describe, with_database
from reference_impl.session import OpenError, OpenRequest, StateWanted, SurfaceWanted

# Standard name of the database that is there to connect to while others are made and dropped.
_MAINTENANCE = "postgres"
# PostgreSQL's own empty template, for a session without a surface.
_EMPTY = "template0"


def session_database(template: str, workdir: Path) -> str:
    """The session database's name: the same for every worker on one workdir."""
    return f"{template}_{hashlib.sha256(str(workdir.resolve()).encode()).hexdigest()[:16]}"


class SessionDatabases:
    """Makes session databases and drops those that this process made and whose workdir is gone."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], Path] = {}

    def provide(self, request: OpenRequest, *, dsn: str, template: str) -> str:
        """The session's database, cloned if `fresh` is wanted. Raises OpenError."""
        name = session_database(template, request.workdir)
        if request.state is StateWanted.FRESH:
            self.sweep()
            source = template if request.surface is SurfaceWanted.READY else _EMPTY
            self._clone(dsn, name, source, request.workdir)
        return name

    def _clone(self, dsn: str, name: str, source: str, workdir: Path) -> None:
        maintenance = with_database(dsn, _MAINTENANCE)
        try:
            with connect(maintenance) as connection:
                drop_database(connection, name)
                connection.execute(
                    sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(source))
                )
                connection.execute(
                    sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(name), sql.Literal(str(workdir)))
                )
        except errors.InvalidCatalogName as error:
            raise OpenError(
                f"config dsn: expected a provisioned template called {source!r} on the server, found none; run "
                "`python -m reference_impl launch` and pass the config that it prints"
            ) from error
        except psycopg.Error as error:
            raise OpenError(f"config dsn: cannot clone the template on {describe(maintenance)}: {error}") from error
        self._made[(maintenance, name)] = workdir

    def sweep(self) -> None:
        """Drop what this process made and nobody needs any more. Never raises: the launcher sweeps as well."""
        for (maintenance, name), workdir in list(self._made.items()):
            if not workdir.exists():
                del self._made[(maintenance, name)]
                with contextlib.suppress(psycopg.Error), connect(maintenance) as connection:
                    drop_database(connection, name)


def drop_database(connection: psycopg.Connection[Any], name: str) -> None:
    """Drop a database if it is there, with whoever is still connected to it."""
    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def orphans(connection: psycopg.Connection[Any], template: str) -> Iterable[str]:
    """Session databases of a template whose workdir is gone."""
    found = connection.execute(
        "SELECT datname, shobj_description(oid, 'pg_database') FROM pg_database WHERE starts_with(datname, %s)",
        (template + "_",),
    ).fetchall()
    return [name for name, workdir in found if workdir is not None and not Path(workdir).exists()]


def drop_all(connection: psycopg.Connection[Any], template: str) -> None:
    """Drop a template and every session database cloned from it."""
    found = connection.execute(
        "SELECT datname FROM pg_database WHERE starts_with(datname, %s) OR datname = %s", (template + "_", template)
    ).fetchall()
    for (name,) in found:
        drop_database(connection, name)
