"""What all stores in Python share: lines on standard input and output, and the shape of a put.

A store works as for every user: it knows its work directory, but not crashes and not its caller. It is started
three times for each point of a sweep, so nothing is imported here that a store may not need.
"""

from __future__ import annotations

import json
import os
import sys
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Protocol

    class Store(Protocol):
        """Opened on a folder. Every put is one write of two facts."""

        def put(self, facts: dict[str, str]) -> None: ...

        def dump(self) -> dict[str, str]: ...

        def close(self) -> None: ...


class Kept:
    """A store whose facts are in memory, and whose file, if it has one open, is closed at its end."""

    _facts: dict[str, str]
    _fd = -1

    def dump(self) -> dict[str, str]:
        return self._facts

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


def say(line: str) -> None:
    """One line, in one write."""
    os.write(1, line.encode() + b"\n")


def serve(opened: Callable[[str, str], Store]) -> None:
    """`python -m tests.faults.stores.FAMILY VARIANT FOLDER`: run until the input ends.

    After an error the state of the disk is unknown, so the program answers and ends. The next start reads the state.
    """
    store = opened(sys.argv[1], sys.argv[2])
    say("READY")
    for line in sys.stdin:
        words = line.split()
        if words == ["DUMP"]:
            say(json.dumps(store.dump()))
        elif len(words) == 3 and words[0] == "PUT":
            try:
                store.put({f"{words[1]}.left": words[2], f"{words[1]}.right": words[2]})
            except Exception as error:
                say(f"ERROR {type(error).__name__} {error}")
                raise
            if not getattr(store, "answers_itself", False):
                say("OK")
        else:
            say(f"REFUSED expected PUT name value or DUMP, got {line.strip()[:40]}")
    store.close()


def write_all(fd: int, data: bytes) -> None:
    """All of it: a write may take less than it is given, and does on a full disk before it fails."""
    while data:
        data = data[os.write(fd, data) :]


def write_file(path: str | os.PathLike[str], data: bytes, *, whole: bool = True, synced: bool = True) -> None:
    """Make a file of these bytes. One that is not `whole` has what a single write took."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        if whole:
            write_all(fd, data)
        else:
            os.write(fd, data)
        if synced:
            os.fsync(fd)
    finally:
        os.close(fd)


def replace_file(path: Path, data: bytes, *, whole: bool = True, synced: bool = True, kept: bool = True) -> None:
    """Write these bytes to a new file and give it the place of this one; `kept` syncs the folder for the name.

    What a crash or an error left is no beginning: bytes that an fsync failed for stay where they are.
    """
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    write_file(new, data, whole=whole, synced=synced)
    new.replace(path)
    if kept:
        sync_folder(path.parent)


def checked(body: bytes) -> bytes:
    """The bytes of a file: a checksum in the first line, and then these."""
    return b"%08x\n" % zlib.crc32(body) + body


def unchecked(data: bytes, name: str, *, believes: bool = False) -> bytes:
    """What the checksum in the first line is of. Raises ValueError if it is of something else."""
    check, _, body = data.partition(b"\n")
    if not believes and int(check, 16) != zlib.crc32(body):
        raise ValueError(f"{name} is damaged")
    return body


def seal(facts: dict[str, str]) -> str:
    """A checksum of all facts, for databases that have none of their own."""
    return f"{zlib.crc32(json.dumps(facts, sort_keys=True).encode()):08x}"


def sealed(facts: dict[str, str], told: str | None) -> dict[str, str]:
    """The facts. Raises ValueError if this is not their checksum; without any fact there is none."""
    if told != (seal(facts) if facts else None):
        raise ValueError("the database is damaged")
    return facts


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
