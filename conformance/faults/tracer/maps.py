"""Files that are mapped shared and writable: what a program writes there makes no system call, so they are compared."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from holdfast.conformance.faults.recording import Action, Mapped, Truncate, Write, replay

_SECTOR = 512
_BLOCK = 1 << 16
# How many inspections pass before it is asked who still maps what: unmapping makes no stop of its own.
_PRUNE_EVERY = 512


class Span(NamedTuple):
    """A part of a task's memory that shows a file: from and to which address, what offset of which inode."""

    begin: int
    end: int
    offset: int
    inode: int


class _Map(NamedTuple):
    handle: int
    inode: int
    shadow: bytearray


class Maps:
    """The mapped files, each with its bytes as last recorded."""

    def __init__(self) -> None:
        self._maps: dict[int, _Map] = {}
        self._looks = 0

    def add(self, file: int, path: str) -> None:
        """File `file`, to be read at `path`, is about to be mapped. Raises OSError."""
        if file in self._maps:
            return
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        found = os.fstat(handle)
        self._maps[file] = _Map(handle, found.st_ino, bytearray(read(handle, 0, found.st_size)))

    def file(self, inode: int) -> int | None:
        """The file with this inode, if it is one of these. /proc/PID/maps may name another device, so none is asked."""
        return next((file for file, known in self._maps.items() if known.inode == inode), None)

    def drop(self, file: int) -> None:
        """A file is of no more interest."""
        if file in self._maps:
            os.close(self._maps.pop(file).handle)

    def follow(self, action: Action) -> None:
        """Take over what was recorded otherwise, so that it is not found again."""
        if not isinstance(action, Write | Truncate) or (known := self._maps.get(action.file)) is None:
            return
        replay(action, known.shadow)

    def look(self, tasks: Iterable[int]) -> Iterator[Mapped]:
        """What has changed since the last inspection, in whole sectors. `tasks` are all that could map anything."""
        if not self._maps:
            return
        self._looks += 1
        for file, known in self._maps.items():
            now = read(known.handle, 0, len(known.shadow))
            if known.shadow.startswith(now):
                continue
            for begin, end in _differences(known.shadow, now):
                yield Mapped(file, begin, now[begin:end])
            known.shadow[: len(now)] = now
        if self._looks % _PRUNE_EVERY == 0:
            self._prune(tasks)

    def close(self) -> None:
        """Let go of all files."""
        for known in self._maps.values():
            os.close(known.handle)
        self._maps.clear()

    def _prune(self, tasks: Iterable[int]) -> None:
        used = {span.inode for task in tasks for span in memory_map(task)}
        for file in [file for file, known in self._maps.items() if known.inode not in used]:
            self.drop(file)


def memory_map(task: int) -> list[Span]:
    """What files a task has mapped; nothing if it is gone. Raises OSError."""
    try:
        with open(f"/proc/{task}/maps", "rb") as stream:
            fields = [line.split(maxsplit=5) for line in stream]
    except (FileNotFoundError, ProcessLookupError):
        return []
    spans = []
    for addresses, _, offset, _, inode, *_ in fields:
        begin, _, end = addresses.partition(b"-")
        if inode != b"0":
            spans.append(Span(int(begin, 16), int(end, 16), int(offset, 16), int(inode)))
    return spans


def read(handle: int, offset: int, size: int) -> bytes:
    """`size` bytes of a file from `offset` on, fewer where it ends. Raises OSError."""
    data = os.pread(handle, size, offset)
    if 0 < len(data) < size:
        rest = bytearray(data)
        while len(rest) < size and (part := os.pread(handle, size - len(rest), offset + len(rest))):
            rest += part
        return bytes(rest)
    return data


def _differences(before: bytearray, now: bytes) -> Iterator[tuple[int, int]]:
    """The runs of sectors that differ, as begin and end."""
    begin = None
    for block in range(0, len(now), _BLOCK):
        if before[block : block + _BLOCK] == now[block : block + _BLOCK] and begin is None:
            continue
        for at in range(block, min(block + _BLOCK, len(now)), _SECTOR):
            differs = before[at : at + _SECTOR] != now[at : at + _SECTOR]
            if differs and begin is None:
                begin = at
            elif not differs and begin is not None:
                yield begin, at
                begin = None
    if begin is not None:
        yield begin, len(now)
