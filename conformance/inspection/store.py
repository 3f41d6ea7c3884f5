"""The inspections of a driver: each function carries one step out and returns its value (docs/case-language.md)."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from holdfast.conformance.inspection import changing, files
from holdfast.conformance.inspection.database import MAX_LOOK, nothing
from holdfast.conformance.inspection.files import MAX_ENTRIES, MAX_FILE, Copied, folder_of, read_plain
from holdfast.conformance.inspection.helper import HELPER, HelperError
from holdfast.specs.strictjson import canonical
from holdfast.vectors.jcs.canaries import spellings

# Copies a RocksDB database out of a workdir that an adapter shares. It follows no link, and opens only plain files.
# Paths are relative to the workdir, with slashes. Everything raises OSError.

# What holds rows, or says which files do. RocksDB's lock and its log of events are no part of the database.
_HOLDS = re.compile(r"CURRENT|IDENTITY|(?:MANIFEST|OPTIONS)-[0-9]+|[0-9]+\.(?:sst|ldb|log|blob)")
_LOG = re.compile(r"[0-9]+\.log")
_OPTIONS = "OPTIONS-"
_LOGS_ELSEWHERE = re.compile(rb"^\s*wal_dir=(.+?)\s*$", re.MULTILINE)
_MAX_OPTIONS = 1 << 20
_TRIES = 6

# Of each file: inode, size and times of its last changes. Its last reading is no part of it: copying changes that.
_States: TypeAlias = Mapping[str, tuple[int, int, int, int]]


class _UnfitError(Exception):
    """Why a database is not copied."""


def copy_rocksdb(workdir: Path, path: str, into: Path) -> Copied:
    """Copy the database in the folder `path` to the folder `into`. One that changes meanwhile is tried again.

    `digest` covers the name and the bytes of every file.
    """
    for attempt in range(_TRIES):
        time.sleep(0.02 * attempt)
        for old in into.iterdir():
            old.unlink()
        try:
            before = _states(workdir, path)
            if not before:
                # One look is no proof: the folder may have been in the middle of a replacement.
                if attempt:
                    return Copied(exists=False)
                continue
            digest = _copy(workdir, before, into)
            if before == _states(workdir, path):
                return Copied(exists=True, digest=digest)
        except _UnfitError as error:
            return Copied(exists=True, error=str(error))
        except FileNotFoundError:
            # A compaction removes files at any moment.
            continue
        except OSError as error:
            return Copied(exists=True, error=f"it cannot be read: {error.strerror}")
    return Copied(exists=True, error=f"it changed while it was copied, {_TRIES} times in a row")


def unfit(workdir: Path, path: str) -> str | None:
    """Why the database in the folder `path` must not be written to; None if it can be."""
    try:
        return None if _states(workdir, path) else f"there is no database at {path}"
    except _UnfitError as error:
        return str(error)


def identity_of(workdir: Path, path: str) -> str:
    """A digest of what RocksDB writes once into a database and keeps.

    It compares databases that cannot be read. Even an opening that fails may write other files.
    """
    try:
        with folder_of(workdir, f"{path}/IDENTITY") as (folder, name):
            data = read_plain(folder, name, _MAX_OPTIONS)
    except FileNotFoundError:
        data = b""
    return hashlib.sha256(data).hexdigest()


def _states(workdir: Path, path: str) -> _States:
    """The files of the database by their paths; none if the folder is not there, or holds no database."""
    try:
        found = _listed(workdir, path, _HOLDS)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    logs = _logs_of(workdir, path, found)
    if logs not in {None, path}:
        found |= _listed(workdir, str(logs), _LOG)
    size = sum(size for _, size, _, _ in found.values())
    if size > MAX_FILE:
        raise _UnfitError(f"it has {size} bytes; at most {MAX_FILE} are inspected")
    return found


def _listed(workdir: Path, path: str, wanted: re.Pattern[str]) -> dict[str, tuple[int, int, int, int]]:
    found = {}
    with folder_of(workdir, f"{path}/CURRENT") as (folder, _):
        for name in filter(wanted.fullmatch, os.listdir(folder)):
            state = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISREG(state.st_mode):
                raise _UnfitError(f"{name} is no plain file")
            found[f"{path}/{name}"] = (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    if len(found) > MAX_ENTRIES:
        raise _UnfitError(f"it has more than {MAX_ENTRIES} files")
    return found


def _logs_of(workdir: Path, path: str, found: _States) -> str | None:
    """The folder of the write-ahead log, where the newest options name one."""
    options = [at for at in found if PurePosixPath(at).name.startswith(_OPTIONS)]
    if not options:
        return None
    newest = max(options, key=lambda at: int(at.rpartition("-")[2]))
    with folder_of(workdir, newest) as (folder, name):
        named = _LOGS_ELSEWHERE.search(read_plain(folder, name, _MAX_OPTIONS))
    if named is None:
        return None
    at = os.path.normpath(os.path.join(workdir, path, os.fsdecode(named.group(1))))
    below = os.path.relpath(at, workdir)
    if below.startswith(".."):
        raise _UnfitError("its write-ahead log lies outside of the workdir")
    return below


def _copy(workdir: Path, states: _States, into: Path) -> str:
    state = hashlib.sha256()
    for at in sorted(states):
        with folder_of(workdir, at) as (folder, name):
            data = read_plain(folder, name, MAX_FILE)
        into.joinpath(name).write_bytes(data)
        state.update(f"{name} {len(data)}\n".encode() + data)
    return state.hexdigest()


Row = Mapping[str, Any]
# How a database begins (https://sqlite.org/fileformat.html).
_SQLITE = b"SQLite format 3\x00"


def inspect(workdir: Path, path: str, kind: str = "sqlite") -> dict[str, Any]:
    """The content of the database at `path` in the workdir. Only a copy is opened. Raises OSError.

    `kind` is its format: sqlite for a file, rocksdb for a folder.
    """
    with tempfile.TemporaryDirectory(prefix="look-", dir=workdir.parent) as folder:
        if kind == "rocksdb":
            copied, copy, op = copy_rocksdb(workdir, path, Path(folder)), Path(folder), "inspect rocksdb"
        else:
            copy, op = Path(folder, "copy.db"), "inspect"
            copied = files.copy_database(workdir, path, copy)
        if copied.digest is None:
            found = nothing(exists=copied.exists, error=copied.error)
        else:
            try:
                found = HELPER.ask(op, path=str(copy))
            except HelperError as error:
                found = nothing(exists=True, error=str(error))
            found["digest"] = copied.digest
    if len(canonical(found)) > MAX_LOOK:
        found = nothing(exists=True, error=f"a look at it takes more than {MAX_LOOK} bytes", digest=copied.digest)
    if kind == "rocksdb" and found["exists"] and found["error"] is not None:
        found["digest"] = identity_of(workdir, path)
    return found


def facts(workdir: Path, path: str) -> dict[str, Any]:
    """The description of the file at `path` in the workdir, and whether git would ignore it. Raises OSError."""
    found = files.facts_of(workdir, path)
    rules = files.rules_of(workdir, path)
    try:
        found["ignored"] = bool(
            rules and HELPER.ask("ignored", path=path, folder=found["kind"] == "folder", rules=rules)
        )
    except HelperError as error:
        raise OSError(f"the .gitignore files cannot be applied to {path}: {error}") from error
    return found


def place(workdir: Path, path: str, data: bytes, times: str = "now") -> dict[str, Any]:
    """Write a file with these bytes into the workdir; `times` as in `changing.write`. Raises OSError."""
    changing.write(workdir, path, data, times)
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def tree(workdir: Path, path: str) -> dict[str, Any]:
    """A list of everything below a folder of the workdir. Raises OSError."""
    return files.tree_of(workdir, path)


def search(workdir: Path, path: str, canaries: Sequence[Any]) -> dict[str, Any]:
    """The files below a folder of the workdir in which canaries can be read. Raises OSError."""
    return files.search(workdir, path, [spellings(canary) for canary in canaries])


def remains(workdir: Path, path: str, canaries: Sequence[Any]) -> dict[str, Any]:
    """The files below a folder of the workdir, their modes, and the canaries in each. Raises OSError."""
    return files.remains(workdir, path, [spellings(canary) for canary in canaries])


def link(workdir: Path, path: str, target: str) -> dict[str, Any]:
    """Make a symbolic link in the workdir. Raises OSError."""
    changing.link(workdir, path, target)
    return {"to": target}


def copy(workdir: Path, path: str, to: str, *, move: bool = False) -> dict[str, Any]:
    """Copy a file or folder of the workdir to another place in it, or move it there. Raises OSError."""
    count, size = changing.move(workdir, path, to) if move else changing.copy(workdir, path, to)
    return {"to": to, "files": count, "size": size}


def tamper(workdir: Path, path: str, change: Mapping[str, Any]) -> str | None:
    """Change a file of the workdir; returns why it failed. Raises OSError."""
    if "journal_mode" in change:
        return switch(workdir, path, change["journal_mode"])
    return changing.alter(workdir, path, change)


def insert(workdir: Path, path: str, table: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Put rows into the database itself. Raises OSError."""
    found = files.facts_of(workdir, path)
    if found["kind"] != "file":
        return {"inserted": None, "error": f"there is no database at {path}"}
    return _added(workdir / path, table, rows, or_replace=False)


