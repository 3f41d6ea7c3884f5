"""The calls by which bytes become durable."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

# What holds plain bytes, and the objects beside it, is for its owner alone.
FOLDER_MODE, FILE_MODE = 0o700, 0o600
# No link is followed, and nothing waits for a writer at its other end.
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
# Nothing that is there is opened.
MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def opened(path: str | Path, flags: int, *, folder: int | None = None) -> Iterator[int]:
    """A handle of a file or a folder, in the folder of a handle if one is given. What is made is for its owner alone.

    Raises OSError.
    """
    handle = os.open(path, flags, FILE_MODE, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)


def sync(handle: int) -> None:
    """Everything of this file or folder is on the disk. Raises OSError, as all that follow."""
    os.fsync(handle)


def sync_path(path: Path) -> None:
    """The same by a path."""
    with opened(path, os.O_RDONLY | os.O_CLOEXEC) as handle:
        sync(handle)


def write(handle: int, data: bytes) -> None:
    """All of it: one call may write less."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
