"""What must not survive the kit: process groups and temporary folders, even when the kit dies by SIGKILL.

A small process of its own holds a pipe from the kit and learns what there is to clean. When the pipe closes, whatever
the cause, it kills what is still registered and removes the folders. It runs in its own session, so that Ctrl-C at
the terminal does not reach it. What left its group (a daemon, a server in a session of its own) is found by a mark in
its environment, where the system shows it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from conformance.adapter.folders import remove_tree

# How long a launcher gets to take its server down by itself after end of file.
LAUNCHER_GRACE_S = 8.0
# What was killed may still write for a moment, so that a folder is not empty when it is removed.
FOLDER_GRACE_S = 3.0
_POLL_S = 0.02
# The variable that marks every adapter of a run, and so whatever it starts.
MARK = "HOLDFAST_RUN"


class Janitor:
    """The kit's end of the pipe. Use as a context manager; leaving it cleans everything that is still registered."""

    def __init__(self) -> None:
        self.mark = {MARK: secrets.token_hex(16)}
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", "conformance.adapter.janitor", self.mark[MARK]],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def __enter__(self) -> Janitor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the pipe and wait until everything registered is gone."""
        assert self._child.stdin is not None
        with contextlib.suppress(OSError):
            self._child.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(timeout=LAUNCHER_GRACE_S + FOLDER_GRACE_S + 2)

    def _tell(self, verb: str, what: int | str) -> None:
        assert self._child.stdin is not None
        # A janitor that is gone cannot clean; running on would leave things behind, so this is loud.
        self._child.stdin.write(json.dumps([verb, what]).encode() + b"\n")
        self._child.stdin.flush()

    def watch_group(self, group: int) -> None:
        """SIGKILL this process group at the end."""
        self._tell("group", group)

    def forget_group(self, group: int) -> None:
        """The group has been ended and reaped; its number may be used again by others."""
        self._tell("-group", group)

    def watch_launcher(self, group: int) -> None:
        """This group cleans up by itself at end of file; it is killed only if that takes too long."""
        self._tell("launcher", group)

    def forget_launcher(self, group: int) -> None:
        """The launcher has ended in order."""
        self._tell("-launcher", group)

    def watch_process(self, process: int) -> None:
        """A server that left its launcher's group."""
        self._tell("process", process)

    def watch_folder(self, folder: Path) -> None:
        """Remove this folder at the end."""
        self._tell("folder", str(folder))

    def make_folder(self, *, parent: Path | None = None) -> Path:
        """A new folder for workdirs, removed at the end. Raises OSError."""
        # Registered before it exists, so that no moment is left in which it could stay behind.
        root = parent if parent is not None else Path(tempfile.gettempdir())
        folder = root / f"holdfast-{os.getpid()}-{os.urandom(6).hex()}"
        self.watch_folder(folder)
        folder.mkdir(mode=0o755)
        return folder


def _kill_groups(groups: Iterable[int]) -> None:
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def _alive(group: int) -> bool:
    """Whether the leader of the group runs. One that ended and that nobody reaps is not alive."""
    try:
        os.killpg(group, 0)
        # The state follows the name, which stands in parentheses and may hold anything.
        return Path(f"/proc/{group}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except (ProcessLookupError, PermissionError):
        return False
    except (OSError, IndexError):
        return not Path("/proc/self").exists()


def _marked(mark: str) -> Iterable[int]:
    """Processes with the mark of this run in their environment."""
    wanted = f"{MARK}={mark}".encode()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in environment.read_bytes().split(b"\0"):
                yield int(environment.parent.name)


def _kill_processes(processes: Iterable[int]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)


def _remove(folder: Path) -> None:
    deadline = time.monotonic() + FOLDER_GRACE_S
    remove_tree(folder)
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        remove_tree(folder)


def _serve(mark: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    known: dict[str, dict[str, int | str]] = {"group": {}, "launcher": {}, "process": {}, "folder": {}}
    for line in sys.stdin:
        verb, what = json.loads(line)
        if verb.startswith("-"):
            known[verb[1:]].pop(str(what), None)
        else:
            known[verb][str(what)] = what
    _kill_groups(int(group) for group in known["group"].values())
    _kill_processes(_marked(mark))
    deadline = time.monotonic() + LAUNCHER_GRACE_S
    launchers = [int(group) for group in known["launcher"].values()]
    while any(map(_alive, launchers)) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    if any(map(_alive, launchers)):
        _kill_groups(launchers)
        _kill_processes(int(process) for process in known["process"].values())
    # Once more: what was being started while the first were killed.
    _kill_processes(_marked(mark))
    for folder in known["folder"].values():
        _remove(Path(str(folder)))


if __name__ == "__main__":
    _serve(sys.argv[1])
