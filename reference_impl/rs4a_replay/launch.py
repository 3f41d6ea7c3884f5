"""Launchers of this contract: an embedded PostgreSQL, a template on a server of the user, or one of files.

The template of files is a PostgreSQL cluster or two SQLite databases; sessions copy it into their workdirs.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.reference_impl.planting import planted
from holdfast.reference_impl.postgres import connect, with_database
from holdfast.reference_impl.postgres_databases import EMPTY, MAINTENANCE, clone
from holdfast.reference_impl.postgres_pool import TemplatePool
from holdfast.reference_impl.rs4a_replay.ddl import SCHEMA
from holdfast.reference_impl.rs4a_replay.factory import REFERENCE, Factory
from holdfast.reference_impl.rs4a_replay.postgres_provision import (
    ensure_writer,
    provision_postgres,
    unprovision_postgres,
)
from holdfast.reference_impl.rs4a_replay.provision import provision_sqlite
from holdfast.reference_impl.rs4a_replay.settings import LABORATORY, StoreKind
from holdfast.reference_impl.rs4a_replay.terms import PARTS
from holdfast.servers.lines import Ready, Stores
from holdfast.servers.postgres.confined import make_template as make_cluster
from holdfast.servers.postgres.embedded import EmbeddedServer
from holdfast.servers.serving import FolderTemplate, Launched

# The restricted role in a cluster that one session has for itself.
_CLUSTER_WRITER = "holdfast_writer"


@dataclass(frozen=True, slots=True)
class PostgresTemplate:
    """A provisioned template database with its writer role and its clones, on a server that is there already."""

    dsn: str
    writer_dsn: str
    maintenance_dsn: str
    writer: str
    pool: TemplatePool

    def drop(self) -> None:
        """Drop the template, its session databases and the role. Never raises."""
        self.pool.drop()
        with contextlib.suppress(psycopg.Error), connect(self.maintenance_dsn) as connection:
            connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(self.writer)))


def make_template(server_dsn: str, factory: Factory, *, password: str | None) -> PostgresTemplate:
    """Provision a template database and a restricted writer role. Raises psycopg.Error or ProvisionError."""
    suffix = secrets.token_hex(4)
    name, writer = f"holdfast_template_{suffix}", f"holdfast_writer_{suffix}"
    maintenance = make_conninfo(server_dsn, dbname=conninfo_to_dict(server_dsn).get("dbname") or MAINTENANCE)
    dsn = with_database(maintenance, name)
    login = {"user": writer} if password is None else {"user": writer, "password": password}
    relations, dialect = factory.settings({}).relations, factory.postgres_dialect

    def provision(into: str) -> object:
        return provision_postgres(into, relations, writer=writer, dialect=dialect)

    pool = TemplatePool(maintenance, name, provision=provision, unprovision=unprovision_postgres)
    template = PostgresTemplate(dsn, make_conninfo(dsn, **login), maintenance, writer, pool)
    try:
        with connect(maintenance) as connection:
            ensure_writer(connection, writer, password=password)
            clone(connection, name, EMPTY)
        provision(dsn)
    except BaseException:
        template.drop()
        raise
    return template


@dataclass(frozen=True, slots=True)
class OnPostgres:
    """Implements `serving.Launched` on PostgreSQL, embedded or not."""

    template: PostgresTemplate
    server: EmbeddedServer | None

    @property
    def ready(self) -> Ready:
        """See `serving.Launched`."""
        config = {
            "store": StoreKind.POSTGRES.value,
            "dsn": self.template.dsn,
            "writer_dsn": self.template.writer_dsn,
            # Sessions get clones of the template, never the database that the DSN names.
            "laboratory": LABORATORY,
        }
        # Sessions say themselves which database on this server is theirs.
        surface = {
            "dsn": self.template.dsn,
            "disposable": True,
            "writer": self.template.writer,
            **{part: f"{SCHEMA}.{name}" for part, name in PARTS.items()},
        }
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


def _sqlite_template(parent: Path, factory: Factory) -> FolderTemplate:
    folder = Path(tempfile.mkdtemp(prefix="hf-sqlite-", dir=parent))
    try:
        provision_sqlite(folder, factory.settings({}).relations, dialect=factory.sqlite_dialect)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return FolderTemplate(folder, {"store": StoreKind.SQLITE.value, "template": str(folder)})


def _cluster_template(parent: Path, factory: Factory) -> FolderTemplate:
    relations, dialect = factory.settings({}).relations, factory.postgres_dialect

    def provision(dsn: str) -> None:
        with connect(dsn) as connection:
            ensure_writer(connection, _CLUSTER_WRITER, password=None)
        provision_postgres(dsn, relations, writer=_CLUSTER_WRITER, dialect=dialect)

    folder = make_cluster(parent, provision)
    config = {"store": StoreKind.POSTGRES.value, "cluster": str(folder), "writer": _CLUSTER_WRITER}
    return FolderTemplate(folder, config)


def launch(
    config: Mapping[str, str], *, parent: Path, stores: Stores = Stores.ANYWHERE, mutant: str | None
) -> Launched:
    """Provision for the `store` of the config. With `dsn` on that server, left as it was; else embedded or as files.

    Confined stores are always files. A user who names a server with `dsn` gets the template on that server.
    """
    factory: Factory = planted(REFERENCE, mutant)
    store, dsn = config.get("store", StoreKind.POSTGRES.value), config.get("dsn")
    if store not in {kind.value for kind in StoreKind}:
        kinds = ", ".join(kind.value for kind in StoreKind)
        raise ValueError(f"config store: expected one of {kinds}, got {store!r}")
    if StoreKind(store) is StoreKind.SQLITE:
        return _sqlite_template(parent, factory)
    if stores is Stores.CONFINED and dsn is None:
        return _cluster_template(parent, factory)
    if dsn is not None:
        return OnPostgres(make_template(dsn, factory, password=secrets.token_urlsafe(24)), None)
    server = EmbeddedServer(parent=parent)
    try:
        return OnPostgres(make_template(server.dsn("postgres"), factory, password=None), server)
    except BaseException:
        server.stop()
        raise
