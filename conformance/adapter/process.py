"""One adapter process on pipes: it starts in a process group of its own, is watched, and always ends."""

from __future__ import annotations

import contextlib
import os
import queue
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias, TypeVar

from holdfast.conformance.adapter.messages import MAX_LINE, Event
from holdfast.conformance.adapter.starvation import FIRST_LOOK, HEARTBEAT, Watch
from holdfast.conformance.verdict import FailureMode
from holdfast.servers.errors import TOO_LITTLE, StartError
from holdfast.servers.janitor import Janitor, JanitorLostError

if TYPE_CHECKING:
    from holdfast.servers.forkserver import Forked

# The files that an adapter's processes have: their programs, what they mapped, and the scripts of their command lines

# Files that an interpreter reads as a program. Of the open files only these count: the others are data, and the digest
# of a short secret discloses nearly the secret itself.
CODE = frozenset(
    (
        ".bash .beam .cjs .class .clj .dll .ear .ex .exs .groovy .jar .js .jsx .kts .lua .mjs .node .php .phar .pl "
        ".pm .ps1 .py .pyc .pyz .r .rb .scala .sh .so .tcl .ts .tsx .war .wasm .whl .zsh"
    ).split()
)


def files_of_group(group: int) -> frozenset[str]:
    """The absolute paths of the files that the processes of a process group have open or mapped now."""
    return frozenset(path for process in _members(group) for path in _files_of(process))


def _members(group: int) -> Iterator[Path]:
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getpgid(int(process.name)) == group:
                yield process


