"""Opens sessions on PostgreSQL: on a server in the workdir, a database of a launched one, or what the user names.

Of what the user names, the proof of its fitness is read first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.postgres import connect, describe, with_database
from holdfast.reference_impl.postgres_databases import SessionDatabases
from holdfast.reference_impl.rs4a_replay.opening import LAUNCH_ADVICE, Opened, Reserving, Use
from holdfast.reference_impl.rs4a_replay.postgres_failpoints import PostgresFailpoints
from holdfast.reference_impl.rs4a_replay.postgres_operator import PostgresOperator
from holdfast.reference_impl.rs4a_replay.postgres_provision import unprovision_postgres
from holdfast.reference_impl.rs4a_replay.postgres_store import PostgresAudit, PostgresStore
from holdfast.reference_impl.rs4a_replay.settings import LABORATORY, Settings
from holdfast.reference_impl.rs4a_replay.terms import CONTRACT
from holdfast.reference_impl.session import OpenError, OpenRequest, StateWanted, SurfaceWanted
from holdfast.servers.errors import ServerError
from holdfast.servers.postgres.confined import ConfinedServer
from holdfast.specs import kept_terms

_DATABASES = SessionDatabases()


def open_store(request: OpenRequest, settings: Settings, patience: Patience) -> Opened:
    """The store of one session. Raises OpenError."""
    if "cluster" in request.config:
        return _confined(request, settings, patience)
    opened = _cloned if request.config.get("laboratory") == LABORATORY else _live
    return opened(request, settings, patience)


def shut_down() -> None:
    """Remove the databases that sessions have left. Never raises."""
    _DATABASES.sweep()


def _cloned(request: OpenRequest, settings: Settings, patience: Patience) -> Opened:
    dsn, writer_dsn = (dsn_of(request.config, name) for name in ("dsn", "writer_dsn"))
    template = conninfo_to_dict(dsn).get("dbname")
    if not template:
        raise OpenError(f"config dsn: expected the DSN of a provisioned template database; {LAUNCH_ADVICE}")
    database = _DATABASES.provide(request, dsn=dsn, template=str(template))
    store = _connected(request, settings, patience, with_database(dsn, database), with_database(writer_dsn, database))
    # The launcher reports the server, with a DSN that may hold a password. No DSN is repeated here.
    return replace(store, place={"database": database})


def _live(request: OpenRequest, settings: Settings, patience: Patience) -> Opened:
    """A surface that the user names: used unchanged, and only with a proof that it is fit."""
    dsn = dsn_of(request.config, "writer_dsn")
    if request.state is StateWanted.FRESH:
        raise OpenError(
            "state fresh: a live surface is never made anew; open it as existing, or let "
            "`python -m reference_impl launch` provision a throw-away one and pass the config that it prints"
        )
    # Only now: no other session needs it.
    from holdfast.reference_impl.rs4a_replay.fitness import Claim, admit

    config, writer = request.config, str(conninfo_to_dict(dsn).get("user", ""))
    try:
        with connect(dsn) as connection:
            admit(Claim(config.get("fitness"), writer, config.get("surface")), kept_terms(CONTRACT), connection)
    except psycopg.Error as error:
        # The text of the error may hold the password of the DSN.
        raise OpenError(f"config writer_dsn: {describe(dsn)} cannot be reached: {type(error).__name__}") from None
    return replace(_connected(request, settings, patience, dsn, dsn), use=Use.LIVE)


def _connected(request: OpenRequest, settings: Settings, patience: Patience, admin_dsn: str, writer_dsn: str) -> Opened:
    """The store behind two DSNs: one of its operator, one of its restricted writer."""
    operator = PostgresOperator(
        admin_dsn=admin_dsn,
        writer_dsn=writer_dsn,
        writer=str(conninfo_to_dict(writer_dsn).get("user", "")),
        expected=request.surface,
        patience=patience,
    )
    store = PostgresStore(writer_dsn, settings, Reserving(patience))
    return Opened(store, PostgresAudit(writer_dsn, settings, patience), operator, PostgresFailpoints)


def _confined(request: OpenRequest, settings: Settings, patience: Patience) -> Opened:
    template, writer = request.config["cluster"], request.config.get("writer")
    if not writer:
        raise OpenError(f"config writer: expected the restricted role of the cluster, got nothing; {LAUNCH_ADVICE}")
    server = ConfinedServer(request.workdir / CONTRACT, Path(template))
    try:
        server.open_fresh() if request.state is StateWanted.FRESH else server.open_existing()
        if (request.surface, request.state) == (SurfaceWanted.ABSENT, StateWanted.FRESH):
            with connect(server.dsn()) as connection:
                unprovision_postgres(connection)
    except (ServerError, OSError, psycopg.Error) as error:
        server.close()
        raise OpenError(f"the database in the workdir cannot be opened: {error}") from error
    store = _connected(request, settings, patience, server.dsn(), server.dsn(user=writer))
    return replace(store, server=server)


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
