"""Opens sessions on PostgreSQL: on a server in the workdir, or on a database of a launched server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.postgres import connect, with_database
from holdfast.reference_impl.postgres_databases import SessionDatabases
from holdfast.reference_impl.rs4a_replay.admission import Ports
from holdfast.reference_impl.rs4a_replay.opening import LAUNCH_ADVICE, Opened
from holdfast.reference_impl.rs4a_replay.postgres_failpoints import PostgresFailpoints
from holdfast.reference_impl.rs4a_replay.postgres_operator import PostgresOperator
from holdfast.reference_impl.rs4a_replay.postgres_provision import unprovision_postgres
from holdfast.reference_impl.rs4a_replay.postgres_store import PostgresAudit, PostgresStore
from holdfast.reference_impl.rs4a_replay.reserve import Reserving
from holdfast.reference_impl.rs4a_replay.settings import Settings
from holdfast.reference_impl.rs4a_replay.surface import SurfaceJudge
from holdfast.reference_impl.rs4a_replay.terms import CONTRACT
from holdfast.reference_impl.session import OpenError, OpenRequest, StateWanted, SurfaceWanted
from holdfast.servers.errors import ServerError
from holdfast.servers.postgres.confined import ConfinedServer


@dataclass(frozen=True, slots=True)
class Opening:
    """Implements `opening.Opening`."""

    databases: SessionDatabases = field(default_factory=SessionDatabases)

    def open(self, request: OpenRequest, settings: Settings, patience: Patience) -> Opened:
        """See `opening.Opening`."""
        opened = self._confined if "cluster" in request.config else self._cloned
        return opened(request, settings, patience)

    def shut_down(self) -> None:
        """See `opening.Opening`."""
        self.databases.sweep()

    def _cloned(self, request: OpenRequest, settings: Settings, patience: Patience) -> Opened:
        dsn, writer_dsn = (dsn_of(request.config, name) for name in ("dsn", "writer_dsn"))
        template = conninfo_to_dict(dsn).get("dbname")
        if not template:
            raise OpenError(f"config dsn: expected the DSN of a provisioned template database; {LAUNCH_ADVICE}")
        database = self.databases.provide(request, dsn=dsn, template=str(template))
        store = self.connected(
            request, settings, patience, with_database(dsn, database), with_database(writer_dsn, database)
        )
        # The launcher reports the server, with a DSN that may hold a password. No DSN is repeated here.
        return replace(store, place={"database": database})

    def connected(
        self, request: OpenRequest, settings: Settings, patience: Patience, admin_dsn: str, writer_dsn: str
    ) -> Opened:
        """The store behind two DSNs: one of its operator, one of its restricted writer."""
        store = PostgresStore(writer_dsn, settings, SurfaceJudge(settings.relations), Reserving(patience))
        operator = PostgresOperator(
            admin_dsn=admin_dsn,
            writer_dsn=writer_dsn,
            writer=str(conninfo_to_dict(writer_dsn).get("user", "")),
            expected=request.surface,
            patience=patience,
        )
        return Opened(Ports(store, PostgresAudit(writer_dsn, settings, patience)), operator, PostgresFailpoints)

    def _confined(self, request: OpenRequest, settings: Settings, patience: Patience) -> Opened:
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
        store = self.connected(request, settings, patience, server.dsn(), server.dsn(user=writer))
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
