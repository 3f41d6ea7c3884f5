"""The launcher of this contract: a template database with the tables of v6, on an embedded server or the user's.

Confined stores are a cluster of files, which sessions copy into their workdirs.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.reference_impl.mesh_delivery.broker_schema import BrokerSchema, provision, unprovision
from holdfast.reference_impl.mesh_delivery.factory import REFERENCE, Factory
from holdfast.reference_impl.planting import planted
from holdfast.reference_impl.postgres import connect, with_database
from holdfast.reference_impl.postgres_databases import EMPTY, MAINTENANCE, clone
from holdfast.reference_impl.postgres_pool import TemplatePool
from holdfast.servers.lines import Ready, Stores
from holdfast.servers.postgres.confined import make_template as make_cluster
from holdfast.servers.postgres.embedded import EmbeddedServer
from holdfast.servers.serving import FolderTemplate, Launched, Nothing

# What `store` is where no session needs a broker.
NO_STORE = "none"


@dataclass(frozen=True, slots=True)
class OnPostgres:
    """Implements `serving.Launched` on PostgreSQL, embedded or not."""

    dsn: str
    pool: TemplatePool
    server: EmbeddedServer | None

    @property
    def ready(self) -> Ready:
        """See `serving.Launched`."""
        if self.server is None:
            return Ready({"dsn": self.dsn})
        return Ready({"dsn": self.dsn}, (self.server.pid,), (str(self.server.folder),))

    def sweep(self) -> None:
        """See `serving.Launched`."""
        self.pool.sweep()

    def stop(self) -> None:
        """See `serving.Launched`."""
        if self.server is not None:
            self.pool.close()
            self.server.stop()
        else:
            self.pool.drop()


def make_template(server_dsn: str, factory: Factory) -> tuple[str, TemplatePool]:
    """A provisioned template database, and the pool of its copies. Raises psycopg.Error."""
    maintenance = make_conninfo(server_dsn, dbname=conninfo_to_dict(server_dsn).get("dbname") or MAINTENANCE)
    name = f"holdfast_mesh_{secrets.token_hex(4)}"
    dsn = with_database(maintenance, name)

    pool = TemplatePool(maintenance, name, provision=lambda into: _provide(into, factory), unprovision=unprovision)
    try:
        with connect(maintenance) as connection:
            clone(connection, name, EMPTY)
        _provide(dsn, factory)
    except BaseException:
        pool.drop()
        raise
    return dsn, pool


def _provide(dsn: str, factory: Factory) -> None:
    with connect(dsn) as connection:
        provision(connection, (factory.broker_schema or BrokerSchema)())


def launch(
    config: Mapping[str, str], *, parent: Path, stores: Stores = Stores.ANYWHERE, mutant: str | None
) -> Launched:
    """Provision on the server of `dsn`, left as it was, else embedded or as files; nothing where `store` is none."""
    if config.get("store") == NO_STORE:
        return Nothing()
    factory: Factory = planted(REFERENCE, mutant)
    if "dsn" in config:
        return OnPostgres(*make_template(config["dsn"], factory), None)
    if stores is Stores.CONFINED:
        folder = make_cluster(parent, lambda dsn: _provide(dsn, factory))
        return FolderTemplate(folder, {"cluster": str(folder)})
    server = EmbeddedServer(parent=parent)
    try:
        return OnPostgres(*make_template(server.dsn(MAINTENANCE), factory), server)
    except BaseException:
        server.stop()
        raise
