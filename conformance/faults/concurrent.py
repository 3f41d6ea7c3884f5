"""Several clients at once: processes of the store that speak lines, over one work directory, each with a thread.

A prefix of the workload has no meaning here. So each operation sets facts of its own, and each fact is judged: an
acknowledged operation is there, one under way is there whole or not at all. Several answers may have left before a
client knew of its success. Then the last one counts as its acknowledgement: its own left no later.

A `Crowd` runs under the tracer. After the crash one process, `lines.Lines`, has to show what all of them did.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from holdfast.conformance.faults.lines import Limits
from holdfast.conformance.faults.subject import (
    Answer,
    Asked,
    Facts,
    History,
    Op,
    Outcome,
    Subject,
    SubjectError,
    Workload,
)

CLIENTS = 4
# Starts one process for each line that comes, on the next of these sockets. It waits for the processes that it started.
_LAUNCHER = """
import os, subprocess, sys
children = []
for number in map(int, sys.argv[1].split(",")):
    if not sys.stdin.readline():
        break
    children.append(subprocess.Popen(sys.argv[2:], stdin=number, stdout=number))
    os.close(number)
sys.exit(max([abs(child.wait()) for child in children], default=1))
"""
_READ = 65536


class Crowd:
    """`count` processes of one store that speaks lines, as one subject; `perform` asks all of them at once."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        count: int = CLIENTS,
        limits: Limits | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment` is the whole environment of the programs, None for that of this process."""
        self._command, self._count, self._environment = tuple(command), count, environment
        self._limits = limits or Limits()
        self._launcher: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self.clients: tuple[_Client, ...] = ()

    def start(self, folder: Path, under: Sequence[str] = ()) -> None:
        """Start them one after the other, each once the one before is ready. Raises SubjectError."""
        if self._launcher is not None:
            raise SubjectError("it runs already")
        pairs = [socket.socketpair() for _ in range(self._count)]
        theirs = [pair[1].fileno() for pair in pairs]
        launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, ",".join(map(str, theirs))]
        log = tempfile.TemporaryFile()  # noqa: SIM115  closed by `stop`
        try:
            self._launcher = subprocess.Popen(
                [*under, *launcher, *self._command, os.fspath(folder)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=None if self._environment is None else dict(self._environment),
                pass_fds=theirs,
                start_new_session=True,
            )
        except OSError as error:
            log.close()
            for ours, _ in pairs:
                ours.close()
            raise SubjectError(f"{launcher[0]} cannot be started: {error.strerror}") from error
        finally:
            for _, other in pairs:
                other.close()
        self._log, self.clients = log, tuple(_Client(ours, self._limits) for ours, _ in pairs)
        try:
            for client in self.clients:
                self._one_more()
                client.greeted()
        except SubjectError:
            with contextlib.suppress(SubjectError):
                self._end(0.0)
            raise

    def submit(self, op: Op) -> Answer:
        """Ask the first process."""
        if not self.clients:
            return Answer(Outcome.SILENT, time.monotonic_ns(), text="it does not run")
        return self.clients[0].submit(op)

    def dump(self) -> Facts:
        """Not supported: one process is asked for the facts of all, after their end. Raises SubjectError."""
        raise SubjectError("several clients at once show nothing; start one process to ask")

    def stop(self) -> None:
        """Close what they read and wait for them; kill all that is left. Raises SubjectError."""
        if self._launcher is not None:
            self._end(self._limits.stop)

    def _one_more(self) -> None:
        assert self._launcher is not None
        assert self._launcher.stdin is not None
        try:
            self._launcher.stdin.write(b"\n")
            self._launcher.stdin.flush()
        except OSError as error:
            raise SubjectError(f"what starts them has ended: {error.strerror}") from error

    def _end(self, seconds: float) -> None:
        """Wait `seconds` for their end, then end what is left. Raises SubjectError, once nothing is left."""
        launcher, self._launcher = self._launcher, None
        log, self._log = self._log, None
        clients, self.clients = self.clients, ()
        assert launcher is not None
        assert launcher.stdin is not None
        assert log is not None
        with log:
            for client in clients:
                client.close()
            with contextlib.suppress(OSError):
                launcher.stdin.close()
            forced = False
            try:
                launcher.wait(seconds)
            except subprocess.TimeoutExpired:
                forced = True
                # A tracer has its recording to finish.
                launcher.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    launcher.wait(1.0)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(launcher.pid, signal.SIGKILL)
            status = launcher.wait()
        if forced:
            raise SubjectError(f"they did not end within {seconds:g} s after their input")
        if status:
            raise SubjectError(f"at their end: {'signal' if status < 0 else 'status'} {abs(status)}")


class _Client:
    """One process at the other end of a socket. Used by one thread at a time."""

    def __init__(self, end: socket.socket, limits: Limits) -> None:
        self._end, self._limits, self._waiting = end, limits, b""

    def greeted(self) -> None:
        """Wait for READY. Raises SubjectError."""
        line = self._line(self._limits.start)
        if line != "READY":
            raise SubjectError(f"expected READY, got {line[:120]!r}")

    def submit(self, op: Op) -> Answer:
        """Send one line and wait for its answer. After one missing answer there are no more."""
        sent_at = time.monotonic_ns()
        try:
            self._end.settimeout(self._limits.answer)
            self._end.sendall(op.text.encode() + b"\n")
            line = self._line(self._limits.answer)
        except (OSError, SubjectError) as error:
            return Answer(Outcome.SILENT, sent_at, text=str(error))
        came_at = time.monotonic_ns()
        word, _, reason = line.partition(" ")
        if line == "OK":
            return Answer(Outcome.OK, sent_at, came_at)
        if word in ("REFUSED", "ERROR"):
            return Answer(Outcome.REFUSED if word == "REFUSED" else Outcome.ERROR, sent_at, came_at, reason)
        return Answer(Outcome.SILENT, sent_at, text=f"expected OK, REFUSED or ERROR, got {line[:120]!r}")

    def close(self) -> None:
        """Close its input, and this side's end."""
        self._end.close()

    def _line(self, seconds: float) -> str:
        deadline = time.monotonic() + seconds
        while b"\n" not in self._waiting:
            self._end.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                came = self._end.recv(_READ)
            except OSError as error:
                raise SubjectError(f"no answer within {seconds:g} s: {error}") from error
            if not came:
                raise SubjectError("it closed its output")
            self._waiting += came
        line, _, self._waiting = self._waiting.partition(b"\n")
        return line.decode("utf-8", "replace")


def perform(subject: Subject, workload: Workload) -> History:
    """Send the workload by all clients of a `Crowd` that runs, each its share in order. Raises TypeError for another.

    A client whose operation had no answer sends no more. The history is in the order of sending.
    """
    if not isinstance(subject, Crowd):
        raise TypeError(f"expected a Crowd, got {type(subject).__name__}")
    clients = subject.clients

    def share(place: int) -> list[Asked]:
        asked: list[Asked] = []
        for op in workload.ops[place :: len(clients)]:
            asked.append(Asked(op, clients[place].submit(op)))
            if asked[-1].answer.outcome is Outcome.SILENT:
                break
        return asked

    with ThreadPoolExecutor(len(clients) or 1) as pool:
        shares = pool.map(share, range(len(clients)))
        every = [one for each in shares for one in each]
    return History(tuple(sorted(every, key=lambda one: one.answer.sent_at)))
