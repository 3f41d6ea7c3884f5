"""Prepared statements on one connection to PostgreSQL, several in one message (libpq's pipeline mode).

psycopg has a pipeline too; its cursors and adapters make three small statements take seven times as long. This one is
written on `psycopg.pq`, for statements whose values are texts and booleans, and of whose rows only the first counts.
"""

from __future__ import annotations

import itertools
import re
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

Value = str | bool | None


class SilentError(psycopg.OperationalError):
    """The server did not answer in the time that the operation had; the connection is closed."""


_GOOD = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


@dataclass(frozen=True, slots=True)
class Step:
    """A statement, whose `%s` stand for the values."""

    statement: str
    values: Sequence[Value] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one step."""

    result: PGresult

    @property
    def tag(self) -> str:
        """The command tag, such as `COMMIT`."""
        return (self.result.command_status or b"").decode()

    @property
    def row(self) -> tuple[str | None, ...] | None:
        """The first row as text; None if there is none."""
        if not self.result.ntuples:
            return None
        cells = [self.result.get_value(0, column) for column in range(self.result.nfields)]
        return tuple(None if cell is None else cell.decode() for cell in cells)


_BEGIN, _ROLLBACK = Step("BEGIN"), Step("ROLLBACK")


class Pipeline:
    """One connection, with the statements that were prepared on it."""

    def __init__(
        self, connection: psycopg.Connection[Any], *, seconds_left: Callable[[], float | None] = lambda: None
    ) -> None:
        """On `connection`, whose answers may be awaited for what `seconds_left` says; None is for ever."""
        self._connection = connection
        self._seconds_left = seconds_left
        self._prepared: dict[str, bytes] = {}
        # Whether something was sent whose answer is not read.
        self._unread = False

    def prepare(self, statement: str) -> bytes:
        """The name of `statement`, prepared if it was not yet. Raises psycopg.Error."""
        name = self._prepared.get(statement)
        if name is None:
            name = f"held_{len(self._prepared)}".encode()
            numbers = itertools.count(1)
            text = re.sub("%s", lambda _: f"${next(numbers)}", statement)
            self._checked_at_once(lambda: self._connection.pgconn.send_prepare(name, text.encode()))
            self._prepared[statement] = name
        return name

    def run(self, *steps: Step) -> list[Reply]:
        """Send all steps at once. The first that fails is the last that runs; its error is raised, a psycopg.Error.

        Without BEGIN and COMMIT among them, the steps are one transaction.
        """
        self._send(steps)
        return [Reply(_checked(result)) for result in self._results()]

    def begin_rehearsal(self, step: Step) -> None:
        """Send a step that is rolled back whatever becomes of it, and do not wait. Raises psycopg.Error."""
        self._send((_BEGIN, step, _ROLLBACK))

    def rehearse(self, step: Step) -> None:
        """Wait for the rehearsal that was begun last; if none was, it is one of `step`. Raises its psycopg.Error."""
        if not self._unread:
            self.begin_rehearsal(step)
        for result in self._rehearsed():
            _checked(result)

    def _rehearsed(self) -> list[PGresult]:
        results, pgconn = self._results(), self._connection.pgconn
        if pgconn.transaction_status != TransactionStatus.IDLE:
            # The step failed, and took the ROLLBACK behind it along.
            self._checked_at_once(lambda: pgconn.send_query(b"ROLLBACK"))
        return results

    def _send(self, steps: Sequence[Step]) -> None:
        if self._unread:
            # Nobody asked how the last rehearsal went.
            self._rehearsed()
        ready = [(self.prepare(step.statement), [_encoded(value) for value in step.values]) for step in steps]
        pgconn = self._connection.pgconn
        self._unread = True
        try:
            pgconn.enter_pipeline_mode()
            for name, values in ready:
                pgconn.send_query_prepared(name, values)
            pgconn.pipeline_sync()
        except BaseException:
            self._give_up()
            raise

    def _results(self) -> list[PGresult]:
        """Everything up to the mark behind the last step, after which nothing is outstanding."""
        results: list[PGresult] = []
        pgconn = self._connection.pgconn
        try:
            while self._unread:
                if pgconn.is_busy():
                    self._wait()
                result = pgconn.get_result()
                if result is None:
                    _alive(pgconn)
                elif result.status == ExecStatus.PIPELINE_SYNC:
                    self._unread = False
                else:
                    results.append(result)
            pgconn.exit_pipeline_mode()
        except BaseException:
            self._give_up()
            raise
        return results

    def _checked_at_once(self, send: Callable[[], None]) -> None:
        """Hold a command outside the pipeline to the same. libpq's own calls for one would wait for ever."""
        pgconn = self._connection.pgconn
        try:
            send()
            results: list[PGresult] = []
            while True:
                self._wait()
                result = pgconn.get_result()
                if result is None:
                    break
                results.append(result)
        except BaseException:
            self._give_up()
            raise
        _alive(pgconn)
        for each in results:
            _checked(each)

    def _wait(self) -> None:
        """Wait until a whole result is there, and let other threads run meanwhile. Raises SilentError."""
        pgconn = self._connection.pgconn
        left = self._seconds_left()
        deadline = None if left is None else time.monotonic() + left
        waiting = select.poll()
        while pgconn.is_busy():
            unsent = pgconn.flush()
            waiting.register(pgconn.socket, select.POLLIN | (select.POLLOUT if unsent else 0))
            ready = waiting.poll(None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000)
            if not ready:
                raise SilentError(f"expected an answer of the database in {left:.2f} s, got none")
            pgconn.consume_input()

    def _give_up(self) -> None:
        """Whoever leaves half a conversation cannot tell its answers from later ones, so there are no later ones."""
        self._connection.close()


def _alive(pgconn: PGconn) -> None:
    """Tell a lost connection by itself: its results end as those of a statement do, or are errors of no class."""
    if pgconn.status != ConnStatus.OK:
        raise psycopg.OperationalError(pgconn.get_error_message())


def _checked(result: PGresult) -> PGresult:
    if result.status not in _GOOD:
        raise errors.error_from_result(result)
    return result


def _encoded(value: Value) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return b"t" if value else b"f"
    encoded = value.encode()
    if b"\0" in encoded:
        # libpq would read the text as ending there, and store another one.
        raise psycopg.DataError("PostgreSQL text cannot hold a NUL")
    return encoded
