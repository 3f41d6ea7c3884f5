"""One runner process on pipes that never block the kit: started in a group of its own and ended for certain."""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import IO, NamedTuple

from holdfast.vectors.jcs.frames.answer import StartError, Status, TroubleError

# Of standard error the beginning and the end are kept, for the message: some runtimes name the cause in the first line
# of a traceback, some in the last.
LOG_BYTES = 4096
# A message quotes at most this number of characters of a line on standard error.
WORDS = 200
# A runner that floods its standard error is not listened to for ever.
LAST_READS = 16
# What one read takes at most, and what the pipes are asked to hold: fewer wake-ups, and a runner that works on while
# the kit compares answers.
PIPE_BYTES = 1024 * 1024
# A closed pipe and the end of its process are two events, this far apart at most on a busy machine.
GONE_S = 1.0
# Between two checks of a process that is about to end.
LOOK_S = 0.002
# Variables a runner may need to run at all. Everything else (DSNs, tokens, PYTHONPATH) stays with the kit.
PASSED_ENVIRONMENT = (
    "PATH HOME USER LOGNAME LANG LC_ALL LC_CTYPE TMPDIR SHELL TZ SYSTEMROOT JAVA_HOME GOROOT LD_LIBRARY_PATH"
).split()


def scrubbed_environment() -> dict[str, str]:
    """The environment a runner gets when the caller names none."""
    return {name: os.environ[name] for name in PASSED_ENVIRONMENT if name in os.environ}


