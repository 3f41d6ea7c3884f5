"""The simplest protocol a store can be tested by: lines on its standard input and output.

The program gets the work directory as its last argument and says `READY`. It answers each `PUT name value` (one write
of two facts, `name.left` and `name.right`) with `OK`, `REFUSED reason` or `ERROR reason`; `DUMP` with one line, a JSON
object of all its facts; and ends with status 0 when its input does.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

import psutil

from holdfast.conformance.faults.report import Deadline, OutOfTimeError
from holdfast.conformance.faults.subject import (
    Facts,
    Op,
    Outcome,
    SubjectAnswer,
    SubjectError,
    SubjectHangError,
    Workload,
)

# A longer answer, in bytes, is invalid.
_MAX_LINE = 4 * 1024 * 1024
# Seconds for an end that has begun: of a program that closed its output, and of a command that was asked to terminate
# and has something to finish, a recording or a disk to hand back.
_LAST_S, _FINISH_S = 1.0, 5.0
# How many bytes of an invalid answer are printed.
_SHOWN_BYTES = 120


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds granted for a start, one answer, and a stop.

    A store may wait for a lock of another process; many a binding of SQLite waits for 5 s.
    """

    start: float = 15.0
    answer: float = 10.0
    stop: float = 5.0

    def scaled(self, factor: float) -> Limits:
        """The same times `factor`: a tracer slows a subject down."""
        return Limits(self.start * factor, self.answer * factor, self.stop * factor)


def puts(count: int, *, seed: int = 0, names: int = 5, size: int = 0, after: int = 0) -> Workload:
    """`count` writes to `names` names in turn, so that some cover others; those after `after` of `size` characters."""
    drawn = random.Random(seed)  # noqa: S311  generated anew from the same seed, nothing to guard

    def put(number: int) -> Op:
        name = f"k{(number - 1) % names + 1}" if number <= count else "probe"
        value = f"v{number}-{drawn.getrandbits(32):08x}".ljust(size if number > after else 0, "x")
        return Op(number, f"PUT {name} {value}", {f"{name}.left": value, f"{name}.right": value})

    return Workload(tuple(put(number) for number in range(1, count + 1)), put(count + 1))


