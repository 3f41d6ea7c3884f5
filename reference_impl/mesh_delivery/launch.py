"""The launcher of this contract: a template database with the tables of v6, on an embedded server or the user's.

Confined stores are a cluster of files, which sessions copy into their workdirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast.reference_impl import postgres_launch
from holdfast.reference_impl.mesh_delivery.broker_schema import provision, unprovision
from holdfast.reference_impl.mesh_delivery.terms import TEMPLATE
from holdfast.reference_impl.postgres import connect
from holdfast.reference_impl.postgres_launch import Template, launch_on
from holdfast.servers.postgres.confined import make_template as make_cluster
from holdfast.servers.serving import FolderTemplate, Launched, Stores

# What `store` is where no session needs a broker.
NO_STORE = "none"


def make_template(server_dsn: str) -> Template:
    """A provisioned template database, and the pool of its copies. Raises psycopg.Error."""
    dsn, pool = postgres_launch.make_template(server_dsn, "holdfast_mesh", provision=_provide, unprovision=unprovision)
    # Sessions say themselves which database on this server is theirs.
    surface = {"dsn": dsn, "disposable": True}
    return Template({"dsn": dsn, TEMPLATE: pool.template}, pool, pool.drop, surface)


def _provide(dsn: str) -> None:
    with connect(dsn) as connection:
        provision(connection)


def launch(
    config: Mapping[str, str],
    *,
    parent: Path,
    stores: Stores = Stores.ANYWHERE,
) -> Launched:
    """Provision on the server of `dsn`, left as it was, else embedded or as files; nothing where `store` is none."""
    if config.get("store") == NO_STORE:
        return Launched()
    if "dsn" not in config and stores is Stores.CONFINED:
        folder = make_cluster(parent, _provide)
        return FolderTemplate(folder, {"cluster": str(folder)})
    return launch_on(config.get("dsn"), make_template, parent=parent)
