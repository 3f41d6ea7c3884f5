"""Reads from a workdir that an adapter shares. It follows no link, and opens only plain files.

Paths are relative to the workdir, with slashes. Everything raises OSError, FileNotFoundError where nothing is there.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from holdfast.conformance.inspection.beyond import LONGEST, TMPDIR, temporary_of, told, written_since
from holdfast.vectors.canaries import occurring, spellings

# A larger file is neither hashed nor copied.
MAX_FILE = 64 * 1024 * 1024
# The bytes of a larger file are not shown.
MAX_SHOWN = 64 * 1024
MAX_ENTRIES = 10_000
# Bytes of all paths that a listing shows.
_MAX_PATHS = 1_000_000
_MAX_RULES = 64 * 1024
_TRIES = 6
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A FIFO must not make the kit wait.
PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# The name of a copy of an SQLite database.
COPY = "copy.db"
_JOURNAL = bytes.fromhex("d9d505f920a163d7")
_KINDS = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link"))


def parts_of(path: str) -> tuple[str, ...]:
    """The parts of a path inside a workdir. Raises ValueError for any other."""
    parts = tuple(path.split("/"))
    if not path or "\x00" in path or any(part in {"", ".", ".."} for part in parts):
        raise ValueError(f"expected a path inside the workdir, such as runtime/store.db, got {path!r}")
    return parts


def shown(path: str) -> str:
    """A path as it is reported: what in it is not UTF-8 stands as `\\xNN`, and so does a backslash, `\\x5c`.

    So no two names are reported alike.
    """
    return os.fsencode(path).replace(b"\\", b"\\x5c").decode("utf-8", "backslashreplace")


@contextlib.contextmanager
def folder_of(workdir: Path, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """A descriptor of the folder that holds `path`, and the last part of the path."""
    *folders, last = parts_of(path)
    at = os.open(workdir, _FOLDER)
    try:
        for name in folders:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=at)
            try:
                inner = os.open(name, _FOLDER, dir_fd=at)
            except NotADirectoryError as error:
                if stat.S_ISLNK(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
                    raise OSError(errno.ELOOP, f"{name} in {path} is a symbolic link") from error
                raise
            os.close(at)
            at = inner
        yield at, last
    finally:
        os.close(at)


def facts_of(workdir: Path, path: str) -> dict[str, Any]:
    """A description of a file: {exists, kind, mode, size, sha256, bytes}.

    The last three are null for what is no plain file, sha256 for one of more than MAX_FILE bytes, and `bytes`
    (base64url) for one of more than MAX_SHOWN.
    """
    parts = ("kind", "mode", "size", "sha256", "bytes")
    found: dict[str, Any] = {"exists": False, **dict.fromkeys(parts)}
    try:
        with folder_of(workdir, path) as (folder, name):
            state = os.stat(name, dir_fd=folder, follow_symlinks=False)
            found["exists"] = True
            found["kind"] = kind_of(state)
            found["mode"] = f"{stat.S_IMODE(state.st_mode):04o}"
            if found["kind"] == "file":
                found["size"] = state.st_size
                if state.st_size <= MAX_FILE:
                    data = read_plain(folder, name, MAX_FILE)
                    # It may have grown meanwhile; what is reported must be of one moment.
                    found["size"], found["sha256"] = len(data), hashlib.sha256(data).hexdigest()
                    if len(data) <= MAX_SHOWN:
                        found["bytes"] = base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
    except (FileNotFoundError, NotADirectoryError):
        pass
    return found


def kind_of(state: os.stat_result) -> str:
    """The kind of an entry: file, folder, link or other."""
    return next((kind for fits, kind in _KINDS if fits(state.st_mode)), "other")


def tree(workdir: Path, path: str) -> dict[str, Any]:
    """Everything below a folder: {exists, error, files: [{path, kind, size}]}, in the order of the paths.

    Paths are relative to the workdir, `.` is the workdir itself; what in a name is not UTF-8 stands as `\\xNN`. No link
    is followed, and size is null for what is no plain file. `error` says why nothing is listed: no folder, too much.
    """
    found: list[dict[str, Any]] = []
    length = 0
    # An empty path means the workdir itself; any other is opened from it part by part.
    ways = ["" if path == "." else path]
    top = ways[0]
    while ways:
        way = ways.pop()
        try:
            with _opened(workdir, way) as folder:
                for name in os.listdir(folder):
                    try:
                        state = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    except FileNotFoundError:
                        # It went between two inspections.
                        continue
                    below = f"{way}/{name}".lstrip("/")
                    kind = kind_of(state)
                    told = shown(below)
                    found.append({"path": told, "kind": kind, "size": state.st_size if kind == "file" else None})
                    length += len(told)
                    if len(found) > MAX_ENTRIES or length > _MAX_PATHS:
                        what = f"{MAX_ENTRIES} files and folders, or their paths are longer than {_MAX_PATHS} bytes"
                        return {"exists": True, "error": f"there are more than {what}", "files": []}
                    if kind == "folder":
                        ways.append(below)
        except FileNotFoundError:
            if way == top:
                return {"exists": False, "error": None, "files": []}
        except OSError as error:
            if way == top:
                return {"exists": True, "error": f"it is no folder that can be listed: {error.strerror}", "files": []}
            raise
    return {"exists": True, "error": None, "files": sorted(found, key=lambda entry: str(entry["path"]))}


def search(workdir: Path, path: str, canaries: Sequence[Any]) -> dict[str, Any]:
    """Where canaries can be read below a folder: {error, files, bytes, found: [{path, which}]}.

    All bytes of all plain files are read, the targets of links and every path as well; `which` is the number of the
    canary from 0, `files` and `bytes` how much was read. `error` says why nothing can be reported: no such folder, too
    much in it, a file that cannot be read.
    """
    wanted, files, size = [spellings(canary) for canary in canaries], 0, 0
    found: set[tuple[str, int]] = set()
    try:
        for top, at, kind, data in _contents(workdir, path, wanted):
            path_told = told(workdir, top, at)
            found |= {(path_told, which) for each in (data, at.encode()) for which in occurring(wanted, each)}
            files, size = (files + 1, size + len(data)) if kind == "file" else (files, size)
    except _UnsearchableError as error:
        return {"error": str(error), "files": 0, "bytes": 0, "found": []}
    listed = [{"path": at, "which": which} for at, which in sorted(found)[:MAX_ENTRIES]]
    return {"error": None, "files": files, "bytes": size, "found": listed}


def remains(workdir: Path, path: str, canaries: Sequence[Any]) -> dict[str, Any]:
    """The plain files below a folder: {error, files: [{path, mode, open, which}]}, in the order of the paths.

    `open` says whether others than the owner may read it, as far as its mode and those of the folders below the
    workdir say so. `which` are the canaries that can be read in it or in its path. See `search`.
    """
    wanted, found = [spellings(canary) for canary in canaries], []
    try:
        for top, at, kind, data in _contents(workdir, path, wanted):
            mode = _mode(top, at) if kind == "file" else None
            if mode is not None:
                path_told, is_open = told(workdir, top, at), _is_open(top, at, mode)
                which = sorted({*occurring(wanted, data), *occurring(wanted, at.encode())})
                found.append({"path": path_told, "mode": f"{mode:04o}", "open": is_open, "which": which})
    except _UnsearchableError as error:
        return {"error": str(error), "files": []}
    return {"error": None, "files": sorted(found, key=lambda entry: str(entry["path"]))}


def _is_open(workdir: Path, path: str, mode: int) -> bool:
    """Whether the group or all others may read a file of this mode through its folders."""
    folders = ["/".join(path.split("/")[:depth]) for depth in range(1, path.count("/") + 1)]
    ways = [_mode(workdir, folder) or 0 for folder in folders]
    return any(mode & 4 << who and all(way & 1 << who for way in ways) for who in (0, 3))


def _mode(workdir: Path, path: str) -> int | None:
    """The mode of a file or folder; None if it went meanwhile."""
    try:
        with folder_of(workdir, path) as (folder, name):
            return stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None


class _UnsearchableError(Exception):
    """Why the content of a folder cannot be read."""


def _contents(workdir: Path, path: str, wanted: Sequence[Sequence[bytes]]) -> Iterator[tuple[Path, str, str, bytes]]:
    """Everything below a folder, one at a time: the workdir, and below it the path, its kind and bytes.

    The bytes of a link are its target. TMPDIR is the temporary folder, which comes after the whole workdir too; then
    each file elsewhere that was written since the run began and has something of what is wanted in it. Raises
    _UnsearchableError.
    """
    if path != TMPDIR:
        yield from _below(workdir, path)
    temporary = temporary_of(workdir)
    if path in (".", TMPDIR) and temporary is not None:
        yield from _below(temporary, ".", longest=LONGEST)
    if path == ".":
        for file in written_since(workdir.parent):
            if occurring(wanted, data := _ending(file)):
                yield file.parent, file.name, "file", data


def _below(top: Path, path: str, longest: int | None = None) -> Iterator[tuple[Path, str, str, bytes]]:
    listed = tree(top, path)
    if listed["error"] is not None or not listed["exists"]:
        raise _UnsearchableError(listed["error"] or "there is no such folder")
    size = 0
    for entry in listed["files"]:
        at, kind = entry["path"], entry["kind"]
        if longest is not None and (entry["size"] or 0) > longest:
            continue
        try:
            data = _searched(top, at, kind, MAX_FILE - size)
        except FileNotFoundError:
            if "\\x" in at:
                raise _UnsearchableError(f"{at} cannot be read: its name is not UTF-8, or it went meanwhile") from None
            # It went between two inspections; its name was there all the same.
            data = b""
        except OSError as error:
            raise _UnsearchableError(f"{at} cannot be read: {error.strerror}") from error
        size += len(data) if kind == "file" else 0
        if size > MAX_FILE:
            raise _UnsearchableError(f"there are more than {MAX_FILE} bytes")
        yield top, at, kind, data


def _ending(path: Path) -> bytes:
    """How a plain file ends: a log may be long, and it grows there. Nothing, if it cannot be read."""
    with contextlib.suppress(OSError), open(os.open(path, os.O_RDONLY | PLAIN), "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - LONGEST))
        return file.read(LONGEST)
    return b""


def _searched(workdir: Path, path: str, kind: str, most: int) -> bytes:
    """The content of a file, at most one byte more than `most`, or the target of a link. Raises OSError."""
    if kind not in {"file", "link"}:
        return b""
    with folder_of(workdir, path) as (folder, name):
        return read_plain(folder, name, most + 1) if kind == "file" else os.fsencode(os.readlink(name, dir_fd=folder))


@contextlib.contextmanager
def _opened(workdir: Path, path: str) -> Iterator[int]:
    """A descriptor of a folder; of the workdir if the path is empty."""
    if not path:
        at = os.open(workdir, _FOLDER)
    else:
        with folder_of(workdir, path) as (folder, name):
            at = os.open(name, _FOLDER, dir_fd=folder)
    try:
        yield at
    finally:
        os.close(at)


def read_plain(folder: int, name: str, most: int) -> bytes:
    """The first bytes of a plain file in an open folder."""
    with open(os.open(name, os.O_RDONLY | PLAIN, dir_fd=folder), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, f"{name} is no plain file")
        return file.read(most)


def rules_of(workdir: Path, path: str) -> dict[str, str]:
    """The .gitignore files that may apply to `path`, by their folder, without links and files that are too long."""
    parts = parts_of(path)
    found: dict[str, str] = {}
    for depth in range(len(parts)):
        where = "/".join(parts[:depth])
        with contextlib.suppress(OSError), folder_of(workdir, f"{where}/.gitignore".lstrip("/")) as (folder, name):
            found[where] = read_plain(folder, name, _MAX_RULES).decode("utf-8", "replace")
    return found


@dataclass(frozen=True, slots=True)
class Copied:
    """A copy of a database and its write-ahead log, or why there is none. `digest` covers the bytes of both."""

    exists: bool
    error: str | None = None
    digest: str | None = None


class UnfitError(Exception):
    """Why a database is not copied."""


class UnfinishedError(Exception):
    """Why a database cannot be copied at this moment."""


# Of each file: inode, size and times of its last changes. Its last reading is no part of it: copying changes that.
States: TypeAlias = Mapping[str, tuple[int, int, int, int]]


def state_of(folder: int, name: str, what: str) -> tuple[int, int, int, int]:
    """The state of a plain file. Raises UnfitError for anything else, FileNotFoundError."""
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(found.st_mode):
        raise UnfitError(f"{what} is no plain file ({kind_of(found)})")
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def copied(into: Path, states: Callable[[], States], copy: Callable[[States], str]) -> Copied:
    """A copy of a database in the folder `into`. One that changes meanwhile is tried again.

    `states` are those of its files, none where no database is; `copy` returns the digest of the copy.
    """
    why = ""
    for attempt in range(_TRIES):
        time.sleep(0.02 * attempt)
        for old in into.iterdir():
            old.unlink()
        try:
            before = states()
            if not before:
                # One look is no proof: it may have been in the middle of a replacement.
                if attempt:
                    return Copied(exists=False)
                continue
            digest = copy(before)
            if before == states():
                return Copied(exists=True, digest=digest)
            why = "it changed while it was copied"
        except UnfitError as error:
            return Copied(exists=True, error=str(error))
        except UnfinishedError as error:
            why = str(error)
        except FileNotFoundError:
            why = "it changed while it was copied"
        except OSError as error:
            return Copied(exists=True, error=f"it cannot be read: {error.strerror}")
    return Copied(exists=True, error=f"{why}, {_TRIES} times in a row")


def copy_database(workdir: Path, path: str, into: Path) -> Copied:
    """Copy the SQLite database at `path` into the folder `into`, as COPY, its -wal beside it."""
    return copied(into, lambda: _states(workdir, path), lambda states: _copy(workdir, path, states, into))


def _states(workdir: Path, path: str) -> States:
    """The database and its write-ahead log, by what their names end with."""
    found = {}
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), folder_of(workdir, path) as (folder, name):
        for suffix, what in (("", "it"), ("-wal", "its -wal")):
            found[suffix] = state_of(folder, name + suffix, what)
            size = found[suffix][1]
            if size > MAX_FILE:
                raise UnfitError(f"{what} has {size} bytes; at most {MAX_FILE} are looked into")
    if found and not found[""][1]:
        raise UnfitError("it is empty")
    return found


def _copy(workdir: Path, path: str, states: States, into: Path) -> str:
    digest = hashlib.sha256()
    with folder_of(workdir, path) as (folder, name):
        for suffix in ("", "-wal"):
            data = b""
            if suffix in states:
                data = read_plain(folder, name + suffix, MAX_FILE)
                (into / f"{COPY}{suffix}").write_bytes(data)
            digest.update(len(data).to_bytes(8, "big") + data)
        with contextlib.suppress(OSError):
            if read_plain(folder, f"{name}-journal", len(_JOURNAL)) == _JOURNAL:
                raise UnfinishedError("a rollback journal says that it is within a transaction")
    return digest.hexdigest()
