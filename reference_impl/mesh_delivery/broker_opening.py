"""Opens the broker of a session: a database of its own on the launched server, made when it is first needed.

Most sessions of this contract ask for fingerprints alone, so no database is made for them. With a `cluster` in its
config the session has a server of its own, whose files lie in the workdir.
"""

from __future__ import annotations

import fcntl
from dataclasses import dataclass, field, replace
from functools import partial

import psycopg

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
from holdfast.reference_impl.postgres_databases import SessionDatabases, confined, dsn_of
from holdfast.reference_impl.session import OpenError, OpenRequest, StateWanted
from holdfast.servers.postgres.confined import DATABASE, ConfinedServer


@dataclass(frozen=True, slots=True)
class Opening:
    """The brokers of one adapter."""

    databases: SessionDatabases = field(default_factory=SessionDatabases)

    def open(self, request: OpenRequest, settings: Settings) -> BrokerService:
        """The broker of a session. Raises OpenError."""
        if "cluster" in request.config:
            server = confined(request, request.workdir / "broker", partial(_begin, settings))
            return self._on(request, settings, server.dsn(), DATABASE, server)
        dsn = dsn_of(request.config, "dsn")
        database = self._database(request, settings, dsn)
        return self._on(request, settings, with_database(dsn, database), database)

    def _on(
        self, request: OpenRequest, settings: Settings, dsn: str, database: str, server: ConfinedServer | None = None
    ) -> BrokerService:
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

    def _database(self, request: OpenRequest, settings: Settings, dsn: str) -> str:
        """The session's database. The first worker that needs it makes it, whichever that is."""
        folder = request.workdir / CONTRACT
        folder.mkdir(exist_ok=True)
        made = folder / "database"
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = StateWanted.EXISTING if made.exists() else StateWanted.FRESH
            database = self.databases.provide(replace(request, state=state), dsn)
            if state is StateWanted.FRESH:
                try:
                    _begin(settings, with_database(dsn, database))
                except psycopg.Error as error:
                    raise OpenError(f"the database of the session cannot be prepared: {error}") from error
                made.touch()
        return database

    def shut_down(self) -> None:
        """The adapter ends: drop databases of sessions that are over. Never raises."""
        self.databases.sweep()


def _begin(settings: Settings, dsn: str) -> None:
    """Give a fresh database the schema that the session begins with. Raises psycopg.Error."""
    if settings.schema is StartingSchema.BEFORE_V6:
        with connect(dsn) as connection:
            take_back(connection)