def _files_of(process: Path) -> Iterator[str]:
    """The files that could be observed of a process before it ended."""
    with contextlib.suppress(OSError):
        yield os.readlink(process / "exe")
    with contextlib.suppress(OSError):
        for line in (process / "maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            # Range, rights, offset, device, inode; then the path, blanks included.
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and fields[5].startswith("/"):
                yield fields[5]
    with contextlib.suppress(OSError):
        here = os.readlink(process / "cwd")
        words = (process / "cmdline").read_bytes().split(b"\0")[1:-1]
        for word in map(os.fsdecode, words):
            path = os.path.normpath(os.path.join(here, word))
            if Path(path).suffix.lower() in CODE and os.path.isfile(path):
                yield path
    with contextlib.suppress(OSError):
        for handle in os.listdir(process / "fd"):
            with contextlib.suppress(OSError):
                target = os.readlink(process / "fd" / handle)
                if target.startswith("/") and Path(target).suffix.lower() in CODE:
                    yield target


# Kept as evidence of each worker. An adapter may write without end, so the rest is read and dropped.
MAX_STDERR = 64 * 1024
# A closed pipe and the end of its process are two events. On a busy machine this is the longest time between them: as a
# share of a request's deadline, so that --slow stretches it, and in seconds for the kit's own processes.
_GONE = 0.5
GONE_S = 1.0
# How often the harness checks for a line that must not be taken yet.
_POLL_S = 0.002
# Answers come one for each request, so more waiting lines than this are a flood.
MAX_WAITING_LINES = 64
Came = TypeVar("Came")


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds granted for a start (hello, open), one request, a whole session, and the two steps of shutting down."""

    start: float = 30.0
    op: float = 2.0
    session: float = 30.0
    quit: float = 2.0
    terminate: float = 5.0

    def scaled(self, factor: float) -> Deadlines:
        """The same deadlines times `factor` (the option --slow)."""
        return Deadlines(*(seconds * factor for seconds in astuple(self)))


# A process on pipes in a group of its own.
Child: TypeAlias = "subprocess.Popen[bytes] | Forked"
# Starts a command with an environment. Raises OSError, StartError.
Start = Callable[[Sequence[str], Mapping[str, str]], Child]


def in_a_new_process(command: Sequence[str], environment: Mapping[str, str]) -> Child:
    """Start the command as every adapter is started."""
    return subprocess.Popen(
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )


class AdapterProcess:
    """A child with line-wise input and output. Not thread-safe: one owner sends and receives."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        janitor: Janitor,
        environment: Mapping[str, str],
        deadlines: Deadlines,
        start: Start = in_a_new_process,
    ) -> None:
        """Start `command`. Raises StartError if the system cannot run it, OSError if it lacks resources."""
        HEARTBEAT.start()
        self._deadlines = deadlines
        self._janitor = janitor
        # `_deliver` bounds it: an adapter that floods its output must not fill the kit's memory.
        self._lines: queue.SimpleQueue[tuple[int, bytes | None]] = queue.SimpleQueue()
        self._ended = False
        # Why the machine was too busy for the last wait without an answer; empty if it was not.
        self._starved = ""
        self._stderr = bytearray()
        self._stderr_dropped = 0
        try:
            self._child = start(command, {**environment, **janitor.mark})
        except FileNotFoundError as error:
            raise StartError(
                f"the adapter {command[0]!r} does not exist; give a path (./my-adapter) or a program on PATH"
            ) from error
        except PermissionError as error:
            raise StartError(
                f"the adapter {command[0]!r} is not executable; chmod +x it, or name its interpreter"
            ) from error
        except OSError as error:
            if error.errno in TOO_LITTLE:
                raise
            raise StartError(f"the adapter {command[0]!r} cannot be started: {error.strerror}") from error
        self.pid = self._child.pid
        try:
            janitor.watch("group", self.pid)
        except JanitorLostError:
            os.killpg(self.pid, signal.SIGKILL)
            raise
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        self._stdin: IO[bytes] = self._child.stdin
        os.set_blocking(self._stdin.fileno(), False)
        self._threads = [
            threading.Thread(target=self._read_lines, args=(self._child.stdout,), daemon=True),
            threading.Thread(target=self._read_log, args=(self._child.stderr,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _read_lines(self, stream: IO[bytes]) -> None:
        with stream, contextlib.suppress(OSError, ValueError):
            while True:
                line = stream.readline(MAX_LINE + 1)
                if not line:
                    break
                self._deliver(line)
        self._deliver(None)

    def _deliver(self, line: bytes | None) -> None:
        """Hand a line over. While the kit takes no line, the adapter's pipe fills up and the adapter has to wait."""
        item = (time.monotonic_ns(), line)
        while self._lines.qsize() >= MAX_WAITING_LINES and not self._ended:
            time.sleep(_POLL_S)
        if not self._ended:
            self._lines.put(item)

    def _read_log(self, stream: IO[bytes]) -> None:
        with stream, contextlib.suppress(OSError, ValueError):
            while chunk := os.read(stream.fileno(), 65536):
                room = MAX_STDERR - len(self._stderr)
                self._stderr += chunk[:room]
                self._stderr_dropped += max(0, len(chunk) - room)

    def loaded(self) -> frozenset[str]:
        """The files that the processes of its group have now."""
        return frozenset() if self._ended else files_of_group(self.pid)

    @property
    def log(self) -> str:
        """The standard error so far, at most MAX_STDERR bytes."""
        text = bytes(self._stderr).decode("utf-8", "replace")
        return text + (f"\n… {self._stderr_dropped} bytes more" if self._stderr_dropped else "")

    def send(self, line: bytes, *, timeout: float) -> Event | None:
        """Write one line within `timeout` seconds; an Event if the adapter is gone or does not read."""
        view = memoryview(line)
        fd = self._stdin.fileno()

        def writable(seconds: float) -> bool | None:
            with selectors.DefaultSelector() as selector:
                selector.register(fd, selectors.EVENT_WRITE)
                return bool(selector.select(seconds)) or None

        ends = time.monotonic() + timeout
        while view:
            try:
                view = view[os.write(fd, view) :]
            except BlockingIOError:
                if self._await(writable, max(0.0, ends - time.monotonic())) is None:
                    return self._unanswered(f"the adapter read no request for {timeout:g} s")
            except OSError:
                return self._gone()
        return None

    def _await(self, wait: Callable[[float], Came | None], seconds: float) -> Came | None:
        """The line that comes within `seconds`. Time lost to a busy machine is granted once more."""
        watch = Watch(self.pid)
        first = seconds * FIRST_LOOK
        came = wait(first)
        if came is None:
            watch.look()
            came = wait(seconds - first)
        self._starved = "" if came is not None else watch.starved()
        return wait(seconds) if self._starved else came

    def _unanswered(self, what: str) -> Event:
        """No answer came: the failure of the adapter, or of the machine (`holdfast.conformance.adapter.starvation`)."""
        if self._starved:
            return Event(FailureMode.BUSY, f"the machine was too busy: {what}, and {self._starved}")
        return Event(FailureMode.HANG, what)

    def _next(self, seconds: float) -> tuple[int, bytes | None] | None:
        try:
            return self._lines.get(timeout=seconds)
        except queue.Empty:
            return None

    def receive(self, *, timeout: float) -> tuple[int, bytes] | Event:
        """The next line with the moment it came (monotonic ns), or an Event for its absence."""
        came = self._await(self._next, max(0.0, timeout))
        if came is None:
            return self._unanswered(f"no answer within {timeout:.4g} s")
        moment, line = came
        if line is None:
            # Each later call finds the end again.
            self._lines.put((moment, None))
            return self._gone()
        if len(line) > MAX_LINE:
            return Event(FailureMode.GARBAGE, f"a line of more than {MAX_LINE} bytes")
        if not line.endswith(b"\n"):
            return Event(FailureMode.GARBAGE, f"half a line, then end of file: {line[:80]!r}")
        return moment, line

    def wait_elsewhere(self, wait: Callable[[float], Came | None], *, timeout: float) -> Came | Event:
        """What `wait` brings from another channel of the adapter within `timeout`, or an Event for its absence."""
        came = self._await(wait, max(0.0, timeout))
        return self._unanswered(f"no answer within {timeout:.4g} s") if came is None else came

    def has_output(self, *, within: float) -> bool:
        """Whether a line or the end comes `within` this number of seconds; `receive` takes it."""
        deadline = time.monotonic() + within
        while self._lines.empty():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def wait_for_end(self, *, timeout: float) -> Event | None:
        """How the process ended, if it did within `timeout` seconds."""
        return self._gone() if self._wait(timeout) else None

    def _gone(self) -> Event:
        """How the process ended. Its pipe is closed: it ends soon, or it closed only the pipe."""
        try:
            code = self._child.wait(timeout=self._deadlines.op * _GONE)
        except subprocess.TimeoutExpired:
            return Event(FailureMode.EOF, "the adapter closed its standard output and goes on running")
        if code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
            return Event(FailureMode.CRASH, f"the adapter was ended by signal {name}")
        if code > 0:
            return Event(FailureMode.CRASH, f"the adapter exited with status {code}")
        return Event(FailureMode.EOF, "the adapter exited with status 0 before it answered")

    def pause(self) -> None:
        """Stop the whole process group at once; `resume` lets it go on."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process group go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if not self._ended:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL to the whole process group, and wait until the child has ended. Idempotent."""
        if self._ended:
            # Its number may belong to another process by now.
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._ended = True
        self._child.wait()
        with contextlib.suppress(OSError):
            self._stdin.close()
        ends = time.monotonic() + GONE_S
        for thread in self._threads:
            # Each reader closes its own pipe. A process that left the group may still hold the other end. Then the
            # reader, a daemon, waits for that process, but the kit does not. The janitor ends the process with the run.
            thread.join(timeout=max(0.0, ends - time.monotonic()))
        self._janitor.forget("group", self.pid)

    def shut_down(self) -> None:
        """Close its input, then send SIGTERM to the group, then SIGKILL, each after its deadline."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        if not self._wait(self._deadlines.quit):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGTERM)
            self._wait(self._deadlines.terminate)
        # The leader may have left children behind that still hold the group.
        self.kill()

    def _wait(self, seconds: float) -> bool:
        try:
            self._child.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        return True
