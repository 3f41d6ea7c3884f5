"""How the adapter gets at this contract: opening sessions on either store."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.planting import planted
from holdfast.reference_impl.postgres import connect, describe, with_database
from holdfast.reference_impl.rs4a_replay.admission import Ports
from holdfast.reference_impl.rs4a_replay.factory import REFERENCE, Factory
from holdfast.reference_impl.rs4a_replay.failpoints import Failpoints
from holdfast.reference_impl.rs4a_replay.fitness import PARTS, Claim
from holdfast.reference_impl.rs4a_replay.operator import Operator
from holdfast.reference_impl.rs4a_replay.postgres_databases import SessionDatabases
from holdfast.reference_impl.rs4a_replay.postgres_operator import PostgresOperator
from holdfast.reference_impl.rs4a_replay.provision import sqlite_paths, unprovision_postgres
from holdfast.reference_impl.rs4a_replay.service import Parts, Use
from holdfast.reference_impl.rs4a_replay.settings import LABORATORY, Settings, StoreKind
from holdfast.reference_impl.rs4a_replay.sqlite_operator import SqliteOperator
from holdfast.reference_impl.rs4a_replay.terms import CONTRACT
from holdfast.reference_impl.session import OpenError, OpenRequest, Session, StateWanted, SurfaceWanted
from holdfast.reference_impl.whole import Whole
from holdfast.servers.errors import ServerError
from holdfast.servers.postgres.confined import ConfinedServer
from holdfast.specs import kept_terms

_LAUNCH = "run `python -m holdfast.reference_impl launch` and pass the config that it prints"


@dataclass(frozen=True, slots=True)
class _Store:
    """The stores of a session: for the registrar, for the operator, and the server if the session has its own."""

    ports: Ports
    operator: Operator
    server: ConfinedServer | None = None
    use: Use = Use.LABORATORY
    place: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Rs4aReplay(Whole):
    """Implements `session.Implementation`."""

    contract: ClassVar[str] = CONTRACT
    factory: Factory = REFERENCE
    databases: SessionDatabases = field(default_factory=SessionDatabases)

    def open(self, request: OpenRequest) -> Session:
        """See `session.Implementation`."""
        settings, patience = self.factory.settings(request.config), self.factory.patience()
        if settings.store is StoreKind.SQLITE:
            store = self._sqlite(request, settings, patience)
        elif "cluster" in request.config:
            store = self._confined(request, settings, patience)
        elif request.config.get("laboratory") != LABORATORY:
            store = self._live(request, settings, patience)
        else:
            store = self._postgres(request, settings, patience)
        if request.surface is SurfaceWanted.ABSENT:
            store = replace(store, ports=Ports(None, None))
        return self._service(request, settings, patience, store)

    def shut_down(self) -> None:
        """See `session.Implementation`."""
        self.databases.sweep()

    def _service(self, request: OpenRequest, settings: Settings, patience: Patience, store: _Store) -> Session:
        ports = store.ports
        make, methods = self.factory, kept_terms(CONTRACT).methods
        keys, verifier = make.keys(settings.keys), make.verifier()
        reader = make.reader(methods["register"].args, keys)
        failpoints = Failpoints(request.workdir, patience)
        if store.use is Use.LABORATORY:
            failpoints.watch(ports.store, verifier)
        parts = Parts(
            contract=kept_terms(CONTRACT),
            settings=settings,
            keys=keys,
            reader=reader,
            validator=make.validator(settings, reader, keys),
            registrar=make.registrar(settings, ports, verifier),
            authority=make.authority(settings, ports, keys, methods["issue_nonce"].args),
            custody=make.custody(settings, ports, methods["resolve_status"].args),
            ports=ports,
            operator=store.operator,
            failpoints=failpoints,
            patience=patience,
            server=store.server,
            use=store.use,
            place=store.place,
        )
        return make.service(parts, now=request.now)

    def _postgres(self, request: OpenRequest, settings: Settings, patience: Patience) -> _Store:
        dsn, writer_dsn = (_dsn(request.config, name) for name in ("dsn", "writer_dsn"))
        template = conninfo_to_dict(dsn).get("dbname")
        if not template:
            raise OpenError(f"config dsn: expected the DSN of a provisioned template database; {_LAUNCH}")
        database = self.databases.provide(request, dsn=dsn, template=str(template))
        store = self._connected(
            request, settings, patience, with_database(dsn, database), with_database(writer_dsn, database)
        )
        # The launcher reports the server, with a DSN that may hold a password. No DSN is repeated here.
        return replace(store, place={"database": database})

    def _connected(
        self, request: OpenRequest, settings: Settings, patience: Patience, admin_dsn: str, writer_dsn: str
    ) -> _Store:
        make = self.factory
        store = make.postgres_store(writer_dsn, settings, make.judge(settings.relations), patience)
        operator = PostgresOperator(
            admin_dsn=admin_dsn,
            writer_dsn=writer_dsn,
            writer=str(conninfo_to_dict(writer_dsn).get("user", "")),
            expected=request.surface,
            patience=patience,
        )
        return _Store(Ports(store, make.postgres_audit(writer_dsn, settings, patience)), operator)

    def _live(self, request: OpenRequest, settings: Settings, patience: Patience) -> _Store:
        """A surface that the user names: used unchanged, and only with a proof that it is fit."""
        dsn = _dsn(request.config, "writer_dsn")
        if request.state is StateWanted.FRESH:
            raise OpenError(
                "state fresh: a live surface is never made anew; open it as existing, or let "
                "`python -m reference_impl launch` provision a throw-away one and pass the config that it prints"
            )
        config, writer = request.config, str(conninfo_to_dict(dsn).get("user", ""))
        claim = Claim(config.get("fitness"), writer, config.get("surface"))
        try:
            with connect(dsn) as connection:
                self.factory.fitness().admit(claim, kept_terms(CONTRACT), connection)
        except psycopg.Error as error:
            # The text of the error may hold the password of the DSN.
            raise OpenError(f"config writer_dsn: {describe(dsn)} cannot be reached: {type(error).__name__}") from None
        return replace(self._connected(request, settings, patience, dsn, dsn), use=Use.LIVE)

    def _confined(self, request: OpenRequest, settings: Settings, patience: Patience) -> _Store:
        template, writer = request.config["cluster"], request.config.get("writer")
        if not writer:
            raise OpenError(f"config writer: expected the restricted role of the cluster, got nothing; {_LAUNCH}")
        server = self.factory.confined_server(request.workdir / CONTRACT, Path(template))
        try:
            server.open_fresh() if request.state is StateWanted.FRESH else server.open_existing()
            if (request.surface, request.state) == (SurfaceWanted.ABSENT, StateWanted.FRESH):
                with connect(server.dsn()) as connection:
                    unprovision_postgres(connection)
        except (ServerError, OSError, psycopg.Error) as error:
            server.close()
            raise OpenError(f"the database in the workdir cannot be opened: {error}") from error
        store = self._connected(request, settings, patience, server.dsn(), server.dsn(user=writer))
        return replace(store, server=server)

    def _sqlite(self, request: OpenRequest, settings: Settings, patience: Patience) -> _Store:
        make, folder = self.factory, request.workdir / CONTRACT
        surface, audit = sqlite_paths(folder)
        if request.state is StateWanted.FRESH:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            if request.surface is SurfaceWanted.READY:
                _copy_template(request.config, folder)
        store = make.sqlite_store(surface, settings, make.judge(settings.relations), patience)
        operator = SqliteOperator(folder, expected=request.surface, patience=patience)
        place = {"file": str(surface.relative_to(request.workdir)), "effect": PARTS["effect"], "nonce": PARTS["nonce"]}
        place["audit"] = f"{audit.relative_to(request.workdir)}:{PARTS['audit']}"
        return _Store(Ports(store, make.sqlite_audit(audit, settings, patience)), operator, place=place)


def _dsn(config: Mapping[str, str], name: str) -> str:
    text = config.get(name)
    if not text:
        raise OpenError(f"config {name}: expected a DSN, got nothing; {_LAUNCH}")
    try:
        conninfo_to_dict(text)
    except psycopg.ProgrammingError:
        # libpq's message would quote the DSN, password and all.
        raise OpenError(f"config {name}: not a DSN that libpq can read; expected postgresql://… or key=value") from None
    return text


def _copy_template(config: Mapping[str, str], folder: Path) -> None:
    template = config.get("template")
    if not template or not Path(template).is_dir():
        raise OpenError(f"config template: expected the folder of a provisioned template, got {template!r}; {_LAUNCH}")
    shutil.copytree(template, folder, dirs_exist_ok=True)


def implementation(*, mutant: str | None = None) -> Rs4aReplay:
    """The implementation, with a planted bug if one is named. Raises KeyError for an unknown mutant."""
    return Rs4aReplay(planted(REFERENCE, mutant))
