"""Launchers of this contract: an embedded PostgreSQL, a template on a server of the user, or one of files.

The template of files is a PostgreSQL cluster or two SQLite databases; sessions copy it into their workdirs.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from holdfast.reference_impl import postgres_launch
from holdfast.reference_impl.postgres import connect
from holdfast.reference_impl.postgres_launch import Template, launch_on, maintenance_dsn
from holdfast.reference_impl.rs4a_replay.ddl import SCHEMA
from holdfast.reference_impl.rs4a_replay.postgres_provision import (
    ensure_writer,
    provision_postgres,
    unprovision_postgres,
)
from holdfast.reference_impl.rs4a_replay.provision import provision_sqlite
from holdfast.reference_impl.rs4a_replay.settings import LABORATORY, StoreKind, load_settings
from holdfast.reference_impl.rs4a_replay.terms import PARTS
from holdfast.servers.postgres.confined import make_template as make_cluster
from holdfast.servers.serving import FolderTemplate, Launched, Stores, folder_template

# The restricted role in a cluster that one session has for itself.
_CLUSTER_WRITER = "holdfast_writer"


def make_template(server_dsn: str, *, password: str | None) -> Template:
    """Provision a template database and a restricted writer role. Raises psycopg.Error or ProvisionError."""
    maintenance, writer = maintenance_dsn(server_dsn), f"holdfast_writer_{secrets.token_hex(4)}"
    relations = load_settings({}).relations

    def provision(into: str) -> object:
        return provision_postgres(into, relations, writer=writer)

    def drop_writer() -> None:
        with contextlib.suppress(psycopg.Error), connect(maintenance) as connection:
            connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(writer)))

    try:
        with connect(maintenance) as connection:
            ensure_writer(connection, writer, password=password)
        dsn, pool = postgres_launch.make_template(
            server_dsn, "holdfast_template", provision=provision, unprovision=unprovision_postgres
        )
    except BaseException:
        drop_writer()
        raise
    login = {"user": writer} if password is None else {"user": writer, "password": password}
    config = {
        "store": StoreKind.POSTGRES.value,
        "dsn": dsn,
        "writer_dsn": make_conninfo(dsn, **login),
        # Sessions get clones of the template, never the database that the DSN names.
        "laboratory": LABORATORY,
    }
    # Sessions say themselves which database on this server is theirs.
    surface = {"dsn": dsn, "disposable": True, "writer": writer}
    surface |= {part: f"{SCHEMA}.{name}" for part, name in PARTS.items()}

    def drop() -> None:
        pool.drop()
        drop_writer()

    return Template(config, pool, drop, surface)


def _cluster_template(parent: Path) -> FolderTemplate:
    relations = load_settings({}).relations

    def provision(dsn: str) -> None:
        with connect(dsn) as connection:
            ensure_writer(connection, _CLUSTER_WRITER, password=None)
        provision_postgres(dsn, relations, writer=_CLUSTER_WRITER)

    folder = make_cluster(parent, provision)
    config = {"store": StoreKind.POSTGRES.value, "cluster": str(folder), "writer": _CLUSTER_WRITER}
    return FolderTemplate(folder, config)


def launch(config: Mapping[str, str], *, parent: Path, stores: Stores = Stores.ANYWHERE) -> Launched:
    """Provision for the `store` of the config. With `dsn` on that server, left as it was; else embedded or as files.

    Confined stores are always files. A user who names a server with `dsn` gets the template on that server.
    """
    store, dsn = config.get("store", StoreKind.POSTGRES.value), config.get("dsn")
    if store not in {kind.value for kind in StoreKind}:
        kinds = ", ".join(kind.value for kind in StoreKind)
        raise ValueError(f"config store: expected one of {kinds}, got {store!r}")
    if StoreKind(store) is StoreKind.SQLITE:
        relations = load_settings({}).relations
        return folder_template(parent, lambda folder: provision_sqlite(folder, relations), store=StoreKind.SQLITE.value)
    if stores is Stores.CONFINED and dsn is None:
        return _cluster_template(parent)
    # Who can reach a server of the user is not known, so the writer gets a password there.
    password = None if dsn is None else secrets.token_urlsafe(24)
    return launch_on(dsn, lambda server: make_template(server, password=password), parent=parent)