class Lines:
    """A `Subject` that speaks lines. Not thread-safe."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        limits: Limits | None = None,
        environment: Mapping[str, str] | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        """`environment` is the whole environment of the program, None for that of this process.

        After the deadline nothing is awaited: everything here raises OutOfTimeError, and no process is left.
        """
        self._command = tuple(command)
        self._limits = limits or Limits()
        self._deadline = deadline or Deadline()
        self._environment = environment
        self._child: psutil.Popen | None = None
        self._log: IO[bytes] | None = None
        self._under = False
        self._waiting = b""
        # After a line that came too late, a later one may belong to any question.
        self._broken = ""

    def start(self, folder: Path, under: Sequence[str] = ()) -> None:
        """Start the program and wait for `READY`. Raises SubjectError."""
        if self._child is not None:
            raise SubjectError("it runs already")
        self._deadline.check()
        self._under, self._waiting, self._broken = bool(under), b"", ""
        # Not a pipe: its output would count as something that left, and a full pipe would stop the program.
        log = tempfile.TemporaryFile()  # noqa: SIM115  closed by `stop`
        try:
            self._child = psutil.Popen(
                [*under, *self._command, os.fspath(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=None if self._environment is None else dict(self._environment),
                start_new_session=True,
            )
        except OSError as error:
            log.close()
            raise SubjectError(f"{self._command[0]} cannot be started: {error.strerror}") from error
        self._log = log
        assert self._child.stdin is not None
        os.set_blocking(self._child.stdin.fileno(), False)
        try:
            line = self._receive(self._limits.start)
            if line != "READY":
                raise SubjectError(f"expected READY, got {line[:_SHOWN_BYTES]!r}")
        except (SubjectError, OutOfTimeError):
            with contextlib.suppress(SubjectError, OutOfTimeError):
                self._end(0.0)
            raise

    def submit(self, op: Op) -> SubjectAnswer:
        """Send one line and wait for its answer."""
        sent_at = time.monotonic_ns()
        try:
            line = self._ask(op.text)
        except SubjectError as error:
            return SubjectAnswer(Outcome.SILENT, sent_at, text=str(error), hung=isinstance(error, SubjectHangError))
        came_at = time.monotonic_ns()
        word, _, reason = line.partition(" ")
        if line == "OK":
            return SubjectAnswer(Outcome.OK, sent_at, came_at)
        if word in ("REFUSED", "ERROR"):
            return SubjectAnswer(Outcome(word.lower()), sent_at, came_at, reason)
        self._broken = f"expected OK, REFUSED or ERROR, got {line[:_SHOWN_BYTES]!r}"
        return SubjectAnswer(Outcome.SILENT, sent_at, text=self._broken)

    def dump(self) -> Facts:
        """The object in its answer. Raises SubjectError, also for an object with a value that is not text."""
        line = self._ask("DUMP")
        try:
            facts = json.loads(line)
        except ValueError:
            facts = None
        if not isinstance(facts, dict) or not all(isinstance(value, str) for value in facts.values()):
            self._broken = f"expected a JSON object of texts, got {line[:_SHOWN_BYTES]!r}"
            raise SubjectError(self._broken)
        return facts

    def stop(self) -> None:
        """Close its input and wait for it to end; kill all that it started. Raises SubjectError."""
        if self._child is not None:
            self._end(self._limits.stop)

    # It has no sessions.
    close = stop

    def _ask(self, text: str) -> str:
        if self._child is None:
            raise SubjectError("it does not run")
        if self._broken:
            raise SubjectError(f"nothing can be asked any more: {self._broken}")
        self._send(text.encode() + b"\n")
        return self._receive(self._limits.answer)

    def _send(self, line: bytes) -> None:
        """Write it all. Raises SubjectError if the subject does not read it, as does each later call."""
        assert self._child is not None
        assert self._child.stdin is not None
        until = time.monotonic() + self._limits.answer
        pipe = self._child.stdin.fileno()
        while line and not self._broken:
            try:
                if select.select([], [pipe], [], self._left(until))[1]:
                    line = line[os.write(pipe, line) :]
                else:
                    self._deadline.check()
                    self._hang(f"no request was read within {self._limits.answer:g} s")
            except OSError:
                self._broken = self._how_it_ended()
        if self._broken:
            raise SubjectError(self._broken)

    def _receive(self, seconds: float) -> str:
        """The next line. Raises SubjectError, and so does everything after it."""
        assert self._child is not None
        assert self._child.stdout is not None
        until = time.monotonic() + seconds
        pipe = self._child.stdout.fileno()
        while b"\n" not in self._waiting and not self._broken:
            if not select.select([pipe], [], [], self._left(until))[0]:
                self._deadline.check()
                self._hang(f"no answer within {seconds:g} s")
            elif len(self._waiting) > _MAX_LINE:
                self._broken = f"a line of more than {_MAX_LINE} bytes"
            elif not (came := os.read(pipe, 65536)):
                self._broken = self._how_it_ended()
            else:
                self._waiting += came
        if self._broken:
            raise SubjectError(self._broken)
        line, _, self._waiting = self._waiting.partition(b"\n")
        if self._waiting:
            self._broken = f"more than was asked for: {self._waiting[:_SHOWN_BYTES]!r}"
            raise SubjectError(self._broken)
        return line.decode("utf-8", "replace")

    def _left(self, until: float) -> float:
        return max(0.0, min(until - time.monotonic(), self._deadline.left))

    def _hang(self, words: str) -> NoReturn:
        """Raises SubjectHangError; what comes after it is a broken line."""
        self._broken = words
        raise SubjectHangError(words)

    def _how_it_ended(self) -> str:
        """In words, with the last line of its standard error; it closed its output, so its end is near."""
        assert self._child is not None
        assert self._log is not None
        try:
            status = self._child.wait(min(_LAST_S, self._deadline.left))
        except psutil.TimeoutExpired:
            self._deadline.check()
            return "it closed its output and goes on running"
        how = f"it was ended by signal {-status}" if status < 0 else f"it exited with status {status}"
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 4096))
        said = self._log.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f"{how}: {said[:_SHOWN_BYTES]}" if said else how

    def _end(self, seconds: float) -> None:
        """Wait `seconds` for its end, then end what is left of it. Raises SubjectError, once nothing is left."""
        child, self._child = self._child, None
        log, self._log = self._log, None
        assert child is not None
        assert child.stdin is not None
        assert child.stdout is not None
        assert log is not None
        with child.stdin, child.stdout, log:
            with contextlib.suppress(OSError):
                child.stdin.close()
            until = time.monotonic() + seconds
            # The end of its output is an event, but the end of the process needs polling: so wait for the output first.
            while (left := self._left(until)) > 0 and select.select([child.stdout], [], [], left)[0]:
                if not os.read(child.stdout.fileno(), 65536):
                    break
            try:
                child.wait(self._left(until))
                forced = False
            except psutil.TimeoutExpired:
                forced = True
                if self._under:
                    # A parent such as a tracer may have its recording to finish.
                    child.terminate()
                    with contextlib.suppress(psutil.TimeoutExpired):
                        child.wait(min(_FINISH_S, self._deadline.left))
            # The group as well: it may hold children that are left.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            status = child.wait()
        if forced:
            self._deadline.check()
            raise SubjectHangError(f"it did not end within {seconds:g} s after its input")
        if status:
            raise SubjectError(f"at its end: {'signal' if status < 0 else 'status'} {abs(status)}")
