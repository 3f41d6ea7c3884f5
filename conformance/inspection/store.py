"""The inspections of a driver: each function carries one step out and returns its value (docs/case-language.md)."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from holdfast.conformance.inspection import changing, files
from holdfast.conformance.inspection.database import MAX_LOOK, nothing
from holdfast.conformance.inspection.files import (
    COPY,
    MAX_ENTRIES,
    MAX_FILE,
    Copied,
    States,
    UnfitError,
    folder_of,
    read_plain,
    state_of,
)
from holdfast.conformance.inspection.helper import HELPER, HelperError
from holdfast.specs.strictjson import canonical

# Copies a RocksDB database out of a workdir that an adapter shares. It follows no link, and opens only plain files.
# Paths are relative to the workdir, with slashes. Everything raises OSError.

# What holds rows, or says which files do. RocksDB's lock and its log of events are no part of the database.
_HOLDS = re.compile(r"CURRENT|IDENTITY|(?:MANIFEST|OPTIONS)-[0-9]+|[0-9]+\.(?:sst|ldb|log|blob)")
_LOG = re.compile(r"[0-9]+\.log")
_OPTIONS = "OPTIONS-"
_LOGS_ELSEWHERE = re.compile(rb"^\s*wal_dir=(.+?)\s*$", re.MULTILINE)
_MAX_OPTIONS = 1 << 20


def copy_rocksdb(workdir: Path, path: str, into: Path) -> Copied:
    """Copy the database in the folder `path` to the folder `into`.

    `digest` covers the name and the bytes of every file.
    """
    return files.copied(into, lambda: _states(workdir, path), lambda states: _copy(workdir, states, into))


def unfit(workdir: Path, path: str) -> str | None:
    """Why the database in the folder `path` must not be written to; None if it can be."""
    try:
        return None if _states(workdir, path) else f"there is no database at {path}"
    except UnfitError as error:
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


def _states(workdir: Path, path: str) -> States:
    """The files of the database by their paths; none if the folder is not there, or holds no database."""
    try:
        found = _listed(workdir, path, _HOLDS)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    logs = _logs_of(workdir, path, found)
    if logs not in {None, path}:
        found |= _listed(workdir, str(logs), _LOG)
    size = sum(state[1] for state in found.values())
    if size > MAX_FILE:
        raise UnfitError(f"it has {size} bytes; at most {MAX_FILE} are inspected")
    return found


def _listed(workdir: Path, path: str, wanted: re.Pattern[str]) -> dict[str, tuple[int, int, int, int]]:
    found = {}
    with folder_of(workdir, f"{path}/CURRENT") as (folder, _):
        for name in filter(wanted.fullmatch, os.listdir(folder)):
            found[f"{path}/{name}"] = state_of(folder, name, name)
    if len(found) > MAX_ENTRIES:
        raise UnfitError(f"it has more than {MAX_ENTRIES} files")
    return found


def _logs_of(workdir: Path, path: str, found: States) -> str | None:
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
        raise UnfitError("its write-ahead log lies outside of the workdir")
    return below


def _copy(workdir: Path, states: States, into: Path) -> str:
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
# What came of rows about which nothing is known.
_NOT_TRIED = {"inserted": None}
# The last content that was read, by its digest: half of all inspections meet the bytes of the one before.
_latest: dict[str | None, dict[str, Any]] = {}


def inspect(workdir: Path, path: str, kind: str = "sqlite") -> dict[str, Any]:
    """The content of the database at `path` in the workdir. Only a copy is opened. Raises OSError.

    `kind` is its format: sqlite for a file, rocksdb for a folder.
    """
    with tempfile.TemporaryDirectory(prefix="look-", dir=workdir.parent) as folder:
        copy, op = (Path(folder), "inspect rocksdb") if kind == "rocksdb" else (Path(folder, COPY), "inspect")
        copied = (copy_rocksdb if kind == "rocksdb" else files.copy_database)(workdir, path, Path(folder))
        if (known := _latest.get(copied.digest)) is not None:
            return known
        found = nothing(exists=copied.exists, error=copied.error)
        if copied.digest is not None:
            found = {**_asked(op, nothing(exists=True, error=None), path=str(copy)), "digest": copied.digest}
    if len(canonical(found)) > MAX_LOOK:
        found = nothing(exists=True, error=f"a look at it takes more than {MAX_LOOK} bytes", digest=copied.digest)
    if kind == "rocksdb" and found["exists"] and found["error"] is not None:
        found["digest"] = identity_of(workdir, path)
    if found["exists"] and found["error"] is None:
        _latest.clear()
        _latest[copied.digest] = found
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


def tamper(workdir: Path, path: str, change: Mapping[str, Any]) -> str | None:
    """Change a file of the workdir, or the journal mode of a database; returns why it failed. Raises OSError."""
    if "journal_mode" not in change:
        return changing.alter(workdir, path, change)
    if files.facts_of(workdir, path)["kind"] != "file":
        return f"there is no database at {path}"
    error: str | None = _asked("switch", {}, path=str(workdir / path), journal_mode=change["journal_mode"])["error"]
    return error


def insert(workdir: Path, path: str, table: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Put rows into the database itself. Raises OSError."""
    found = files.facts_of(workdir, path)
    if found["kind"] != "file":
        return {"inserted": None, "error": f"there is no database at {path}"}
    return _added(workdir / path, table, rows, or_replace=False)


def alter(workdir: Path, path: str, family: str, change: Mapping[str, Any]) -> dict[str, Any]:
    """Change a family of the RocksDB database in the folder `path`, as `rocksdb.alter` does. Raises OSError."""
    error = unfit(workdir, path)
    if error is not None:
        return {"error": error}
    return _asked("alter rocksdb", {}, path=str(workdir / path), family=family, change=change)


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
        copy, copied = Path(folder, COPY), files.copy_database(workdir, path, Path(folder))
        if copied.digest is None:
            return {"inserted": None, "error": copied.error or f"there is no database at {path}"}
        if change is not None:
            (row,) = rows
            words = {"row": dict(row), "to": dict(change["to"]), "how": change["how"]}
            return _asked("alter", _NOT_TRIED, path=str(copy), table=table, **words)
        return _added(copy, table, rows, or_replace=or_replace)


def loosen(workdir: Path, path: str, *, holding: str = "") -> dict[str, Any]:
    """Rebuild a SQLite database of the workdir, or each one below a folder, without its constraints. Raises OSError.

    `holding`: only tables with this text in a row, and unique indexes that let every row in take the place of theirs.
    """
    if path != "." and files.facts_of(workdir, path)["kind"] == "file":
        found, error = [path], None
    else:
        listed = files.tree(workdir, path)
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
    given = [dict(row) for row in rows]
    return _asked("add", _NOT_TRIED, path=str(path), table=table, rows=given, or_replace=or_replace)


def _asked(op: str, otherwise: Mapping[str, Any], **words: Any) -> dict[str, Any]:
    """The answer of the process that opens databases; `otherwise` with the error if it has none."""
    try:
        answer: dict[str, Any] = HELPER.ask(op, **words)
    except HelperError as error:
        return {**otherwise, "error": str(error)}
    return answer
