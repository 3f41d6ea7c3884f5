"""A real PgBouncer before a server, and the settings that a client leaves in its pool."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.conftest import missing
from tests.fitness.lives import LiveServer
from tests.pace import busy

_START_S = 10.0
# Debian keeps it in a folder that only root has on PATH.
_PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
# Settings that a client changes for its session. Each was observed to stay in a pool.
SETTINGS = (
    *("default_transaction_read_only", "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"),
    *("search_path", "row_security", "DateStyle", "IntervalStyle", "TimeZone", "bytea_output", "extra_float_digits"),
    *("quote_all_identifiers", "client_encoding", "application_name", "synchronize_seqscans", "role"),
)


@dataclass(frozen=True, slots=True)
class Pooler:
    """A running PgBouncer with one server connection for each user and database."""

    server: LiveServer
    port: int

    def dsn_of(self, database: str, *, user: str | None = None) -> str:
        """DSN of a database through the pooler."""
        who = user or str(conninfo_to_dict(self.server.dsn)["user"])
        return make_conninfo("", host="127.0.0.1", port=self.port, dbname=database, user=who)


@contextmanager
def pgbouncer(server: LiveServer, mode: str, settings: Mapping[str, str] | None = None) -> Iterator[Pooler]:
    """Start one in `mode` (session, transaction, statement). Skips the test where there is none, and fails in CI."""
    if _PROGRAM is None:
        missing("pgbouncer (Debian: apt-get install pgbouncer)")
    parts = conninfo_to_dict(server.dsn)
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="holdfast-pooler-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "users").write_text("".join(f'"{user}" ""\n' for user in (parts["user"], "registrar", "auditor")))
        lines = {
            "listen_addr": "127.0.0.1",
            "listen_port": str(port),
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": str(folder / "users"),
            "pool_mode": mode,
            "default_pool_size": "1",
            "min_pool_size": "0",
            "server_idle_timeout": "600",
            # It refuses to run as root.
            **({"user": "nobody"} if os.geteuid() == 0 else {}),
            **(settings or {}),
        }
        config = folder / "pgbouncer.ini"
        config.write_text(
            f"[databases]\n* = host={parts['host']} port={parts.get('port', '5432')}\n[pgbouncer]\n"
            + "".join(f"{name} = {value}\n" for name, value in lines.items())
        )
        log = folder / "log"
        with log.open("wb") as said:
            child = subprocess.Popen([_PROGRAM, str(config)], stdout=said, stderr=said, stdin=subprocess.DEVNULL)
        try:
            _await(port, child, log)
            yield Pooler(server, port)
        finally:
            child.kill()
            child.wait()


def _await(port: int, child: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + busy(_START_S)
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if child.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"pgbouncer did not start: {log.read_text()}")
        time.sleep(0.02)


def free_port() -> int:
    """A port without a listener."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def settings_of(connection: psycopg.Connection[Any]) -> tuple[str, ...]:
    """What a session is set to, and nothing else of it."""
    texts = ", ".join(f"current_setting('{name}')" for name in SETTINGS)
    row = connection.execute(f"SELECT {texts}".encode(), prepare=False).fetchone()
    assert row is not None
    return tuple(map(str, row))
