"""The names in the work directory, and numbers for the files behind them that outlive names and inodes."""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from holdfast.conformance.faults.recording import ROOT, Change, Entry, Named, Rights, Type, Unnamed

_TYPES = {stat.S_IFREG: Type.FILE, stat.S_IFDIR: Type.DIRECTORY, stat.S_IFLNK: Type.LINK}


class Seen(NamedTuple):
    """What an inspection found: changes of names, and files with bytes whose writing was not observed, with a path."""

    changes: tuple[Change, ...]
    arrived: tuple[tuple[int, bytes], ...] = ()


class Tree:
    """What stands in a directory, at the last inspection."""

    def __init__(self, root: bytes) -> None:
        """`root` is an absolute path without symbolic links. Raises OSError."""
        self.root = root
        self._within = root + b"/"
        found = os.lstat(root)
        self._numbers: dict[tuple[int, int], int] = {(found.st_dev, found.st_ino): ROOT}
        self._names: dict[bytes, int] = {}
        self._paths: defaultdict[int, set[bytes]] = defaultdict(set, {ROOT: {b""}})
        # Files that were opened without a name; they alone can be given a first one later.
        self._nameless: set[int] = set()
        self._last = ROOT

    def snapshot(self) -> tuple[Entry, ...]:
        """All that stands there now, as the start of a recording. Raises OSError."""
        entries: dict[int, Entry] = {}
        for change in self.rescan().changes:
            assert isinstance(change, Named)
            before = entries.get(change.file)
            names = (*(before.names if before else ()), change.path)
            data = change.data
            if change.type is Type.FILE:
                data = before.data if before else _content(self.absolute(change.path))
            entries[change.file] = Entry(change.file, change.type, names, data, change.rights)
        return tuple(entries.values())

    def absolute(self, path: bytes) -> bytes:
        """The whole path of one in the tree."""
        return self._within + path

    def relative(self, path: bytes) -> bytes | None:
        """The path in the tree of an absolute one without symbolic links, or None: it lies outside, or is the root."""
        return path[len(self._within) :] if path.startswith(self._within) else None

    def holds(self, path: bytes) -> bool:
        """Whether an absolute path without symbolic links is the root or lies in it."""
        return path == self.root or path.startswith(self._within)

    def number(self, found: os.stat_result) -> int | None:
        """The number of a file that belongs to the tree, or None.

        A file whose last name in the tree is gone belongs to it while it has no other; with one it has left the tree,
        or its inode is used again outside.
        """
        number = self._numbers.get((found.st_dev, found.st_ino))
        if number is None or self._paths[number] or not found.st_nlink:
            return number
        return None

    def path(self, number: int) -> bytes | None:
        """A name of a file, or None if it has none."""
        return min(self._paths[number], default=None)

    def add_nameless(self, found: os.stat_result) -> int:
        """The number of a file that was just opened with O_TMPFILE."""
        number = self._fresh(found)
        self._nameless.add(number)
        return number

    def look(self, paths: Iterable[bytes], *, linked: bool = False) -> Seen:
        """What one system call has changed at these paths, and below them. `linked`: the call may name a nameless file.

        Raises OSError.
        """
        gone: dict[bytes, int] = {}
        came: dict[bytes, os.stat_result] = {}
        for path in paths:
            found = _lstat(self.absolute(path))
            number = self._names.get(path)
            same = found is not None and number == self._numbers.get((found.st_dev, found.st_ino))
            if number is not None and not same:
                gone.update(self._below(path, number))
            if found is not None and (number is None or not same):
                came[path] = found
                if stat.S_ISDIR(found.st_mode):
                    came.update(self._walk(path))
        keys = {key: self._numbers[key] for key in map(_key, came.values()) if key in self._numbers}
        # A file without names can have no more of them: its inode is used again, or it was outside for a while.
        kept = {n for n in keys.values() if self._paths[n] or (linked and n in self._nameless)}
        changes: list[Change] = []
        # What lies in a directory goes before it and comes after it.
        for path in sorted(gone, reverse=True):
            number = self._names.pop(path)
            self._paths[number].discard(path)
            changes.append(Unnamed(path, number))
        arrived: dict[int, bytes] = {}
        for path in sorted(came):
            found = came[path]
            kind = _TYPES.get(stat.S_IFMT(found.st_mode), Type.OTHER)
            number = self._numbers.get(_key(found))
            if number is None or number not in kept:
                number = self._fresh(found)
                kept.add(number)
                if kind is Type.FILE and found.st_size:
                    arrived[number] = path
            self._nameless.discard(number)
            self._names[path] = number
            self._paths[number].add(path)
            data = os.readlink(self.absolute(path)) if kind is Type.LINK else b""
            changes.append(Named(path, number, kind, data, rights(found)))
        return Seen(tuple(changes), tuple(arrived.items()))

    def rescan(self) -> Seen:
        """What has changed anywhere, as if by one call. Raises OSError."""
        return self.look({**self._names, **dict(self._walk(b""))})

    def _fresh(self, found: os.stat_result) -> int:
        self._last += 1
        self._numbers[_key(found)] = self._last
        return self._last

    def _below(self, path: bytes, number: int) -> Iterator[tuple[bytes, int]]:
        yield path, number
        start = path + b"/"
        yield from [(name, each) for name, each in self._names.items() if name.startswith(start)]

    def _walk(self, path: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
        with os.scandir(self.absolute(path) if path else self.root) as entries:
            for entry in entries:
                name = path + b"/" + entry.name if path else entry.name
                # What vanishes meanwhile is as if it had not been there.
                found = _lstat(self.absolute(name))
                if found is not None:
                    yield name, found
                    if stat.S_ISDIR(found.st_mode):
                        yield from self._walk(name)


def rights(found: os.stat_result) -> Rights:
    """The mode and the owner of a file."""
    return Rights(stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid)


def _key(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _lstat(path: bytes) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _content(path: bytes) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()
