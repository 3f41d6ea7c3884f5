"""Standard output and standard error as the kit writes them: any text fits, no line is a command, losses are found."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Any, TextIO

from holdfast.reports.plain import disarmed, line_after, plain

# Standard input, output and error.
_STANDARD = (0, 1, 2)


class Output(io.TextIOWrapper):
    """A standard stream that never raises for what it cannot write.

    What its encoding lacks is written as `\\x…`. A stream that takes no more (a full disk, a closed pipe) is noted in
    `lost`, and what follows is dropped: the command comes to its own end, and `main` says how that ends.
    """

    def __init__(self, stream: io.TextIOWrapper) -> None:
        """Takes the place of `stream`, which cannot be used any more."""
        encoding, by_line, self._at_once = stream.encoding, stream.line_buffering, stream.write_through
        buffer: Any = stream.detach()
        if isinstance(buffer, io.RawIOBase):
            # Unbuffered (python -u): there what the first of several writes left over would be lost without a word.
            buffer = io.BufferedWriter(buffer)
        super().__init__(buffer, encoding=encoding, errors="backslashreplace", line_buffering=by_line)
        self.lost: OSError | None = None
        self._line = ""

    def write(self, text: str, /) -> int:
        """Write `text`, with what a CI server would take for a command written out."""
        if self.lost is None:
            shown = disarmed(text, line=self._line)
            self._line = line_after(shown, line=self._line)
            try:
                super().write(shown)
                if self._at_once:
                    super().flush()
            except OSError as error:
                self._lose(error)
        return len(text)

    def flush(self) -> None:
        """Flush; what cannot be written is lost."""
        try:
            super().flush()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        self.lost = self.lost or error
        # What is buffered would fail again when the process ends, which is too late to say so.
        with contextlib.suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
        with contextlib.suppress(OSError):
            super().flush()


def take_over() -> None:
    """Write standard output and standard error through `Output`. A stream that was closed from the start is lost."""
    # Otherwise the first file that is opened would get the number, and output would go into it.
    closed = [number for number in _STANDARD if not _is_open(number)]
    for _ in closed:
        os.open(os.devnull, os.O_RDWR)
    sys.stdout = _taken(sys.stdout, 1)
    sys.stderr = _taken(sys.stderr, 2)
    # What these held before cannot be used any more.
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr  # type: ignore[misc, assignment]


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _taken(stream: TextIO | None, number: int) -> TextIO:
    if stream is None:
        output = Output(open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - lives as long as we do
        output.lost = OSError(f"file descriptor {number} is closed")
        return output
    # A stream of another kind, as tests put there, is left as it is.
    return Output(stream) if type(stream) is io.TextIOWrapper else stream


def lost() -> OSError | None:
    """Why a part of standard output did not arrive, if so. Flushes it first."""
    stream = sys.stdout
    stream.flush()
    return stream.lost if isinstance(stream, Output) else None


def say(text: str, *, who: str = "holdfast: ") -> None:
    """One line on standard error, with as little machinery as possible."""
    print(f"{who}{plain(text)}", file=sys.stderr)
