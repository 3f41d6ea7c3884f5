"""A provisioned template database whose copies are given to sessions, on a server of the user or an embedded one."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.reference_impl.postgres import Connection, Link, connect, with_database
from holdfast.reference_impl.postgres_databases import (
    EMPTY,
    MAINTENANCE,
    clone,
    databases,
    drop_database,
    note_workdir,
    rename,
)
from holdfast.reference_impl.postgres_names import pooled
from holdfast.servers.postgres.embedded import EmbeddedServer
from holdfast.servers.serving import Launched, Ready

# Enough for the sessions that begin while used databases are made ready again.
_SPARE = 3
# Beyond this, a used database is dropped instead of kept: each takes 8 MB.
_MOST = 12
# Kinds of objects that a surface does not have. A used database that contains one is dropped.
_LEFTOVERS = """
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_'
"""


class TemplatePool:
    """Session databases of one template.

    `unprovision` takes away what a session left in its database, and `provision` makes it anew behind a DSN.
    """

    def __init__(
        self,
        maintenance_dsn: str,
        template: str,
        *,
        provision: Callable[[str], object],
        unprovision: Callable[[psycopg.Connection[Any]], object],
    ) -> None:
        self._dsn = maintenance_dsn
        self._link = Link(maintenance_dsn)
        self.template = template
        self._provision, self._unprovision = provision, unprovision

    def sweep(self) -> None:
        """One round: make used databases ready again, and keep some spare. Never raises."""
        try:
            connection = self._link.connection()
            known = dict(databases(connection, self.template + "_"))
            for name, workdir in known.items():
                if workdir is not None and not Path(workdir).exists():
                    self._recycle(connection, name, known)
            spare = sum(1 for name, _ in databases(connection, pooled(self.template)))
            if spare < _SPARE:
                self._add(connection)
        except psycopg.Error:
            self._link.drop()

    def _add(self, connection: psycopg.Connection[Any]) -> None:
        clone(connection, self._new_name(), self.template)
        # A crash from now on must not replay the copying of whole databases; operations wait for the recovery.
        with contextlib.suppress(errors.InsufficientPrivilege):
            connection.execute("CHECKPOINT")

    def _new_name(self) -> str:
        return pooled(self.template) + secrets.token_hex(6)

    def _recycle(self, connection: psycopg.Connection[Any], name: str, known: Mapping[str, object]) -> None:
        """The same statements that provisioned the template provision it again; what does not fit is dropped."""
        if len(known) > _MOST or not self._is_clean_again(name):
            drop_database(connection, name)
            return
        connection.execute(sql.SQL("GRANT CONNECT, TEMPORARY ON DATABASE {} TO PUBLIC").format(sql.Identifier(name)))
        note_workdir(connection, name, None)
        rename(connection, name, self._new_name())

    def _is_clean_again(self, name: str) -> bool:
        dsn = with_database(self._dsn, name)
        try:
            with connect(dsn) as inside:
                inside.execute(
                    "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
                self._unprovision(inside)
                left: Any = inside.execute(_LEFTOVERS).fetchone()
            if left[0]:
                return False
            self._provision(dsn)
        except Exception:  # after any error with a used database, dropping it is right
            return False
        return True

    def close(self) -> None:
        """Give back the connection. Never raises."""
        self._link.drop()

    def drop(self) -> None:
        """Drop the template and every database cloned from it. Never raises."""
        with contextlib.suppress(psycopg.Error):
            connection = self._link.connection()
            for name, _ in databases(connection, self.template):
                drop_database(connection, name)
        self._link.drop()


def maintenance_dsn(server_dsn: str) -> str:
    """The database of a server in which others are made: the one that its DSN names, or the usual one."""
    return make_conninfo(server_dsn, dbname=conninfo_to_dict(server_dsn).get("dbname") or MAINTENANCE)


def make_template(
    server_dsn: str,
    prefix: str,
    *,
    provision: Callable[[str], object],
    unprovision: Callable[[Connection], object],
) -> tuple[str, TemplatePool]:
    """The DSN of a new database in which `provision` has made what there is to make, and the pool of its copies.

    Raises psycopg.Error, and what `provision` raises.
    """
    maintenance, name = maintenance_dsn(server_dsn), f"{prefix}_{secrets.token_hex(4)}"
    dsn = with_database(maintenance, name)
    pool = TemplatePool(maintenance, name, provision=provision, unprovision=unprovision)
    try:
        with connect(maintenance) as connection:
            clone(connection, name, EMPTY)
        provision(dsn)
    except BaseException:
        pool.drop()
        raise
    return dsn, pool


@dataclass(frozen=True, slots=True)
class Template:
    """A template on a server that is there already: what sessions are opened with, and how all of it goes."""

    config: Mapping[str, str]
    pool: TemplatePool
    drop: Callable[[], None]
    surface: Mapping[str, Any] | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True, slots=True)
class OnPostgres(Launched):
    """A database on PostgreSQL, embedded or not."""

    template: Template
    server: EmbeddedServer | None

    @property
    def ready(self) -> Ready:
        """See `serving.Launched`."""
        config, surface = self.template.config, self.template.surface
        if self.server is None:
            return Ready(config, surface=surface)
        return Ready(config, (self.server.pid,), (str(self.server.folder),), surface)

    def sweep(self) -> None:
        """See `serving.Launched`."""
        self.template.pool.sweep()

    def stop(self) -> None:
        """See `serving.Launched`."""
        if self.server is not None:
            self.template.pool.close()
            self.server.stop()
        else:
            self.template.drop()


def launch_on(dsn: str | None, make: Callable[[str], Template], *, parent: Path) -> OnPostgres:
    """Make the template on the server of the user's DSN, or on an embedded one under `parent`."""
    if dsn is not None:
        return OnPostgres(make(dsn), None)
    server = EmbeddedServer(parent=parent)
    try:
        return OnPostgres(make(server.dsn(MAINTENANCE)), server)
    except BaseException:
        server.stop()
        raise