def start(
    command: Sequence[str], env: Mapping[str, str] | None, *, stderr: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """Start a runner in a session of its own. Raises StartError if the system cannot run the command."""
    if not command:
        raise StartError("no command was given; expected the program that speaks frames and its arguments")
    environment = scrubbed_environment() if env is None else dict(env)
    try:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise StartError(
            f"the runner {command[0]!r} does not exist; give a path (./my-runner) or a program on PATH"
        ) from error
    except PermissionError as error:
        raise StartError(
            f"the runner {command[0]!r} is not executable; chmod +x it, or name its interpreter"
        ) from error
    except OSError as error:
        raise StartError(f"the runner {command[0]!r} cannot be started: {error.strerror}") from error


def end(child: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the whole group, close the pipes, reap."""
    if child.returncode is None:
        # The leader, running or not reaped yet, still holds the number of the group.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    child.wait()


class _Left(NamedTuple):
    """The end of a process: its description, and whether it ended by itself with status 0."""

    words: str
    well: bool


def _how_it_left(pid: int) -> _Left | None:
    """How a child ended, or None while it runs. It is not reaped: its group could not be killed afterwards."""
    try:
        left = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    except ChildProcessError:
        # Where the host program ignores SIGCHLD, the system reaps at once and the status is lost.
        return _Left("the runner ended (its status is unknown)", well=False)
    if left is None:
        return None
    if left.si_code == os.CLD_EXITED:
        return _Left(f"the runner exited with status {left.si_status}", well=left.si_status == 0)
    known = left.si_status in set(signal.Signals)
    name = signal.Signals(left.si_status).name if known else left.si_status
    return _Left(f"the runner was ended by signal {name}", well=False)


def widen(stream: IO[bytes]) -> None:
    """Ask for a larger pipe; where the system has no more to give, the usual one does."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)


class Runner:
    """A process whose pipes are served by `step`. Nothing here interprets a byte."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None) -> None:
        """Start it. Raises StartError."""
        self._child = start(command, env)
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        self._stdin, self._stdout, self._stderr = self._child.stdin, self._child.stdout, self._child.stderr
        self._queue: deque[memoryview] = deque()
        self._log_begin = bytearray()
        self._log_end = bytearray()
        # Whether the selector watches for room in standard input, and whether the runner still reads there.
        self._writing = False
        self._deaf = False
        self._selector = selectors.DefaultSelector()
        for stream in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(stream.fileno(), False)
        widen(self._stdin)
        widen(self._stdout)
        self._selector.register(self._stdout, selectors.EVENT_READ)
        self._selector.register(self._stderr, selectors.EVENT_READ)

    def send(self, frames: bytes | memoryview) -> None:
        """Queue bytes for standard input; `step` writes them."""
        if not self._deaf:
            self._queue.append(memoryview(frames))
            self._write()

    def step(self, wait: float) -> bytes:
        """Move what can be moved, waiting up to `wait` seconds for the first thing; what came on standard output.

        Raises TroubleError (CRASHED) when standard output has ended.
        """
        came = b""
        for key, _ in self._selector.select(max(0.0, wait)):
            if key.fileobj is self._stdin:
                self._write()
            elif key.fileobj is self._stderr:
                self._read_log()
            else:
                came = os.read(self._stdout.fileno(), PIPE_BYTES)
                if not came:
                    raise TroubleError(Status.CRASHED, self._obituary())
        return came

    def _write(self) -> None:
        """As much of the queue as the pipe takes."""
        descriptor = self._stdin.fileno()
        try:
            while self._queue:
                written = os.write(descriptor, self._queue[0])
                if written < len(self._queue[0]):
                    self._queue[0] = self._queue[0][written:]
                else:
                    self._queue.popleft()
        except BlockingIOError:
            pass
        except BrokenPipeError:
            # It reads no more. What it still has to say is read before that counts against it.
            self._deaf = True
            self._queue.clear()
        if bool(self._queue) is not self._writing:
            self._writing = bool(self._queue)
            if self._writing:
                self._selector.register(self._stdin, selectors.EVENT_WRITE)
            else:
                self._selector.unregister(self._stdin)

    def _read_log(self) -> None:
        chunk = os.read(self._stderr.fileno(), 65536)
        if chunk:
            room = LOG_BYTES - len(self._log_begin)
            self._log_begin += chunk[:room]
            self._log_end += chunk[room:]
            del self._log_end[:-LOG_BYTES]
        else:
            self._selector.unregister(self._stderr)

    def _drain_log(self) -> None:
        with contextlib.suppress(OSError, ValueError, KeyError):
            for _ in range(LAST_READS):
                self._read_log()

    def close_input(self) -> None:
        """The end of the input, after everything queued was written."""
        if self._writing:
            self._selector.unregister(self._stdin)
            self._writing = False
        with contextlib.suppress(OSError):
            self._stdin.close()

    def last_words(self) -> str:
        """The first and last line on standard error so far, as an addition to a message."""
        self._drain_log()
        lines = (self._log_begin + self._log_end).decode("utf-8", "replace").strip().splitlines()
        telling = dict.fromkeys(line.strip()[:WORDS] for line in (*lines[:1], *lines[-1:]))
        return f"; on standard error: {' … '.join(telling)}" if telling else ""

    @property
    def has_left(self) -> bool:
        """Whether the process itself has ended; what it started may go on."""
        return _how_it_left(self._child.pid) is not None

    def failure_at_end(self, ends: float) -> str | None:
        """What is wrong with how it ended after the end of its input: a signal, a status other than 0, or that it has
        not ended at `ends` (of the monotonic clock). None if nothing is."""
        left = self._how_it_leaves(ends)
        if left is None:
            return f"the runner goes on running after the end of its input{self.last_words()}"
        return None if left.well else f"{left.words} at the end of its input{self.last_words()}"

    def _obituary(self) -> str:
        left = self._how_it_leaves(time.monotonic() + GONE_S)
        words = "the runner closed its standard output and goes on running"
        return (words if left is None else f"{left.words} before it answered") + self.last_words()

    def _how_it_leaves(self, ends: float) -> _Left | None:
        while (left := _how_it_left(self._child.pid)) is None and time.monotonic() < ends:
            # Who waits for room on its standard error does not end.
            self._drain_log()
            time.sleep(LOOK_S)
        return left

    def kill(self) -> None:
        """Send SIGKILL to the whole group, and close everything. Idempotent."""
        self._selector.close()
        end(self._child)
