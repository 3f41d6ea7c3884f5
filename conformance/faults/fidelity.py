"""Whether a recording is complete: replayed whole, it must give the directory that the run has left, byte for byte."""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from holdfast.conformance.faults.recording import (
    Action,
    Mapped,
    Named,
    Names,
    Recording,
    Truncate,
    Type,
    Write,
    replay,
)


@dataclass(slots=True)
class _File:
    type: Type = Type.FILE
    data: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True, slots=True)
class _Found:
    """The entry at a name: its bytes if it is a file, its target if a link; `same` are all its names."""

    type: Type
    data: bytes
    same: frozenset[bytes]


def differences(recording: Recording, workdir: Path, ignore: Iterable[str] = ()) -> tuple[str, ...]:
    """The names in `workdir` that a replay of the recording does not explain, sorted; empty if it is complete.

    A name differs if only one side has it, or by its type, bytes, target or hard links. `ignore` are shell patterns of
    names that are of no interest (sockets, statistics, logs); one for a directory covers what is in it. Raises OSError.
    """
    replayed, real = dict(_replayed(recording)), dict(_real(os.fsencode(workdir)))
    patterns = tuple(ignore)
    different = [os.fsdecode(name) for name in {*replayed, *real} if replayed.get(name) != real.get(name)]
    return tuple(sorted(name for name in different if not _ignored(name, patterns)))


def _ignored(name: str, patterns: Iterable[str]) -> bool:
    parts = name.split("/")
    above = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return any(fnmatchcase(each, pattern) for pattern in patterns for each in above)


def _replayed(recording: Recording) -> Iterator[tuple[bytes, _Found]]:
    files: defaultdict[int, _File] = defaultdict(_File)
    names: dict[bytes, int] = {}
    for entry in recording.snapshot:
        files[entry.file] = _File(entry.type, bytearray(entry.data))
        names.update(dict.fromkeys(entry.names, entry.file))
    for operation in recording.operations:
        _apply(operation.action, files, names)
    paths: defaultdict[int, set[bytes]] = defaultdict(set)
    for name, number in names.items():
        paths[number].add(name)
    for name, number in names.items():
        yield name, _Found(files[number].type, bytes(files[number].data), frozenset(paths[number]))


def _apply(action: Action, files: defaultdict[int, _File], names: dict[bytes, int]) -> None:
    if isinstance(action, Names):
        for change in action.changes:
            if isinstance(change, Named):
                names[change.path] = change.file
                # Its bytes may have come first: the file was made without a name, or outside.
                known = files[change.file]
                known.type = change.type
                if change.type is Type.LINK:
                    known.data = bytearray(change.data)
            else:
                names.pop(change.path, None)
    elif isinstance(action, Write | Mapped | Truncate):
        replay(action, files[action.file].data)


def _real(root: bytes) -> Iterator[tuple[bytes, _Found]]:
    found = {path: os.lstat(os.path.join(root, path)) for path in _walk(root)}
    paths: defaultdict[tuple[int, int], set[bytes]] = defaultdict(set)
    for path, status in found.items():
        paths[status.st_dev, status.st_ino].add(path)
    for path, status in found.items():
        whole, data, kind = os.path.join(root, path), b"", Type.OTHER
        if stat.S_ISREG(status.st_mode):
            kind, data = Type.FILE, Path(os.fsdecode(whole)).read_bytes()
        elif stat.S_ISLNK(status.st_mode):
            kind, data = Type.LINK, os.readlink(whole)
        elif stat.S_ISDIR(status.st_mode):
            kind = Type.DIRECTORY
        yield path, _Found(kind, data, frozenset(paths[status.st_dev, status.st_ino]))


def _walk(root: bytes) -> Iterator[bytes]:
    for folder, inner, files in os.walk(root):
        for name in (*inner, *files):
            yield os.path.relpath(os.path.join(folder, name), root)
