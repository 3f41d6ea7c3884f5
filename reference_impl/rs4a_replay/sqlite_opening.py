"""Opens the two SQLite files of a session: those in its workdir, or copies of the template."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial

from holdfast.reference_impl.failpoints import AbortedError, wrap
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.rs4a_replay.failpoints import AFTER_ROWS, AnswerLostError, Failpoints, Point, Step
from holdfast.reference_impl.rs4a_replay.opening import Opened, Reserving
from holdfast.reference_impl.rs4a_replay.provision import sqlite_paths
from holdfast.reference_impl.rs4a_replay.settings import Settings
from holdfast.reference_impl.rs4a_replay.sqlite_operator import SqliteOperator
from holdfast.reference_impl.rs4a_replay.sqlite_store import SqliteAudit, SqliteStore
from holdfast.reference_impl.rs4a_replay.store import (
    CommitUncertainError,
    Consumption,
    Insert,
    RolledBackError,
    Store,
)
from holdfast.reference_impl.rs4a_replay.terms import CONTRACT, PARTS
from holdfast.reference_impl.session import OpenRequest, StateWanted, SurfaceWanted, template_of


class SqliteFailpoints(Failpoints):
    """The failpoints of one session on SQLite."""

    def watch_store(self, store: Store) -> None:
        """See `Failpoints`. The backend of SQLite is this process, so both ways to lose it close the connection."""
        reach = partial(self.reach, cut=store.close, kill_backend=store.close)
        wrap(store, "consume", lambda consume: self._consume(consume, reach))
        wrap(store, "insert_all", lambda insert_all: self._insert(insert_all, reach))
        wrap(store, "read_back", lambda read_back: self._read_back(read_back, reach))

    def _consume(self, consume: Step, reach: Callable[[Point], None]) -> Step:
        def wrapped(inserts: Sequence[Insert]) -> Consumption:
            try:
                reach(Point.BEFORE_CONSUME)
            except AbortedError as error:
                raise RolledBackError(str(error)) from error
            outcome: Consumption = consume(inserts)
            return outcome

        return wrapped

    def _insert(self, insert_all: Step, reach: Callable[[Point], None]) -> Step:
        def wrapped(connection: sqlite3.Connection, inserts: Sequence[Insert]) -> None:
            try:
                for each, point in zip(inserts, AFTER_ROWS[: len(inserts)], strict=True):
                    insert_all(connection, [each])
                    reach(point)
                reach(Point.BEFORE_COMMIT)
            except AbortedError as error:
                raise sqlite3.OperationalError(str(error)) from error
            except AnswerLostError as error:
                raise CommitUncertainError(str(error)) from error

        return wrapped

    def _read_back(self, read_back: Step, reach: Callable[[Point], None]) -> Step:
        def wrapped(connection: sqlite3.Connection, insert: Insert) -> object:
            try:
                with contextlib.suppress(AbortedError):
                    reach(Point.AFTER_COMMIT)
            except AnswerLostError as error:
                raise CommitUncertainError(str(error)) from error
            return read_back(connection, insert)

        return wrapped


def open_store(request: OpenRequest, settings: Settings, patience: Patience) -> Opened:
    """The store of one session. Raises OpenError."""
    folder = request.workdir / CONTRACT
    surface, audit = sqlite_paths(folder)
    if request.state is StateWanted.FRESH:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if request.surface is SurfaceWanted.READY:
            with template_of(request.config) as template:
                shutil.copytree(template, folder, dirs_exist_ok=True)
    place = {"file": str(surface.relative_to(request.workdir)), "effect": PARTS["effect"], "nonce": PARTS["nonce"]}
    place["audit"] = f"{audit.relative_to(request.workdir)}:{PARTS['audit']}"
    return Opened(
        SqliteStore(surface, settings, Reserving(patience)),
        SqliteAudit(audit, settings, patience),
        SqliteOperator(folder, expected=request.surface, patience=patience),
        SqliteFailpoints,
        place=place,
    )


def shut_down() -> None:
    """The adapter ends. All files lie in the workdirs."""
