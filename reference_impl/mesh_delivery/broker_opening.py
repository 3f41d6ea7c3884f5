"""Opens the broker of a session: a database of its own on the launched server, made when it is first needed.

Most sessions of this contract ask for fingerprints alone, so no database is made for them. With a `cluster` in its
config the session has a server of its own, whose files lie in the workdir.
"""

from __future__ import annotations

import fcntl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from holdfast.reference_impl.mesh_delivery.broker import Broker
from holdfast.reference_impl.mesh_delivery.broker_admin import Administrator
from holdfast.reference_impl.mesh_delivery.broker_jobs import Jobs
from holdfast.reference_impl.mesh_delivery.broker_schema import take_back
from holdfast.reference_impl.mesh_delivery.broker_service import BrokerService
from holdfast.reference_impl.mesh_delivery.broker_store import BrokerStore
from holdfast.reference_impl.mesh_delivery.counters import Counters
from holdfast.reference_impl.mesh_delivery.failpoints import Failpoints
from holdfast.reference_impl.mesh_delivery.fingerprint import fingerprints
from holdfast.reference_impl.mesh_delivery.terms import CONTRACT, Settings, StartingSchema
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.postgres import connect, with_database
from holdfast.reference_impl.postgres_databases import SessionDatabases
from holdfast.reference_impl.session import OpenError, OpenRequest, StateWanted
from holdfast.servers.errors import ServerError
from holdfast.servers.postgres.confined import DATABASE, ConfinedServer

_ADVICE = "run `python -m holdfast.reference_impl launch` and pass the config that it prints"


@dataclass(frozen=True, slots=True)
class Opening:
    """The brokers of one adapter."""

    databases: SessionDatabases = field(default_factory=SessionDatabases)

    def open(self, request: OpenRequest, settings: Settings) -> BrokerService:
        """The broker of a session. Raises OpenError."""
        server = self._confined(request, settings) if "cluster" in request.config else None
        try:
            return self._on(request, settings, server)
        except BaseException:
            if server is not None:
                server.close()
            raise

    def _on(self, request: OpenRequest, settings: Settings, server: ConfinedServer | None) -> BrokerService:
        if server is None:
            dsn = _dsn_of(request.config)
            database = self._database(request, settings, dsn)
            dsn = with_database(dsn, database)
        else:
            dsn, database = server.dsn(), DATABASE
        patience, counters = Patience(), Counters()
        store = BrokerStore(dsn, patience)
        jobs = Jobs(settings, store, counters)
        failpoints = Failpoints(request.workdir, patience)
        failpoints.watch(store, jobs)
        return BrokerService(
            broker=Broker(settings, fingerprints(), store, counters, request.now),
            jobs=jobs,
            administrator=Administrator(dsn, patience),
            failpoints=failpoints,
            database=database,
            patience=patience,
            server=server,
        )

    def _confined(self, request: OpenRequest, settings: Settings) -> ConfinedServer:
        """A server on the files in the workdir; a fresh session makes them. Raises OpenError."""
        server = ConfinedServer(request.workdir / "broker", Path(request.config["cluster"]))
        try:
            server.open_fresh() if request.state is StateWanted.FRESH else server.open_existing()
            if request.state is StateWanted.FRESH:
                _begin(settings, server.dsn())
        except (ServerError, OSError) as error:
            server.close()
            raise OpenError(f"the database in the workdir cannot be opened: {error}") from error
        except OpenError:
            server.close()
            raise
        return server

    def _database(self, request: OpenRequest, settings: Settings, dsn: str) -> str:
        """The session's database. The first worker that needs it makes it, whichever that is."""
        folder = request.workdir / CONTRACT
        folder.mkdir(exist_ok=True)
        made = folder / "database"
        template = str(conninfo_to_dict(dsn).get("dbname"))
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = StateWanted.EXISTING if made.exists() else StateWanted.FRESH
            database = self.databases.provide(replace(request, state=state), dsn=dsn, template=template)
            if state is StateWanted.FRESH:
                _begin(settings, with_database(dsn, database))
                made.touch()
        return database

    def shut_down(self) -> None:
        """The adapter ends: drop databases of sessions that are over. Never raises."""
        self.databases.sweep()


def _begin(settings: Settings, dsn: str) -> None:
    """Give a fresh database the schema that the session begins with. Raises OpenError."""
    if settings.schema is StartingSchema.BEFORE_V6:
        try:
            with connect(dsn) as connection:
                take_back(connection)
        except psycopg.Error as error:
            raise OpenError(f"the database of the session cannot be prepared: {error}") from error


def _dsn_of(config: Mapping[str, str]) -> str:
    dsn = config.get("dsn")
    try:
        if dsn and conninfo_to_dict(dsn).get("dbname"):
            return dsn
    except psycopg.ProgrammingError:
        # libpq's message would quote the DSN, password and all.
        raise OpenError("config dsn: not a DSN that libpq can read; expected postgresql://… or key=value") from None
    raise OpenError(f"config dsn: expected the DSN of a provisioned template database; {_ADVICE}")
