"""Opens a live SQLite file so that neither it nor anything beside it is written, made or changed; and reads of it its
catalogue, and what the system says of the files.

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
import json
import os
import re
import sqlite3
import stat
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

from holdfast.conformance.fitness.errors import FitnessError
from holdfast.conformance.fitness.model import Dialect, Part, RelationName, Row, Snapshot, Surface
from holdfast.conformance.fitness.policy import CONTRACT
from holdfast.conformance.fitness.server import IDENTITY, identity_of_file
from holdfast.servers.folders import filesystem_of
from holdfast.specs.registry import folder_of
from holdfast.specs.yamlfile import read_yaml

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


# The prefix of the queries' names in a structure, for the file itself and for the audit's where that is another one.
AUDIT = "audit"


@cache
def queries() -> Mapping[str, str]:
    """The SQL of each query by its name, from the contract's folder."""
    data = read_yaml(folder_of(CONTRACT) / "fitness" / "sqlite.yaml")
    return {name: str(query["sql"]) for name, query in data["queries"].items()}


def files_of(surface: Surface, path: Path) -> Mapping[str, Path]:
    """Where the parts of a surface lie: the live file, and the file of an audit that has its own."""
    audit = surface.parts.get(Part.AUDIT)
    found = {MAIN: path.resolve()}
    return found if audit is None or audit.schema == MAIN else {**found, AUDIT: Path(audit.schema).resolve()}


def take(path: Path, surface: Surface) -> Snapshot:
    """The catalogue of each file in one read transaction, and the files' owners and rights. Raises FitnessError."""
    if any(surface.parts[each].schema != MAIN for each in (Part.EFFECT, Part.NONCE) if each in surface.parts):
        raise FitnessError(
            "effect and nonce of a surface in SQLite lie in the file that is looked at: two files have no transaction "
            "together; only an audit may lie elsewhere"
        )
    structure: dict[str, tuple[Row, ...]] = {}
    beside: list[Row] = []
    broken: list[Row] = []
    found = files_of(surface, path)
    for name, file in found.items():
        # Before SQLite opens the file: run as root it gives what lies beside it the rights of the file.
        near = list(_beside(name, file))
        observed, unread = read(file, _catalogue)
        structure |= {f"{name}.{query}": rows for query, rows in observed.items()}
        broken += ({"file": name, "view": view, "error": error} for view, error in unread.items())
        structure[f"{name}.journal"] = ({"mode": "wal" if in_wal_mode(file) else "chosen by each connection"},)
        state = os.stat(file)
        place = {
            "links": state.st_nlink,
            "filesystem": filesystem_of(file),
            "is_main": os.path.samefile(file, found[MAIN]),
        }
        structure[f"{name}.file"] = ({**_rights(state), **place},)
        # A user who may rename a folder above can put another file in the place.
        folders = ({"height": height, **_rights(os.stat(folder))} for height, folder in enumerate(file.parents))
        structure[f"{name}.folders"] = tuple(folders)
        beside += near or _beside(name, file)
    circumstances = {
        "version": sqlite3.sqlite_version,
        "files": {name: str(file) for name, file in found.items()},
        IDENTITY: [identity_of_file(path)],
        "beside": beside,
        "broken": broken,
        "filesystems": {name: filesystem_of(file) for name, file in found.items()},
    }
    return Snapshot(Dialect.SQLITE, structure, circumstances)


def _catalogue(connection: sqlite3.Connection) -> tuple[dict[str, tuple[Row, ...]], dict[str, str]]:
    """The rows of each query by its name, and by the view's name why it cannot be read. Raises sqlite3.Error."""
    broken = dict(_broken(connection))
    connection.row_factory = sqlite3.Row
    given = {"broken": json.dumps(list(broken))}
    return {name: tuple(map(dict, connection.execute(sql, given))) for name, sql in queries().items()}, broken


def _broken(connection: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Views that speak of what is not there any more. SQLite finds that out when it is asked for their columns."""
    views = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'view' ORDER BY name").fetchall()
    for (name,) in views:
        try:
            connection.execute("SELECT count(*) FROM pragma_table_xinfo(?)", (name,)).fetchone()
        except sqlite3.OperationalError as error:
            yield str(name), str(error)


def _rights(found: os.stat_result) -> dict[str, int | str]:
    return {"owner": found.st_uid, "group": found.st_gid, "mode": f"{stat.S_IMODE(found.st_mode):04o}"}


def _beside(name: str, file: Path) -> Iterator[Row]:
    """What SQLite keeps beside a file. It comes and goes, so no digest rests on it."""
    for ending in BESIDE:
        try:
            found = os.lstat(file.with_name(file.name + ending))
        except OSError:
            continue
        yield {"file": name, "what": ending, "regular": stat.S_ISREG(found.st_mode), **_rights(found)}
