"""A database that lies in the session's workdir as a whole: a cluster copied there, and a server on it as our child.

Between sessions the workdir may be copied elsewhere, rebuilt from a recording, or left by a killed server; a session
opens the folder in each of these states, and lets the server recover.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import psycopg
from psycopg import sql

from holdfast.servers.errors import ServerError
from holdfast.servers.pace import scaled
from holdfast.servers.postgres.cluster import (
    SOCKET_FOLDER_MAX,
    SUPERUSER,
    Ending,
    Programs,
    Server,
    dsn_at,
    reachable_by_others,
    runs_on,
)
from holdfast.servers.postgres.embedded import new_home

# The one database of the cluster; initdb makes it.
DATABASE = "postgres"
_DATA = "data"
# A server whose adapter was killed is on its way out; a session that waited for longer than this has failed.
_PREDECESSOR_S = scaled(5.0)
# `close` is an operation, and has 2 s as a whole.
_STOP_S = scaled(1.5)
_POLL_S = 0.01
# libpq's least.
_CONNECT_S = 2
# PostgreSQL's least: 16 MB would be most of what is copied for each state of the disk.
_SEGMENT_MB = 1
# For the template alone, which need not survive a crash of the machine.
_HASTE = {"fsync": "off", "full_page_writes": "off", "min_wal_size": f"{2 * _SEGMENT_MB}MB"}


def make_template(parent: Path, provision: Callable[[str], object]) -> Path:
    """A folder with a stopped cluster, whose database `provision` has filled, given its DSN. Raises ServerError.

    The folder may be removed once no session is open any more; it lies in `parent` if a server can live there.
    """
    home = new_home(parent)
    try:
        programs = Programs.within_reach(home)
        programs.give(home)
        data = home / _DATA
        programs.initialise(data, f"--wal-segsize={_SEGMENT_MB}")
        server = programs.start(data, home, _HASTE)
        try:
            _leave_one_database(server.dsn(DATABASE))
            provision(server.dsn(DATABASE))
            with _connected(server.dsn(DATABASE)) as connection:
                # Otherwise each session's first read of a row would write a hint that its transaction is over.
                connection.execute("VACUUM (FREEZE)")
        finally:
            server.stop(Ending.IN_ORDER)
        # One segment of the log instead of the handful that provisioning took.
        programs.run("pg_resetwal", "-D", str(data), home=home)
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    return home


def _leave_one_database(dsn: str) -> None:
    """Drop the templates, which no session clones: they are two thirds of the cluster."""
    with _connected(dsn) as connection:
        connection.execute("UPDATE pg_database SET datistemplate = false")
        for name in ("template0", "template1"):
            connection.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))


class ConfinedServer:
    """The cluster in one folder of a workdir. One session has the server, the others on the folder are its guests.

    `template` is a folder from `make_template`.
    """

    # Durable, and with few other writes: an observer of the folder finds the sessions' writes, and few others. A start,
    # a recovery and a stop take some hundredths of a second each.
    settings: ClassVar[Mapping[str, str]] = {
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "max_connections": "40",
        "shared_buffers": "4MB",
        "min_wal_size": f"{2 * _SEGMENT_MB}MB",
        "max_wal_size": f"{16 * _SEGMENT_MB}MB",
        "wal_recycle": "off",
        "io_method": "sync",
        # Taken from the server's own memory, which no file in the folder stands for.
        "min_dynamic_shared_memory": "2MB",
        "max_worker_processes": "0",
        "max_parallel_workers": "0",
        "max_logical_replication_workers": "0",
        "bgwriter_lru_maxpages": "0",
        "bgwriter_delay": "10s",
        "wal_writer_delay": "10s",
        "checkpoint_timeout": "1d",
        "log_checkpoints": "off",
    }

    def __init__(self, folder: Path, template: Path) -> None:
        self._folder = folder
        self._template = template
        self._data = folder / _DATA
        self._socket = folder / "socket"
        self._server: Server | None = None
        self._locks: list[int] = []

    def dsn(self, *, user: str = SUPERUSER) -> str:
        """DSN of the session's database."""
        return dsn_at(self._socket, DATABASE, user=user)

    def open_fresh(self) -> None:
        """Have a server on a copy of the template. Raises ServerError, OSError."""
        with self._closed_on_failure():
            deadline = time.monotonic() + _PREDECESSOR_S
            if not self._lock("owner.lock"):
                raise self._taken()
            self._await_last_server(deadline)
            self._copy_template()
            self._start()

    def open_existing(self) -> None:
        """Have a server on what is in the folder, or be the guest of the session that has one.

        Raises ServerError, OSError.
        """
        with self._closed_on_failure():
            deadline = time.monotonic() + _PREDECESSOR_S
            while not self._lock("owner.lock"):
                if _answers(self.dsn()):
                    return
                if time.monotonic() > deadline:
                    raise self._taken()
                time.sleep(_POLL_S)
            self._await_last_server(deadline)
            if not self._data.is_dir():
                raise ServerError(f"expected a cluster in {self._data}, found none; open it `fresh` first")
            self._start()

    @contextmanager
    def _closed_on_failure(self) -> Iterator[None]:
        self._check_place()
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _taken(self) -> ServerError:
        return ServerError(f"expected to be alone on {self._folder}, but another session has it; close it first")

    def _check_place(self) -> None:
        if not (self._template / _DATA).is_dir():
            raise ServerError(f"expected the folder of a provisioned cluster, got {str(self._template)!r}")
        size = len(os.fsencode(self._socket))
        if size > SOCKET_FOLDER_MAX:
            raise ServerError(
                f"expected a path of at most {SOCKET_FOLDER_MAX} bytes for the folder of a socket, got {size}: "
                f"{self._socket}; use a workdir with a shorter path (--workdir, or TMPDIR)"
            )
        if b"," in os.fsencode(self._socket):
            # To libpq a host is a list of hosts, in which nothing can be quoted.
            raise ServerError(f"expected a path without commas for the folder of a socket, got {self._socket}")
        self._folder.mkdir(exist_ok=True)
        if Programs.within_reach(self._template).account is None:
            return
        # The folder and the workdir are the session's; what lies above them is not ours to open.
        for ours in (self._folder, self._folder.parent):
            ours.chmod(stat.S_IMODE(ours.stat().st_mode) | stat.S_IXGRP | stat.S_IXOTH)
        if not reachable_by_others(self._folder):
            closed = next(each for each in reversed(self._folder.parents) if not each.stat().st_mode & stat.S_IXOTH)
            raise ServerError(
                f"expected a workdir that the server's account can get to, but {closed} is closed to it; "
                f"`chmod o+x {closed}`, or use another --workdir"
            )

    def _await_last_server(self, deadline: float) -> None:
        """Wait until no process of the last server runs on the folder, whose owner we are. Raises ServerError.

        Two locks, because they end differently: `owner.lock` with the adapter, `server.lock` with the last process of
        its server, which inherits it. A copy of the folder has locks of its own. So a holder of both knows that no
        server runs here, whichever process id a postmaster.pid names.
        """
        while not self._lock("server.lock"):
            if time.monotonic() > deadline:
                raise ServerError(
                    f"expected the last server on {self._data} to be gone with its adapter, but {_PREDECESSOR_S:g} s "
                    "later a process of it still runs; end it"
                )
            time.sleep(_POLL_S)
        stranger = runs_on(self._data)
        if stranger is not None:
            raise ServerError(f"expected no server on {self._data}, but process {stranger} is one; stop it first")

    def _lock(self, name: str) -> bool:
        descriptor = os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._locks.append(descriptor)
        return True

    def _start(self) -> None:
        programs = Programs.within_reach(self._template)
        # The files of a copy belong to the account that made it.
        programs.give_all(self._data)
        self._data.chmod(stat.S_IRWXU)
        # Left by a killed server, or copied from a running one: no server runs here, see `_await_last_server`.
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        shutil.rmtree(self._socket, ignore_errors=True)
        self._socket.mkdir(mode=stat.S_IRWXU)
        programs.give(self._socket)
        self._server = programs.start(self._data, self._socket, self.settings, keep=self._locks[-1:])

    def _copy_template(self) -> None:
        unfinished = self._folder / "unfinished"
        for old in (self._data, unfinished):
            shutil.rmtree(old, ignore_errors=True)
        shutil.copytree(self._template / _DATA, unfinished, symlinks=True)
        # An incomplete copy must not be taken for a cluster.
        unfinished.rename(self._data)

    def close(self) -> None:
        """Stop the server in order if it is ours. Never raises; a second call is a no-op."""
        server, self._server = self._server, None
        if server is not None:
            server.stop(Ending.IN_ORDER, patience_s=_STOP_S)
        while self._locks:
            os.close(self._locks.pop())


def _connected(dsn: str) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(dsn, autocommit=True, connect_timeout=round(scaled(_CONNECT_S)))


def _answers(dsn: str) -> bool:
    with contextlib.suppress(psycopg.Error), _connected(dsn):
        return True
    return False
