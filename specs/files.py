"""Opens files from other sources: it refuses pipes and devices, and reads no more than a limit.

The input files of a command (evidence, proofs of fitness, expected failures) may come from other machines. A FIFO
would block for ever before a byte is read, a device would never end. Both are refused when they are opened.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def open_regular(path: Path, *, limit: int) -> BinaryIO:
    """Open a regular file of at most `limit` bytes for reading, without ever waiting for another process.

    Raises OSError, whose `strerror` says what was found instead. A file that grows afterwards is the reader's to bound.
    """
    # To a pipe without a writer, an ordinary open waits; to one with O_NONBLOCK it returns. Regular files ignore it.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
            raise OSError(errno.EINVAL, f"{kind} where a regular file is expected", str(path))
        if found.st_size > limit:
            raise _too_large(path, limit)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_regular(path: Path, *, limit: int) -> bytes:
    """All of a regular file of at most `limit` bytes. Raises OSError, see `open_regular`."""
    with open_regular(path, limit=limit) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise _too_large(path, limit)
    return data


def _too_large(path: Path, limit: int) -> OSError:
    return OSError(errno.EFBIG, f"a file of more than {limit} bytes", str(path))
