"""Another process that holds locks on files until its input ends.

It is `python -m holdfast.conformance.faults.locks HOLD FILE...`; HOLD says which locks.

`all`: both kinds of locks, of whole files (flock) and of ranges (fcntl, from the first byte to beyond any end). A lock
that another process holds is left out: of a file in use, every other lock is taken.

`writer`: what a writer locks, in each file that is a database of SQLite. Others can read it, and cannot write.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum, unique
from pathlib import Path

from holdfast.conformance.faults.stored import SQLITE

# struct flock of 64-bit Linux: type, whence, start, length, process.
_FLOCK = struct.Struct("hhqqi4x")
# The last byte that can be locked.
_END = (1 << 63) - 1


@unique
class Hold(StrEnum):
    """Which locks another process takes."""

    ALL = "all"
    WRITER = "writer"


@contextmanager
def locked(files: Iterable[Path], hold: Hold = Hold.ALL) -> Iterator[int]:
    """Let another process lock these files; returns how many of them it has locked. Raises OSError.

    Locks of ranges end when their process closes any descriptor of the file, so it must not be this one.
    """
    argv = [sys.executable, "-P", "-m", "holdfast.conformance.faults.locks", hold, *map(os.fspath, files)]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stderr is not None
            answer = holder.stdout.readline()
            if not answer.strip().isdigit():
                said = holder.stderr.read().strip().rpartition("\n")[2]
                raise OSError(f"expected the number of files that are locked, got {answer or said!r}")
            yield int(answer)
        finally:
            holder.kill()


def _hold(path: str) -> bool:
    """Lock as much of a file as possible. The descriptor stays open: it holds the locks."""
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    held = False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held = True
    except OSError as error:
        if error.errno != errno.EWOULDBLOCK:
            raise
    ranges = [(0, _END)]
    while ranges:
        start, end = ranges.pop()
        wanted = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, end - start, 0)
        try:
            fcntl.fcntl(file, fcntl.F_SETLK, wanted)
            held = True
            continue
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
        kind, _, begun, size, _ = _FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, wanted))
        if kind == fcntl.F_UNLCK:
            # It has gone since.
            ranges.append((start, end))
            continue
        stop = begun + size if size else end
        ranges += [one for one in ((start, begun), (stop, end)) if one[0] < one[1]]
    return held


def _writes(path: str) -> sqlite3.Connection | None:
    """A transaction that is about to write; None where the file is no database, or another one writes."""
    with open(path, "rb") as file:
        if file.read(len(SQLITE)) != SQLITE:
            return None
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.Error:
        return None
    return connection


def _main(hold: str, *files: str) -> None:
    held, gone = [], []
    for path in files:
        try:
            held.append(_hold(path) or None if hold == Hold.ALL else _writes(path))
        except FileNotFoundError as error:
            # A journal that its transaction removed since the files were listed.
            gone.append(error)
    if gone and not held:
        raise gone[0]
    print(sum(one is not None for one in held), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _main(*sys.argv[1:])
