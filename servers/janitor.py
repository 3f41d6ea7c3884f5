"""Removes what must not survive the kit: process groups and temporary folders, even when the kit ends by SIGKILL.

A small process of its own reads from a pipe of the kit what is to be cleaned up. When the pipe closes for any cause, it
kills all registered processes and removes the folders. It runs in its own session, so that Ctrl-C at the terminal does
not reach it. What left its group (a daemon, a server in a session of its own) is found by a mark in its environment,
where the system shows it.
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
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from holdfast.servers.folders import remove_tree

# How long a launcher gets to take its server down by itself after end of file.
LAUNCHER_GRACE_S = 8.0
# What was killed may still write for a moment, so that a folder is not empty when it is removed.
FOLDER_GRACE_S = 3.0
_POLL_S = 0.02
# The variable that marks every adapter of a run, and so every process that it starts.
MARK = "HOLDFAST_RUN"


class JanitorLostError(Exception):
    """The process that cleans up after the kit is gone before its time, so nothing guarantees that the kit leaves none.

    What was there is cleaned up when this is raised by `close`.
    """


@dataclass(frozen=True, slots=True)
class KnownFolder:
    """A folder as it was found: what stands under its name later is removed only if it is still the same."""

    path: Path
    device: int
    number: int

    @classmethod
    def of(cls, path: Path) -> KnownFolder:
        """The folder at `path` itself, no link. Raises OSError."""
        found = path.lstat()
        return cls(path, found.st_dev, found.st_ino)


class _Charges:
    """What there is to clean up, by kind. The janitor has it from the pipe, and the kit keeps a copy of its own."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any]] = {kind: {} for kind in ("group", "launcher", "process", "folder")}

    def note(self, verb: str, what: Any) -> None:
        """`KIND` is to be cleaned up, `-KIND` no longer."""
        key = str(what[0] if isinstance(what, list) else what)
        if verb.startswith("-"):
            self._known[verb[1:]].pop(key, None)
        else:
            self._known[verb][key] = what

    def settle(self, mark: str) -> None:
        """Kill and remove all of it."""
        known = {kind: list(each.values()) for kind, each in self._known.items()}
        _kill_groups(known["group"])
        _kill_processes(_marked(mark))
        deadline = time.monotonic() + LAUNCHER_GRACE_S
        while any(map(_alive, known["launcher"])) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        if any(map(_alive, known["launcher"])):
            _kill_groups(known["launcher"])
            _kill_processes(known["process"])
        # Once more, for processes that were started while the first were killed.
        _kill_processes(_marked(mark))
        for folder in known["folder"]:
            if isinstance(folder, str):
                _remove(Path(folder))
            elif _is_still(KnownFolder(Path(folder[0]), *folder[1:])):
                _remove(Path(folder[0]))


class Janitor:
    """The kit's end of the pipe. Use as a context manager; leaving it cleans everything that is still registered.

    Should its process die before its time, the main thread is interrupted as by Ctrl-C, and `close` does its work.
    """

    def __init__(self) -> None:
        self.mark = {MARK: secrets.token_hex(16)}
        self._charges = _Charges()
        self._closing = self._lost = False
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", "holdfast.servers.janitor", self.mark[MARK]],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        self._child.wait()
        if not self._closing:
            self._lost = True
            # A real signal, because the main thread may wait for an adapter. If it ignores the signal, the next step
            # fails.
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def __enter__(self) -> Janitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the pipe and wait until everything registered is gone. Raises JanitorLostError."""
        assert self._child.stdin is not None
        self._closing = True
        with contextlib.suppress(OSError):
            self._child.stdin.close()
        try:
            status = self._child.wait(timeout=LAUNCHER_GRACE_S + FOLDER_GRACE_S + 2)
        except subprocess.TimeoutExpired:
            # The janitor is stopped, or its disk is slow. A second clean-up does no harm.
            self._charges.settle(self.mark[MARK])
            self._child.kill()
            return
        if self._lost or status != 0:
            self._charges.settle(self.mark[MARK])
            raise _gone(status)

    def _note(self, verb: str, what: int | str | list[str | int]) -> None:
        assert self._child.stdin is not None
        self._charges.note(verb, what)
        try:
            self._child.stdin.write(json.dumps([verb, what]).encode() + b"\n")
            self._child.stdin.flush()
        except (OSError, ValueError):
            # It is gone, or closed already. Running on would leave things behind, so this is loud; who only ends
            # something finds out at `close`.
            if not verb.startswith("-"):
                raise _gone(self._child.poll()) from None

    def watch(self, kind: Literal["group", "launcher", "process"], number: int) -> None:
        """SIGKILL it at the end. Raises JanitorLostError.

        A process group; the group of a launcher, which cleans up by itself at end of file and is killed only if that
        takes too long; or a server that has left its launcher's group.
        """
        self._note(kind, number)

    def forget(self, kind: Literal["group", "launcher"], number: int) -> None:
        """It has ended in order and was reaped; its number may be used again by others."""
        self._note(f"-{kind}", number)

    def watch_folder(self, folder: Path | KnownFolder) -> None:
        """Remove this folder at the end; a known one only if it is still the same. Raises JanitorLostError."""
        if isinstance(folder, KnownFolder):
            self._note("folder", [str(folder.path), folder.device, folder.number])
        else:
            self._note("folder", str(folder))

    def make_folder(self, *, parent: Path | None = None) -> Path:
        """A new folder for workdirs, removed at the end. Raises OSError, JanitorLostError."""
        # Registered before it exists, so that no moment is left in which it could stay behind.
        root = parent if parent is not None else Path(tempfile.gettempdir())
        folder = root / f"holdfast-{os.getpid()}-{os.urandom(6).hex()}"
        self.watch_folder(folder)
        folder.mkdir(mode=0o755)
        return folder


def _gone(status: int | None) -> JanitorLostError:
    how = "is gone" if status is None else f"was ended by signal {-status}" if status < 0 else f"exited with {status}"
    return JanitorLostError(
        f"the process that cleans up after the kit {how}, so the run was ended; nothing was proven. Run it again, and "
        "see what ends processes here (no memory left?)"
    )


def _kill_groups(groups: Iterable[int]) -> None:
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def _alive(group: int) -> bool:
    """Whether the leader of the group runs. A leader that ended and was not reaped is not alive."""
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


def _is_still(place: KnownFolder) -> bool:
    """Whether it is the folder that it was, under a name without links."""
    with contextlib.suppress(OSError):
        return place == KnownFolder.of(place.path) and place.path.resolve() == place.path
    return False


def _serve(mark: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    charges = _Charges()
    for line in sys.stdin:
        # The last one is half a line where the kit was killed while it wrote.
        if line.endswith("\n"):
            charges.note(*json.loads(line))
    charges.settle(mark)


if __name__ == "__main__":
    _serve(sys.argv[1])
