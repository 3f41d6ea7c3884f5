"""Pending bytes of a file, by whole sectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from conformance.faults.model.contents import Draft

SECTOR = 512
PAGE = 4096

# Ranges of a file in bytes, in order: begin and end of each.
Spans: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Data:
    """Pending bytes of a file, in whole sectors as they stood after the operation.

    A sector goes to disk whole, with what earlier operations wrote to it: `data`, from offset `low` on, holds that, cut
    at the file's size. `spans` are the sectors still pending; `begin` and `end` what the operation itself wrote;
    `before` and `size` the file's size before and after it.
    """

    operation: int
    file: int
    begin: int
    end: int
    low: int
    data: bytes
    spans: Spans
    before: int
    size: int

    def piece(self, begin: int, end: int) -> bytes:
        """The bytes from `begin` to `end`, offsets of the file, or up to its size then."""
        return self.data[begin - self.low : end - self.low]


@dataclass(frozen=True, slots=True)
class Resized:
    """A pending change of a file's size alone."""

    operation: int
    file: int
    size: int


OfFile: TypeAlias = "Data | Resized"


def land(draft: Draft, unit: Data, spans: Spans) -> None:
    """Put these spans of a write on disk."""
    for begin, end in spans:
        draft.write(begin, unit.piece(begin, end))


def sector_up(offset: int) -> int:
    """The end of the sector that ends at or behind `offset`."""
    return -(-offset // SECTOR) * SECTOR


def clip(spans: Spans, begin: int, end: int) -> Spans:
    """What of the spans lies in a range."""
    return tuple((max(one, begin), min(two, end)) for one, two in spans if one < end and two > begin)


def without(spans: Spans, begin: int, end: int) -> Spans:
    """What of the spans lies outside of a range."""
    if begin >= end:
        return spans
    return tuple(
        part for one, two in spans for part in ((one, min(two, begin)), (max(one, end), two)) if part[0] < part[1]
    )
