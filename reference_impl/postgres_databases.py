"""One database for each session, shared by every worker on one workdir: taken from the launcher's pool, or cloned."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.postgres import Link, connect, describe, with_database
from holdfast.reference_impl.postgres_names import pooled, session_database
from holdfast.reference_impl.session import LAUNCH_ADVICE, OpenError, OpenRequest, StateWanted, SurfaceWanted
from holdfast.servers.errors import ServerError
from holdfast.servers.pace import scaled
from holdfast.servers.postgres.confined import ConfinedServer

# Standard name of the database that is there to connect to while others are made and dropped.
MAINTENANCE = "postgres"
# The kit grants `open` 30 s; making a database takes its time on a busy machine.
_OPEN_S = scaled(20.0)
# `open` has the time to wait for the recovery of a database; the operations after it have not.
_RECOVERY_S = scaled(8.0)
# PostgreSQL's own empty template, for a session without a surface.
EMPTY = "template0"


def clone(connection: psycopg.Connection[Any], name: str, source: str) -> None:
    """Make a database as a copy of another."""
    connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(source)))


def rename(connection: psycopg.Connection[Any], name: str, to: str) -> None:
    """Rename a database without connections."""
    connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(name), sql.Identifier(to)))


def note_workdir(connection: psycopg.Connection[Any], name: str, workdir: Path | None) -> None:
    """Record the workdir of a database, so that any process can find out when it is unused."""
    comment = sql.NULL if workdir is None else sql.Literal(str(workdir))
    connection.execute(sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(name), comment))


def drop_database(connection: psycopg.Connection[Any], name: str) -> None:
    """Drop a database if it is there, and close the connections to it."""
    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def databases(connection: psycopg.Connection[Any], prefix: str) -> Sequence[tuple[str, str | None]]:
    """Names that begin like that, each with the workdir it belongs to."""
    return connection.execute(
        "SELECT datname, shobj_description(oid, 'pg_database') FROM pg_database WHERE starts_with(datname, %s)",
        (prefix,),
    ).fetchall()


class SessionDatabases:
    """Provides session databases, and drops those that this process made and whose workdir is gone."""

    def __init__(self) -> None:
        self._links: dict[str, Link] = {}
        self._made: dict[tuple[str, str], Path] = {}
        self._patience = Patience(_OPEN_S)

    def provide(self, request: OpenRequest, dsn: str) -> str:
        """The session's database, a new clone of the one that the DSN names if `fresh` is wanted. Raises OpenError."""
        template = str(conninfo_to_dict(dsn).get("dbname") or "")
        if not template:
            raise OpenError(f"config dsn: expected the DSN of a provisioned template database; {LAUNCH_ADVICE}")
        name = session_database(template, request.workdir)
        if request.state is StateWanted.EXISTING:
            _await_recovery(with_database(dsn, name))
            return name
        maintenance = with_database(dsn, MAINTENANCE)
        link = self._links.setdefault(maintenance, Link(maintenance, patience=self._patience))
        self._patience.begin()
        source = template if request.surface is SurfaceWanted.READY else EMPTY
        try:
            try:
                self._provide(link, name, template, source)
            except psycopg.OperationalError:
                # The server may have restarted under this connection since the last session.
                link.drop()
                self._provide(link, name, template, source)
            note_workdir(link.connection(), name, request.workdir)
        except errors.InvalidCatalogName as error:
            raise OpenError(
                f"config dsn: expected a provisioned template called {source!r} on the server, found none; "
                f"{LAUNCH_ADVICE}"
            ) from error
        except psycopg.Error as error:
            raise OpenError(f"config dsn: cannot clone the template on {describe(maintenance)}: {error}") from error
        self._made[(maintenance, name)] = request.workdir
        return name

    def _provide(self, link: Link, name: str, template: str, source: str) -> None:
        connection = link.connection()
        if databases(connection, name):
            drop_database(connection, name)
        if source == template:
            for free, _ in databases(connection, pooled(template)):
                # Another worker may take the same one at the same moment; the first rename wins.
                with contextlib.suppress(errors.InvalidCatalogName, errors.ObjectInUse, errors.InternalError_):
                    rename(connection, free, name)
                    return
        clone(connection, name, source)

    def sweep(self) -> None:
        """Drop the unused databases that this process made. Never raises: the launcher sweeps as well."""
        self._patience.begin()
        for (maintenance, name), workdir in list(self._made.items()):
            if not workdir.exists():
                del self._made[(maintenance, name)]
                with contextlib.suppress(psycopg.Error):
                    drop_database(self._links[maintenance].connection(), name)
        for link in self._links.values():
            link.drop()


def dsn_of(config: Mapping[str, str], name: str) -> str:
    """The DSN of that name. Raises OpenError."""
    text = config.get(name)
    if not text:
        raise OpenError(f"config {name}: expected a DSN, got nothing; {LAUNCH_ADVICE}")
    try:
        conninfo_to_dict(text)
    except psycopg.ProgrammingError:
        # libpq's message would quote the DSN, password and all.
        raise OpenError(f"config {name}: not a DSN that libpq can read; expected postgresql://… or key=value") from None
    return text


def confined(request: OpenRequest, folder: Path, begin: Callable[[str], object]) -> ConfinedServer:
    """A server on files in the workdir, copies of the config's `cluster` if `fresh` is wanted. Raises OpenError.

    `begin` is called with the DSN of a fresh database.
    """
    server = ConfinedServer(folder, Path(request.config["cluster"]))
    try:
        server.open_fresh() if request.state is StateWanted.FRESH else server.open_existing()
        if request.state is StateWanted.FRESH:
            begin(server.dsn())
    except (ServerError, OSError, psycopg.Error) as error:
        server.close()
        raise OpenError(f"the database in the workdir cannot be opened: {error}") from error
    return server


def _await_recovery(dsn: str) -> None:
    """Wait for a server that restarts after a crash. If it does not return, the operations refuse."""
    with contextlib.suppress(psycopg.Error), connect(dsn, patience=Patience(_RECOVERY_S)):
        pass
