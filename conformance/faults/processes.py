"""The processes that an implementation started: found by a mark in their environment, by parent, or by what is open."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil

# The variable that marks an implementation, and so each process that it starts.
MARK = "HOLDFAST_DEPENDENCIES_OF"
# Seconds until a process that was killed is gone, on a busy machine.
_GONE_S = 60.0
_POLL_S = 0.005
# How often a process with arguments shows no variables until it has none, and one without either. Not counted in
# seconds: on a busy machine most of them may pass between two looks.
_LOOKS, _LOOKS_AT_AN_EXEC = 10, 400


class Marked:
    """An implementation that is started once under `under()`, and the processes that it depends on.

    A process that leaves its session and its parent, as servers do, is still found by the mark. One that empties its
    environment as well is found by its parent; one that does all of that, by its open files in the work directory.
    """

    def __init__(self, folder: Path) -> None:
        self._word = f"{MARK}={secrets.token_hex(16)}"
        self._since = psutil.Process().create_time()
        self._folder = os.fspath(folder.resolve())
        self._itself: psutil.Process | None = None
        self._last: list[psutil.Process] = []

    def under(self) -> tuple[str, ...]:
        """The words that go before the implementation's own. Raises OSError where there is no `env`."""
        env = shutil.which("env")
        if env is None:
            raise FileNotFoundError("expected the program env, which starts another with a variable; not found")
        return (env, self._word)

    def dependencies(self) -> list[psutil.Process]:
        """Its running processes, without the implementation itself, the oldest process that has the mark.

        The first call must come after the start of the implementation, while it runs.
        """
        every = list(psutil.process_iter())
        found = {one.pid: one for one in every if _has(one, self._bears)}
        if self._itself is None and found:
            self._itself = min(found.values(), key=lambda one: (one.create_time(), one.pid))
        if self._itself is None:
            return []
        began = self._itself.create_time()
        for process in (self._itself, *found.values()):
            with contextlib.suppress(psutil.Error):
                found |= {one.pid: one for one in process.children(recursive=True)}
        for process in every:
            # An observer is no dependency, nor is a process that was there before, or since the same tick of the clock.
            if process.pid != os.getpid() and _has(process, lambda one: one.create_time() > began and self._works(one)):
                found[process.pid] = process
        self._last = [one for one in found.values() if one != self._itself and runs(one)]
        return self._last

    def keep_files(self) -> bool:
        """Whether one of them has files of the work directory open, or works in it, as a database server does."""
        return any(_has(one, self._works) for one in self.dependencies())

    def kill(self) -> int:
        """SIGKILL all of them, until none is left; how many there were. Raises OSError."""
        return self._each(signal.SIGKILL, lambda one: not runs(one))

    def kill_all(self) -> int:
        """SIGKILL to the implementation itself and to all of them, until none is left; how many. Raises OSError."""
        self.dependencies()
        itself = [one for one in (self._itself,) if one is not None and runs(one)]
        for one in itself:
            _signal(one, signal.SIGKILL)
        return len(itself) + self.kill()

    def stop(self) -> int:
        """SIGSTOP all of them, until each has stopped; how many there are. Raises OSError."""
        return self._each(signal.SIGSTOP, lambda one: not runs(one) or one.status() == psutil.STATUS_STOPPED)

    def go_on(self) -> None:
        """SIGCONT to all of them."""
        for one in self.dependencies():
            _signal(one, signal.SIGCONT)

    def one_reads_the_requests(self) -> bool:
        """Whether one of them has the implementation's input, so that it may be the implementation and not a helper."""
        try:
            wanted = os.readlink(f"/proc/{self._itself.pid}/fd/0") if self._itself is not None else ""
        except OSError:
            return False
        return any(_has(one, lambda it: os.readlink(f"/proc/{it.pid}/fd/0") == wanted) for one in self.dependencies())

    def _bears(self, process: psutil.Process) -> bool:
        """Whether a process bears the mark, which nothing older than this program can. Raises OSError, psutil.Error."""
        if process.create_time() < self._since:
            return False
        return self._word in environment_of(process.pid)

    def _works(self, process: psutil.Process) -> bool:
        """Whether a process works on the folder. Raises OSError for one that is gone, or another user's."""
        links = [f"/proc/{process.pid}/cwd", *(entry.path for entry in os.scandir(f"/proc/{process.pid}/fd"))]
        places = (os.readlink(link) for link in links)
        return any(place == self._folder or place.startswith(f"{self._folder}/") for place in places)

    def _each(self, number: signal.Signals, done: Callable[[psutil.Process], bool]) -> int:
        # A search for processes takes longer than many an operation, so the known ones are struck at once.
        struck = {one.pid for one in self._last if runs(one)}
        for one in self._last:
            _signal(one, number)
        until = time.monotonic() + _GONE_S
        # A process that has gone meanwhile is not listed again.
        while left := [one for one in self.dependencies() if not _has(one, done)]:
            if time.monotonic() > until:
                raise OSError(f"expected {number.name} to reach process {left[0].pid}, it goes on as before")
            for one in left:
                struck.add(one.pid)
                _signal(one, number)
            time.sleep(_POLL_S)
        return len(struck)


def environment_of(pid: int) -> list[str]:
    """The variables that a process was started with, as `NAME=value`. Raises OSError for one that is gone.

    While a process becomes another program it shows none at all, nor arguments; that is waited for.
    """
    looks = {True: _LOOKS, False: _LOOKS_AT_AN_EXEC}
    while True:
        has_arguments = Path(f"/proc/{pid}/cmdline").read_bytes() != b""
        variables = Path(f"/proc/{pid}/environ").read_bytes()
        looks[has_arguments] -= 1
        if variables or not _is_a_program(pid) or not looks[has_arguments]:
            return os.fsdecode(variables).split("\0")
        time.sleep(_POLL_S)


def _is_a_program(pid: int) -> bool:
    """Not a part of the kernel, and not a zombie."""
    try:
        os.readlink(f"/proc/{pid}/exe")
    except FileNotFoundError:
        return False
    return True


def _has(process: psutil.Process, what: Callable[[psutil.Process], bool]) -> bool:
    """Whether this holds; False for a process that is gone or cannot be inspected."""
    try:
        return what(process)
    except (psutil.Error, OSError):
        return False


def runs(process: psutil.Process) -> bool:
    """Whether a process has not ended."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    # A process that may not be struck shows that when it goes on.
    with contextlib.suppress(psutil.Error):
        process.send_signal(number)
