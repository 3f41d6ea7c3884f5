"""Opens sessions on PostgreSQL: on a server in the workdir, a database of a launched one, or what the user names.

Of what the user names, the proof of its fitness is read first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import psycopg
from psycopg.conninfo import conninfo_to_dict

from holdfast.reference_impl.failpoints import AbortedError, wrap
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.postgres import Connection, connect, describe, with_database
from holdfast.reference_impl.postgres_databases import SessionDatabases, confined, dsn_of
from holdfast.reference_impl.postgres_pipeline import Step as Statement
from holdfast.reference_impl.rs4a_replay.failpoints import AFTER_ROWS, AnswerLostError, Failpoints, Point, Step
from holdfast.reference_impl.rs4a_replay.opening import Opened, Reserving, Use
from holdfast.reference_impl.rs4a_replay.postgres_operator import PostgresOperator
from holdfast.reference_impl.rs4a_replay.postgres_provision import unprovision_postgres
from holdfast.reference_impl.rs4a_replay.postgres_store import PostgresAudit, PostgresStore
from holdfast.reference_impl.rs4a_replay.settings import LABORATORY, Settings
from holdfast.reference_impl.rs4a_replay.store import CommitUncertainError, Insert, Store
from holdfast.reference_impl.rs4a_replay.terms import CONTRACT
from holdfast.reference_impl.session import LAUNCH_ADVICE, OpenError, OpenRequest, StateWanted, SurfaceWanted
from holdfast.servers.pace import scaled
from holdfast.specs import kept_terms

_POLL_S = 0.002
# How long a process that was killed may still be there.
_GONE_S = scaled(1.2)


class PostgresFailpoints(Failpoints):
    """The failpoints of one session on PostgreSQL."""

    def watch_store(self, store: Store) -> None:
        """See `Failpoints`."""
        wrap(store, "insert_all", self._insert)
        wrap(store, "send_commit", self._commit)

    def _reach_over(self, point: Point, connection: Connection) -> None:
        try:
            self.reach(point, cut=partial(_cut_socket, connection), kill_backend=partial(_kill_backend, connection))
        except AnswerLostError as error:
            connection.close()
            raise CommitUncertainError(str(error)) from error

    def _insert(self, insert_all: Step) -> Step:
        def wrapped(
            connection: Connection, begin: Sequence[Statement], inserts: Sequence[Insert], xids: set[int]
        ) -> None:
            if not self.armed:
                insert_all(connection, begin, inserts, xids)
                return
            try:
                self._reach_over(Point.BEFORE_CONSUME, connection)
                for each, point in zip(inserts, AFTER_ROWS[: len(inserts)], strict=True):
                    insert_all(connection, begin, [each], xids)
                    begin = ()
                    self._reach_over(point, connection)
                self._reach_over(Point.BEFORE_COMMIT, connection)
            except AbortedError as error:
                raise psycopg.OperationalError(str(error)) from error

        return wrapped

    def _commit(self, send_commit: Step) -> Step:
        def wrapped(connection: Connection, read_back: object) -> object:
            replies = send_commit(connection, read_back)
            with contextlib.suppress(AbortedError):
                self._reach_over(Point.AFTER_COMMIT, connection)
            return replies

        return wrapped


def _cut_socket(connection: Connection) -> None:
    """Shut the socket down without a message, as a network failure does."""
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        end.shutdown(socket.SHUT_RDWR)


def _kill_backend(connection: Connection) -> None:
    """SIGKILL the server process behind this connection, and wait until it is gone.

    Raises AbortedError if it is not on this machine.
    """
    pid = connection.info.backend_pid
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as comm:
            local = comm.read().startswith("postgres")
    except OSError:
        local = False
    if not local:
        raise AbortedError(f"expected the backend {pid} on this machine; lose_backend needs the embedded server")
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + _GONE_S
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(_POLL_S)


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
    database = _DATABASES.provide(request, dsn)
    store = _connected(request, settings, patience, with_database(dsn, database), with_database(writer_dsn, database))
    # The launcher reports the server, with a DSN that may hold a password. No DSN is repeated here.
    return replace(store, place={"database": database})


def _live(request: OpenRequest, settings: Settings, patience: Patience) -> Opened:
    """A surface that the user names: used unchanged, and only with a proof that it is fit."""
    dsn = dsn_of(request.config, "writer_dsn")
    if request.state is StateWanted.FRESH:
        raise OpenError(
            "state fresh: a live surface is never made anew; open it as existing, or, for a throw-away one, "
            f"{LAUNCH_ADVICE}"
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
    writer = request.config.get("writer")
    if not writer:
        raise OpenError(f"config writer: expected the restricted role of the cluster, got nothing; {LAUNCH_ADVICE}")

    def begin(dsn: str) -> None:
        if request.surface is SurfaceWanted.ABSENT:
            with connect(dsn) as connection:
                unprovision_postgres(connection)

    server = confined(request, request.workdir / CONTRACT, begin)
    store = _connected(request, settings, patience, server.dsn(), server.dsn(user=writer))
    return replace(store, server=server)
