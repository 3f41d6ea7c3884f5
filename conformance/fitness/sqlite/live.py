"""Opens a live SQLite file so that neither it nor anything beside it is written, made or changed.

SQLite may write when it reads. A reader of a database in WAL mode makes the log and its index where they are missing,
and writes its mark into the index where it exists. So the way to open the file depends on what is found:

* no WAL mode: `mode=ro`; locks are taken, nothing is written
* WAL mode, log and index there: `mode=ro` with `readonly_shm=1`
* WAL mode, no log or an empty one: the file alone is the whole database; `immutable=1`, and the files are inspected
  again afterwards, because such a reader takes no locks
* anything else is a crash without a recovery so far: refused, for recovering is writing
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from holdfast.conformance.fitness.errors import FitnessError
from holdfast.conformance.fitness.model import RelationName

_T = TypeVar("_T")

MAIN = "main"
BESIDE = ("-wal", "-shm", "-journal")
_MAGIC = b"SQLite format 3\x00"
# The read version in the header (offset 19): 2 is WAL.
_HEADER_BYTES = 100
_READ_VERSION = 19
_WAL = 2
# A reader that takes no locks reads again when another process wrote meanwhile.
_LOOKS = 5
_BUSY_S = 2.0
# Of an extended result code, the result.
_PRIMARY = 0xFF
_PREFIX = re.compile(r"^(?:sqlite:(?://(?=/))?|file:(?://(?=/))?)")


def path_of(dsn: str) -> Path | None:
    """The file that a DSN names: `sqlite:PATH`, `sqlite:///PATH`, `file:PATH`, or the path of something that exists.

    None for any other DSN, which is not for SQLite.
    """
    if _PREFIX.match(dsn):
        return Path(_PREFIX.sub("", dsn).split("?", 1)[0])
    path = Path(dsn)
    try:
        return path if path.is_file() else None
    except (OSError, ValueError):
        return None


def relation_name(text: str, path: Path) -> RelationName:
    """What `--effect` and its siblings name: `table` or `main.table` in the file, `FILE:table` in another one."""
    file, colon, table = text.rpartition(":")
    if not colon:
        return RelationName(MAIN, text.removeprefix(f"{MAIN}."))
    other = Path(file).resolve()
    with contextlib.suppress(OSError):
        if os.path.samefile(other, path):
            return RelationName(MAIN, table)
    return RelationName(str(other), table)


def read(path: Path, reading: Callable[[sqlite3.Connection], _T]) -> _T:
    """What `reading` finds in one read transaction of the file. Raises FitnessError.

    It may run again when another process wrote meanwhile.
    """
    path = path.resolve()
    for _ in range(_LOOKS):
        before = _state(path)
        how = _way_in(path)
        try:
            opened = sqlite3.connect(f"{path.as_uri()}?{how}", uri=True, isolation_level=None, timeout=_BUSY_S)
            with contextlib.closing(opened) as connection:
                connection.execute("BEGIN")
                # The lock of a reader, for which `timeout` waits. A backup without one would wait for it for ever.
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
                found = reading(connection)
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & _PRIMARY == sqlite3.SQLITE_BUSY:
                raise FitnessError(
                    f"{path} is locked, and was for {_BUSY_S:g} s ({error}): {_holders(path)}; look again when that "
                    "transaction is over"
                ) from error
            raise FitnessError(f"{path} cannot be read as a SQLite database: {error}") from error
        if "immutable" not in how or _state(path) == before:
            return found
    raise FitnessError(f"{path} was written to each time it was read; look again when less is going on")


def _holders(path: Path) -> str:
    """Which processes hold locks on the file or on what lies beside it, as far as the system shows them (proc(5))."""
    states = _states(path).items()
    places = {(os.major(each.st_dev), os.minor(each.st_dev), each.st_ino): name for name, each in states}
    held = set[str]()
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/locks").read_text().splitlines():
            # «1: POSIX  ADVISORY  WRITE 1234 08:01:5678 0 EOF», with «->» before the kind where a process waits for it.
            words = line.split()
            if words[1] == "->":
                continue
            major, minor, inode = words[5].split(":")
            name = places.get((int(major, 16), int(minor, 16), int(inode)))
            if name is not None and int(words[4]) != os.getpid():
                held.add(f"process {words[4]} ({_program(words[4])}) holds a lock on {name}")
    return "; ".join(sorted(held)) or "it is unknown which process holds it"


def _program(process: str) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text(errors="replace").strip()
    except OSError:
        return "unknown"


def _states(path: Path) -> dict[str, os.stat_result]:
    """The file and all that lies beside it, by their names."""
    found = dict[str, os.stat_result]()
    for name in (path.name + ending for ending in ("", *BESIDE)):
        with contextlib.suppress(OSError):
            found[name] = os.stat(path.with_name(name))
    return found


def _state(path: Path) -> dict[str, tuple[int, ...]]:
    """What changes of them when a process writes."""
    return {name: (each.st_ino, each.st_size, each.st_mtime_ns) for name, each in _states(path).items()}


def _way_in(path: Path) -> str:
    """The query of the URI that opens the file. Raises FitnessError."""
    log, index = (path.with_name(path.name + ending) for ending in BESIDE[:2])
    if not in_wal_mode(path):
        return "mode=ro"
    if log.exists() and index.exists():
        return "mode=ro&readonly_shm=1"
    if not log.exists() or log.stat().st_size == 0:
        return "mode=ro&immutable=1"
    raise FitnessError(
        f"{log} holds commits that were not recovered, and {index.name} is not there: a process died. Reading them "
        "would write to the files; let the owner of the database open and close it once, then look again"
    )


def in_wal_mode(path: Path) -> bool:
    """Whether the file itself says so. Otherwise each connection chooses its journal. Raises FitnessError."""
    # No other handle of this process may be open on the file: closing this one gives up its locks (POSIX).
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise FitnessError(f"expected a SQLite database at {path}, found something that is no regular file")
        with open(path, "rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise FitnessError(f"expected a SQLite database at {path}: {error.strerror}") from error
    if not header:
        raise FitnessError(f"{path} is empty: SQLite would take it for a new database, and there is nothing in it")
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise FitnessError(f"{path} is no SQLite database: it does not begin as one")
    return header[_READ_VERSION] == _WAL