def alter(workdir: Path, path: str, family: str, key: bytes, value: bytes | None) -> dict[str, Any]:
    """Put a row into the RocksDB database in the folder `path`, or remove it: {error}. Raises OSError."""
    new = None if value is None else value.hex()
    return _altered(workdir, path, family, {"key": key.hex(), "value": new})


def drop(workdir: Path, path: str, family: str, *, really: bool) -> dict[str, Any]:
    """Drop a family of the RocksDB database in the folder `path`: {error}. Raises OSError.

    Not `really`: the database is opened and closed in the same way, and keeps it.
    """
    return _altered(workdir, path, family, {"drop": really})


def _altered(workdir: Path, path: str, family: str, change: Mapping[str, Any]) -> dict[str, Any]:
    error = unfit(workdir, path)
    if error is not None:
        return {"error": error}
    try:
        answer: dict[str, Any] = HELPER.ask("alter rocksdb", path=str(workdir / path), family=family, change=change)
    except HelperError as error:
        return {"error": str(error)}
    return answer


def probe(
    workdir: Path,
    path: str,
    table: str,
    rows: Sequence[Row],
    *,
    or_replace: bool,
    change: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Put rows into a copy of the database, which is then removed. Raises OSError.

    With a `change`, {how, to}, one row is put in, and what is tried is to change it.
    """
    with tempfile.TemporaryDirectory(prefix="probe-", dir=workdir.parent) as folder:
        copy = Path(folder, "copy.db")
        copied = files.copy_database(workdir, path, copy)
        if copied.digest is None:
            return {"inserted": None, "error": copied.error or f"there is no database at {path}"}
        if change is not None:
            (row,) = rows
            return _asked("alter", copy, table, row=dict(row), to=dict(change["to"]), how=change["how"])
        return _added(copy, table, rows, or_replace=or_replace)


def switch(workdir: Path, path: str, journal_mode: str) -> str | None:
    """Let SQLite put the database itself into a journal mode; returns why it failed. Raises OSError."""
    if files.facts_of(workdir, path)["kind"] != "file":
        return f"there is no database at {path}"
    try:
        error: str | None = HELPER.ask("switch", path=str(workdir / path), journal_mode=journal_mode)
    except HelperError as told:
        return str(told)
    return error


def loosen(workdir: Path, path: str, *, holding: str = "") -> dict[str, Any]:
    """Rebuild a SQLite database of the workdir, or each one below a folder, without its constraints. Raises OSError.

    `holding`: only tables with this text in a row, and unique indexes that let every row in take the place of theirs.
    """
    if path != "." and files.facts_of(workdir, path)["kind"] == "file":
        found, error = [path], None
    else:
        listed = files.tree_of(workdir, path)
        found, error = [each["path"] for each in listed["files"] if each["kind"] == "file"], listed["error"]
    try:
        done = [
            {"path": each, **HELPER.ask("loosen", path=str(workdir / each), holding=holding)}
            for each in found
            if _is_sqlite(workdir, each)
        ]
    except HelperError as told:
        return {"error": str(told), "databases": []}
    return {"error": error, "databases": done}


def _is_sqlite(workdir: Path, path: str) -> bool:
    try:
        with (workdir / path).open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def _added(path: Path, table: str, rows: Sequence[Row], *, or_replace: bool) -> dict[str, Any]:
    return _asked("add", path, table, rows=[dict(row) for row in rows], or_replace=or_replace)


def _asked(op: str, path: Path, table: str, **more: Any) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = HELPER.ask(op, path=str(path), table=table, **more)
    except HelperError as error:
        return {"inserted": None, "error": str(error)}
    return answer
