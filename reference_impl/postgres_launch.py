"""A provisioned template database whose copies are given to sessions, on a server of the user or an embedded one."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.reference_impl.postgres import Connection, connect, with_database
from holdfast.reference_impl.postgres_databases import EMPTY, MAINTENANCE, clone
from holdfast.reference_impl.postgres_pool import TemplatePool
from holdfast.servers.postgres.embedded import EmbeddedServer
from holdfast.servers.serving import Launched, Ready


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
