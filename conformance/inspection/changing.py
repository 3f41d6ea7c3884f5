"""Changes files in a workdir that an adapter shares. It follows no link, and writes into no file that has another name
elsewhere.

Paths are relative to the workdir, with slashes. Everything raises OSError, FileNotFoundError where nothing is there.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.conformance.inspection.files import (
    MAX_ENTRIES,
    MAX_FILE,
    PLAIN,
    folder_of,
    kind_of,
    parts_of,
    read_plain,
)

_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN


def target_of(path: str, target: str) -> str:
    """The target of a link at `path`, which must lie in the workdir too. Raises ValueError for any other."""
    if not target or "\x00" in target or target.startswith("/"):
        raise ValueError(f"expected a relative path as the target of a link, got {target!r}")
    depth = len(parts_of(path)) - 1
    for part in target.split("/"):
        depth += 0 if part in {"", "."} else -1 if part == ".." else 1
        if depth < 0:
            raise ValueError(f"the link {path} to {target} leaves the workdir")
    return target


def link(workdir: Path, path: str, target: str) -> dict[str, Any]:
    """Make a symbolic link at an empty place; parent folders are made."""
    with folder_of(workdir, path, make=True) as (folder, name):
        os.symlink(target_of(path, target), name, dir_fd=folder)
    return {"to": target}


def place(workdir: Path, path: str, content: bytes, times: str = "now") -> dict[str, Any]:
    """Write a file, in place of an existing one; folders are made. A file with other names stays as it is there.

    With the `times` "kept" an existing one looks as old as it was, as after `cp -p` or a disk that turned a bit.
    """
    placed = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    with folder_of(workdir, path, make=True) as (folder, name):
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | PLAIN, 0o666, dir_fd=folder)
        try:
            state = _plain(handle, path)
            if state.st_nlink == 1:
                os.ftruncate(handle, 0)
                _fill(handle, content)
                if times == "kept":
                    os.utime(handle, ns=(state.st_atime_ns, state.st_mtime_ns))
                return placed
        finally:
            os.close(handle)
        _replace(folder, name, state, content)
    return placed


def alter(workdir: Path, path: str, change: Mapping[str, Any]) -> str | None:
    """Delete a file, cut it, or turn the bits of one byte: {delete: true}, {truncate: LENGTH} or {flip: OFFSET}.

    Returns a text that says why it failed. Under its other names a file stays as it is.
    """
    try:
        with folder_of(workdir, path) as (folder, name):
            state = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISREG(state.st_mode):
                return f"{path} is no plain file in the workdir but a {kind_of(state)}"
            if change.get("delete"):
                os.unlink(name, dir_fd=folder)
                return None
            if state.st_nlink > 1:
                _replace(folder, name, state, read_plain(folder, name, _fitting(state, path)))
            handle = os.open(name, os.O_RDWR | PLAIN, dir_fd=folder)
            try:
                _plain(handle, path)
                return _altered(handle, path, change)
            finally:
                os.close(handle)
    except (FileNotFoundError, NotADirectoryError):
        return f"{path} is no file in the workdir"


def _altered(handle: int, path: str, change: Mapping[str, Any]) -> str | None:
    if "truncate" in change:
        os.ftruncate(handle, change["truncate"])
        return None
    byte = os.pread(handle, 1, change["flip"])
    if not byte:
        return f"{path} has no byte {change['flip']}"
    os.pwrite(handle, bytes([byte[0] ^ 0xFF]), change["flip"])
    return None


def _plain(handle: int, path: str) -> os.stat_result:
    state = os.fstat(handle)
    if not stat.S_ISREG(state.st_mode):
        raise OSError(errno.EINVAL, f"{path} is no plain file")
    return state


def _fitting(state: os.stat_result, path: str) -> int:
    if state.st_size > MAX_FILE:
        raise OSError(errno.EFBIG, f"{path} has {state.st_size} bytes; at most {MAX_FILE} are copied")
    return state.st_size


def _replace(folder: int, name: str, state: os.stat_result, content: bytes) -> None:
    """Put a file of its own in the place of one that has other names; they keep the old one."""
    os.unlink(name, dir_fd=folder)
    _make(folder, name, stat.S_IMODE(state.st_mode), content)


def _make(folder: int, name: str, mode: int, content: bytes) -> None:
    handle = os.open(name, _MAKE, 0o600, dir_fd=folder)
    try:
        _fill(handle, content)
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


def _fill(handle: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(handle, view) :]


# Copies


@dataclass(frozen=True, slots=True)
class _Entry:
    """One copied entry: its path below the requested one (empty for itself), its mode, and its content.

    `content` are the bytes of a file, `target` is where a link leads; a folder has neither.
    """

    path: str
    mode: int
    content: bytes | None = None
    target: str | None = None


def apart(path: str, to: str) -> None:
    """Raises ValueError where one of two paths equals the other, or lies in it."""
    first, second = parts_of(path), parts_of(to)
    shorter = min(len(first), len(second))
    if first[:shorter] == second[:shorter]:
        raise ValueError(f"expected two places of which none lies in the other, got {path} and {to}")


def copy(workdir: Path, path: str, to: str, *, move: bool = False) -> dict[str, Any]:
    """Replace the entry at `to` with a copy of a file or folder, or with the entry itself; how many files and bytes.

    Everything is read first: an error in reading leaves the entry at `to`. What is moved stays open to a process that
    has it open.
    """
    entries = list(_read_all(workdir, path))
    _clear(workdir, to)
    if move:
        with folder_of(workdir, path) as (old, name), folder_of(workdir, to, make=True) as (new, other):
            os.rename(name, other, src_dir_fd=old, dst_dir_fd=new)
    else:
        _make_all(workdir, to, entries)
    sizes = [len(entry.content) for entry in entries if entry.content is not None]
    return {"to": to, "files": len(sizes), "size": sum(sizes)}


def _make_all(workdir: Path, to: str, entries: Sequence[_Entry]) -> None:
    """Make a copy. Modes are kept, links are copied as links."""
    for entry in entries:
        with folder_of(workdir, f"{to}/{entry.path}".rstrip("/"), make=True) as (folder, name):
            if entry.target is not None:
                os.symlink(entry.target, name, dir_fd=folder)
            elif entry.content is not None:
                _make(folder, name, entry.mode, entry.content)
            else:
                os.mkdir(name, 0o700, dir_fd=folder)
    # Modes come last, from the innermost folder: until then a folder that will be read-only can be filled.
    for entry in reversed(entries):
        if entry.content is None and entry.target is None:
            with folder_of(workdir, f"{to}/{entry.path}".rstrip("/")) as (folder, name):
                os.chmod(name, entry.mode, dir_fd=folder)


def _read_all(workdir: Path, path: str) -> Iterator[_Entry]:
    """Everything at a path, folders in front of what lies in them; no more than MAX_ENTRIES and MAX_FILE bytes."""
    ways, count, left = [""], 0, MAX_FILE
    while ways:
        way = ways.pop()
        count += 1
        if count > MAX_ENTRIES:
            raise OSError(errno.EFBIG, f"{path} holds more than {MAX_ENTRIES} files and folders")
        with folder_of(workdir, f"{path}/{way}".rstrip("/")) as (folder, name):
            state = os.stat(name, dir_fd=folder, follow_symlinks=False)
            kind, mode = kind_of(state), stat.S_IMODE(state.st_mode)
            if kind == "link":
                if not way:
                    raise OSError(errno.ELOOP, f"{path} is a symbolic link")
                yield _Entry(way, mode, target=os.readlink(name, dir_fd=folder))
            elif kind == "file":
                content = read_plain(folder, name, left + 1)
                left -= len(content)
                if left < 0:
                    raise OSError(errno.EFBIG, f"{path} holds more than {MAX_FILE} bytes")
                yield _Entry(way, mode, content=content)
            elif kind == "folder":
                yield _Entry(way, mode)
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                try:
                    ways += [f"{way}/{below}".lstrip("/") for below in sorted(os.listdir(inner), reverse=True)]
                finally:
                    os.close(inner)
            else:
                raise OSError(errno.EINVAL, f"{path}/{way} is neither file, folder nor link")


def _clear(workdir: Path, path: str) -> None:
    """Remove the entry at a path."""
    try:
        with folder_of(workdir, path) as (folder, name):
            if kind_of(os.stat(name, dir_fd=folder, follow_symlinks=False)) == "folder":
                shutil.rmtree(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass
