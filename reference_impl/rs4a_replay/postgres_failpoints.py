"""The failpoints around the steps of a PostgreSQL store, and how a backend is lost."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Sequence
from functools import partial

import psycopg

from holdfast.reference_impl.failpoints import AbortedError, wrap
from holdfast.reference_impl.postgres import Connection
from holdfast.reference_impl.postgres_pipeline import Step as Statement
from holdfast.reference_impl.rs4a_replay.failpoints import AFTER_ROWS, AnswerLostError, Failpoints, Point, Step
from holdfast.reference_impl.rs4a_replay.store import CommitUncertainError, Insert, Store
from holdfast.servers.pace import scaled

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
