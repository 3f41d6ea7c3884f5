"""Copies a RocksDB database out of a workdir that an adapter shares. It follows no link, and opens only plain files.

Paths are relative to the workdir, with slashes. Everything raises OSError.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from holdfast.conformance.inspection.files import MAX_ENTRIES, MAX_FILE, Copied, folder_of, read_plain

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
