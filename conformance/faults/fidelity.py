"""Whether a recording is complete: replayed whole, it must give the directory that the run has left, byte for byte."""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from holdfast.conformance.faults.recording import Entry, Mapped, Named, Names, Recording, Truncate, Type, Write, replay


def differences(recording: Recording, workdir: Path, ignore: Iterable[str] = ()) -> tuple[str, ...]:
    """The names in `workdir` that a replay of the recording does not explain, sorted; empty if it is complete.

    A name differs if only one side has it, or by its type, bytes, target or hard links. `ignore` are shell patterns of
    names that are of no interest (sockets, statistics, logs); one for a directory covers what is in it. Raises OSError.
    """
    replayed = _by_name(_replayed(recording))
    real = dict(_real(os.fsencode(workdir)))
    patterns = tuple(ignore)
    different = [os.fsdecode(name) for name in {*replayed, *real} if replayed.get(name) != real.get(name)]
    return tuple(sorted(name for name in different if not _ignored(name, patterns)))


def _ignored(name: str, patterns: Iterable[str]) -> bool:
    parts = name.split("/")
    above = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return any(fnmatchcase(each, pattern) for pattern in patterns for each in above)


def _by_name(entries: Iterable[Entry]) -> dict[bytes, tuple[Type, bytes, frozenset[bytes]]]:
    return {name: (one.type, one.data, frozenset(one.names)) for one in entries for name in one.names}


def _replayed(recording: Recording) -> Iterator[Entry]:
    """What must be there at the end."""
    types = {entry.file: entry.type for entry in recording.snapshot}
    data = defaultdict(bytearray, {entry.file: bytearray(entry.data) for entry in recording.snapshot})
    names = {name: entry.file for entry in recording.snapshot for name in entry.names}
    for operation in recording.operations:
        action = operation.action
        if isinstance(action, Write | Mapped | Truncate):
            replay(action, data[action.file])
        for change in action.changes if isinstance(action, Names) else ():
            if not isinstance(change, Named):
                names.pop(change.path, None)
                continue
            # Its bytes may have come first: the file was made without a name, or outside.
            names[change.path], types[change.file] = change.file, change.type
            if change.type is Type.LINK:
                data[change.file] = bytearray(change.data)
    paths: defaultdict[int, list[bytes]] = defaultdict(list)
    for name, number in names.items():
        paths[number].append(name)
    for number, own in paths.items():
        yield Entry(number, types[number], tuple(own), bytes(data[number]))


def _real(root: bytes) -> Iterator[tuple[bytes, tuple[Type, bytes, frozenset[bytes]]]]:
    """What stands there, read in another way than the tracer reads: what that overlooks is found here."""
    entries = (os.path.join(at, name) for at, inner, files in os.walk(root) for name in (*inner, *files))
    found = {os.path.relpath(path, root): os.lstat(path) for path in entries}
    same: defaultdict[tuple[int, int], set[bytes]] = defaultdict(set)
    for path, status in found.items():
        same[status.st_dev, status.st_ino].add(path)
    for path, status in found.items():
        whole, data, kind = os.path.join(root, path), b"", Type.OTHER
        if stat.S_ISREG(status.st_mode):
            kind, data = Type.FILE, Path(os.fsdecode(whole)).read_bytes()
        elif stat.S_ISLNK(status.st_mode):
            kind, data = Type.LINK, os.readlink(whole)
        elif stat.S_ISDIR(status.st_mode):
            kind = Type.DIRECTORY
        yield path, (kind, data, frozenset(same[status.st_dev, status.st_ino]))
