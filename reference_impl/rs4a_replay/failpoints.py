"""The failpoints of the transaction of register and compensate, wrapped around named steps of a store."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sqlite3
import time
from collections.abc import Callable, Sequence
from enum import Enum, unique
from functools import partial
from typing import Any

import psycopg

from holdfast.reference_impl import failpoints
from holdfast.reference_impl.failpoints import AbortedError, wrap
from holdfast.reference_impl.postgres import RECOVERY_WAIT_S, Connection
from holdfast.reference_impl.rs4a_replay.postgres_store import PostgresStore
from holdfast.reference_impl.rs4a_replay.sqlite_store import SqliteStore
from holdfast.reference_impl.rs4a_replay.store import (
    CommitUncertainError,
    Consumption,
    Insert,
    RolledBackError,
    Row,
    Store,
)
from holdfast.reference_impl.rs4a_replay.verifier import Verifier

_Step = Callable[..., Any]
_POLL_S = 0.002


@unique
class Point(Enum):
    """Places of the transaction, in order. Before the first of them there is no transaction and no lock."""

    BEFORE_CONSUME = "before_consume"
    AFTER_NONCE_CONSUME = "after_nonce_consume"
    AFTER_REGISTRATION = "after_registration"
    BEFORE_COMMIT = "before_commit"
    AFTER_COMMIT = "after_commit"


@unique
class Fault(Enum):
    """What happens at an armed failpoint."""

    HOLD = "hold"
    ABORT = "abort"
    LOSE_BACKEND = "lose_backend"
    LOSE_ANSWER = "lose_answer"


_AFTER_ROWS = (Point.AFTER_NONCE_CONSUME, Point.AFTER_REGISTRATION)


class AnswerLostError(Exception):
    """The answer to the commit is lost here."""


class Failpoints(failpoints.Failpoints[Point, Fault]):
    """The failpoints of one session, and the rejection by its verifier."""

    # Whether the verifier rejects the next registration (`fail_verify`).
    rejecting = False

    def reach(self, point: Point, *, cut: Callable[[], None], kill_backend: Callable[[], None]) -> None:
        """The transaction is at `point`. Raises AbortedError or AnswerLostError as armed.

        `cut` ends the connection, `kill_backend` the process at its other end.
        """
        fault = self.taken(point)
        if fault is Fault.HOLD:
            self.hold(point)
        elif fault is Fault.ABORT:
            raise AbortedError(f"aborted at {point.value}")
        elif fault is not None:
            kill_backend() if fault is Fault.LOSE_BACKEND else cut()
            # Before the commit is sent, a lost connection certainly rolls back, and the next statement shows it. Here
            # the commit is on its way, so its outcome is unknown.
            if point is Point.AFTER_COMMIT or (point is Point.BEFORE_COMMIT and fault is Fault.LOSE_ANSWER):
                raise AnswerLostError(f"{fault.value} at {point.value}")

    def watch(self, store: Store | None, verifier: Verifier) -> None:
        """Put the failpoints around the steps of a session for tests. A live surface has none."""
        wrap(verifier, "accepts", self._rejecting)
        if isinstance(store, PostgresStore):
            wrap(store, "insert_all", self._insert_on_postgres)
            wrap(store, "send_commit", self._commit_on_postgres)
        elif isinstance(store, SqliteStore):
            # The backend of SQLite is this process, so both ways to lose it are closing the connection.
            reach = partial(self.reach, cut=store.close, kill_backend=store.close)
            wrap(store, "consume", lambda consume: self._consume_on_sqlite(consume, reach))
            wrap(store, "insert_all", lambda insert_all: self._insert_on_sqlite(insert_all, reach))
            wrap(store, "read_back", lambda read_back: self._read_back_on_sqlite(read_back, reach))

    def _rejecting(self, accepts: _Step) -> _Step:
        def wrapped(written: Row, durable: Row | None) -> bool:
            rejected, self.rejecting = self.rejecting, False
            return not rejected and bool(accepts(written, durable))

        return wrapped

    def _reach_on_postgres(self, point: Point, connection: Connection) -> None:
        try:
            self.reach(point, cut=partial(_cut_socket, connection), kill_backend=partial(_kill_backend, connection))
        except AnswerLostError as error:
            connection.close()
            raise CommitUncertainError(str(error)) from error

    def _insert_on_postgres(self, insert_all: _Step) -> _Step:
        def wrapped(connection: Connection, inserts: Sequence[Insert], xids: list[str]) -> bool:
            if not self.armed:
                return bool(insert_all(connection, inserts, xids))
            try:
                self._reach_on_postgres(Point.BEFORE_CONSUME, connection)
                for each, point in zip(inserts, _AFTER_ROWS[: len(inserts)], strict=True):
                    if not insert_all(connection, [each], xids):
                        return False
                    self._reach_on_postgres(point, connection)
                self._reach_on_postgres(Point.BEFORE_COMMIT, connection)
            except AbortedError as error:
                raise psycopg.OperationalError(str(error)) from error
            return True

        return wrapped

    def _commit_on_postgres(self, send_commit: _Step) -> _Step:
        def wrapped(connection: Connection, read_back: object) -> object:
            replies = send_commit(connection, read_back)
            with contextlib.suppress(AbortedError):
                self._reach_on_postgres(Point.AFTER_COMMIT, connection)
            return replies

        return wrapped

    def _consume_on_sqlite(self, consume: _Step, reach: Callable[[Point], None]) -> _Step:
        def wrapped(inserts: Sequence[Insert]) -> Consumption:
            try:
                reach(Point.BEFORE_CONSUME)
            except AbortedError as error:
                raise RolledBackError(str(error)) from error
            outcome: Consumption = consume(inserts)
            return outcome

        return wrapped

    def _insert_on_sqlite(self, insert_all: _Step, reach: Callable[[Point], None]) -> _Step:
        def wrapped(connection: sqlite3.Connection, inserts: Sequence[Insert]) -> bool:
            try:
                for each, point in zip(inserts, _AFTER_ROWS[: len(inserts)], strict=True):
                    if not insert_all(connection, [each]):
                        return False
                    reach(point)
                reach(Point.BEFORE_COMMIT)
            except AbortedError as error:
                raise sqlite3.OperationalError(str(error)) from error
            except AnswerLostError as error:
                raise CommitUncertainError(str(error)) from error
            return True

        return wrapped

    def _read_back_on_sqlite(self, read_back: _Step, reach: Callable[[Point], None]) -> _Step:
        def wrapped(connection: sqlite3.Connection, insert: Insert) -> object:
            try:
                with contextlib.suppress(AbortedError):
                    reach(Point.AFTER_COMMIT)
            except AnswerLostError as error:
                raise CommitUncertainError(str(error)) from error
            return read_back(connection, insert)

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
    deadline = time.monotonic() + RECOVERY_WAIT_S
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(_POLL_S)
