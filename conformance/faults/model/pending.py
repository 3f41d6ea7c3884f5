"""The operations on a file or on names that are not durable yet, as values that are cheap to keep by the thousand."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, overload

from holdfast.conformance.faults.model.contents import Draft
from holdfast.conformance.faults.recording import Change

SECTOR = 512
PAGE = 4096
# How many bytes of pending writes are held in memory; more are in a file without a name.
_IN_MEMORY = 1 << 24

# Ranges of a file in bytes, in order: begin and end of each.
Spans: TypeAlias = tuple[tuple[int, int], ...]


class Spill:
    """The bytes of all pending writes of a disk: memory does not grow with their number."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  closed with the last that is held in it
        weakref.finalize(self, self._file.close)
        self._size = 0

    def put(self, data: bytes) -> Held:
        """Keep these bytes. Raises OSError where there is no room for what a recorded run had not synced."""
        self._file.seek(self._size)
        self._file.write(data)
        self._size += len(data)
        return Held(self, self._size - len(data), len(data))

    def read(self, begin: int, size: int) -> bytes:
        """`size` bytes from the offset `begin` onwards."""
        self._file.seek(begin)
        return self._file.read(size)


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Bytes that a `Spill` keeps."""

    spill: Spill
    at: int
    size: int

    def read(self, begin: int, end: int) -> bytes:
        """The bytes from `begin` to `end`, or to the last."""
        return self.spill.read(self.at + begin, max(0, min(end, self.size) - begin))


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """Pending changes of names that become durable as one. `directories` are those that the names stand in.

    `files` are all whose path changed, `own` those whose own entry did: a renamed directory takes along what is in it.
    """

    operation: int
    changes: tuple[Change, ...]
    directories: frozenset[int]
    files: frozenset[int]
    own: frozenset[int]


@dataclass(frozen=True, slots=True)
class Data:
    """Pending bytes of a file, in whole sectors with their content after the operation.

    A sector goes to disk whole, with the bytes of earlier operations. `held` has these from offset `low` on, cut at
    the file's size. `spans` are the sectors still pending. `begin` and `end` bound the bytes of the operation itself;
    `before` and `size` are the file's size before and after it.
    """

    operation: int
    file: int
    begin: int
    end: int
    low: int
    held: Held
    spans: Spans
    before: int
    size: int

    def piece(self, begin: int, end: int) -> bytes:
        """The bytes from `begin` to `end`, offsets of the file, or up to its size then."""
        return self.held.read(begin - self.low, end - self.low)


@dataclass(frozen=True, slots=True)
class Resized:
    """A pending change of a file's size alone."""

    operation: int
    file: int
    size: int


OfFile: TypeAlias = "Data | Resized"
Pending: TypeAlias = "Moved | Data | Resized"


class Units(Sequence[OfFile]):
    """The pending operations on one file at a point, in order. Later points share the list, which only grows."""

    __slots__ = ("_count", "_every")

    def __init__(self, every: Sequence[OfFile] = ()) -> None:
        self._every, self._count = list(every), len(every)

    def plus(self, unit: OfFile) -> Units:
        """The list with one more operation."""
        if len(self._every) > self._count:
            # Another point has already added to the shared list.
            return Units([*self, unit])
        more = Units.__new__(Units)
        self._every.append(unit)
        more._every, more._count = self._every, self._count + 1
        return more

    def since(self, before: Units) -> Sequence[OfFile] | None:
        """The operations that were added after an earlier point; None if something else changed, too."""
        return self._every[before._count : self._count] if self._every is before._every else None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> OfFile: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[OfFile]: ...
    def __getitem__(self, place: int | slice) -> OfFile | Sequence[OfFile]:
        if isinstance(place, slice):
            return self._every[: self._count][place]
        return self._every[range(self._count)[place]]

    def __iter__(self) -> Iterator[OfFile]:
        for place in range(self._count):
            yield self._every[place]


def land(draft: Draft, unit: Data, spans: Spans) -> None:
    """Put these spans of a write on disk."""
    for begin, end in spans:
        draft.write(begin, unit.piece(begin, end))


def sector_up(offset: int) -> int:
    """The end of the sector that ends at or after `offset`."""
    return -(-offset // SECTOR) * SECTOR


def clip(spans: Spans, begin: int, end: int) -> Spans:
    """The parts of the spans inside a range."""
    return tuple((max(one, begin), min(two, end)) for one, two in spans if one < end and two > begin)


def without(spans: Spans, begin: int, end: int) -> Spans:
    """The parts of the spans outside of a range."""
    if begin >= end:
        return spans
    return tuple(
        part for one, two in spans for part in ((one, min(two, begin)), (max(one, end), two)) if part[0] < part[1]
    )
