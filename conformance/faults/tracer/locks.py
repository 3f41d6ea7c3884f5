"""A lock that another process takes right after the first transaction of the traced program: its requests fail.

SQLite locks one byte to write: one of the database, or, where that has a log, one of the log's index (`-shm`).
"""

from __future__ import annotations

import os
import struct
import sys
from enum import Enum, unique

# fcntl(2): F_SETLK, F_SETLKW and their forms for open file descriptions.
SETS = frozenset({6, 7, 37, 38})
_WRITE, _UNLOCK = 1, 2
# struct flock: type, whence, start, length.
_FLOCK = struct.Struct("<hhxxxxqq")
FLOCK_SIZE = _FLOCK.size
_RESERVED, _LOG_WRITER, _LOG_RECOVERY = 0x40000001, 120, 122


@unique
class _State(Enum):
    """Whose lock it is: of none yet, of the traced program, or of another."""

    FREE = "free"
    HELD = "held"
    TAKEN = "taken"


class Overtaking:
    """Follows the lock to write of one database, once the file `armed` is there."""

    def __init__(self, database: str, armed: str) -> None:
        name = os.path.realpath(database)
        self._bytes = {name: _RESERVED, f"{name}-shm": _LOG_WRITER}
        self._armed = armed
        self._state = _State.FREE
        self._recovers = False

    def fails(self, command: int, name: str, flock: bytes) -> bool:
        """Whether this call of fcntl(2) on a file is to fail. Others run, and are taken to succeed."""
        byte = self._bytes.get(name)
        if command not in SETS or byte is None or not os.path.exists(self._armed):
            return False
        kind, _, start, length = _FLOCK.unpack(flock)
        span = range(start, start + length if length else sys.maxsize)
        self._recovers = self._recovers or (kind == _WRITE and byte == _LOG_WRITER and _LOG_RECOVERY in span)
        if byte not in span:
            return False
        if kind == _WRITE and self._state is _State.TAKEN:
            return True
        if kind == _WRITE:
            self._state, self._recovers = _State.HELD, False
        elif kind == _UNLOCK and self._state is _State.HELD:
            # The index of a log is made with the same lock, and that is no transaction.
            self._state = _State.FREE if self._recovers else _State.TAKEN
        return False
