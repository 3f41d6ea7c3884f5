"""The pending operations on files that a crash leaves on disk, and the bytes that they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, unique

from holdfast.conformance.faults.model.contents import Content, Draft
from holdfast.conformance.faults.model.pending import SECTOR, Data, OfFile, Resized, Spans, clip, land, sector_up


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a pending write on disk: these sectors, and whether its size is there even where they end before it.

    `resizes` says whether the file may get another size by it: a journal has sizes and names in one order.
    """

    spans: Spans
    sized: bool
    resizes: bool = True


@unique
class Rest(Enum):
    """What of the pending operations is on disk of which nothing is said."""

    NONE = "none"
    WHOLE = "whole"
    SIZES = "sizes"


@dataclass(frozen=True, slots=True)
class Kept:
    """The part of the pending operations on files that is on disk: those at these places in `Point.data`, and a rule.

    The rule covers the other operations, so that a state is small wherever ten thousand operations are pending. Of the
    operations behind `sizes_until` no size is on disk; None means that every size is.
    """

    rest: Rest
    parts: Mapping[int, Part | None] = field(default_factory=dict)
    sizes_until: int | None = None

    def of(self, place: int, unit: OfFile) -> Part | None:
        """The part of the operation there that is on disk; None: nothing."""
        part = self._ruled(place, unit)
        return replace(part, resizes=False) if part is not None and self.withholds(unit) else part

    def withholds(self, unit: OfFile) -> bool:
        """Whether the size that the operation gave its file is not on disk, as a change of names before it is not."""
        return self.sizes_until is not None and unit.operation > self.sizes_until

    def _ruled(self, place: int, unit: OfFile) -> Part | None:
        if place in self.parts:
            return self.parts[place]
        if self.rest is Rest.NONE:
            return None
        return whole_of(unit) if self.rest is Rest.WHOLE else SIZED


SIZED = Part((), sized=True)
NOTHING, EVERYTHING = Kept(Rest.NONE), Kept(Rest.WHOLE)


def whole_of(unit: OfFile) -> Part:
    """All of it."""
    return Part(unit.spans if isinstance(unit, Data) else (), sized=True)


def built(content: Content, units: Iterable[tuple[OfFile, Part | None]]) -> Content:
    """A file with these parts of its pending operations on disk.

    Sizes go to disk in order: while one change of size is missing, no later one is there. Bytes that were written
    behind a cut that is not on disk went to blocks that nothing points to.
    """
    draft = Draft(content)
    cut: int | None = None
    for unit, part in units:
        if isinstance(unit, Resized):
            if part is not None and part.resizes and cut is None:
                draft.resize(unit.size)
            else:
                cut = min(sector_up(unit.size), draft.size if cut is None else cut)
        elif part is not None and not part.resizes and cut is None:
            land(draft, unit, clip(part.spans, 0, draft.size))
        elif part is not None and cut is None:
            if part.sized:
                draft.resize(max(draft.size, min(sector_up(unit.end), unit.size)))
            land(draft, unit, part.spans)
        elif part is not None and cut is not None:
            for begin, end in clip(part.spans, 0, min(cut, draft.size)):
                draft.write(begin, unit.piece(begin, end).ljust(end - begin, b"\0"))
    return draft.content()


def cuts_of(unit: Data, *, ends: bool) -> list[int]:
    """Where a write may end on disk: an overwrite at the ends of sectors, an append at any byte.

    `ends` says that the file is no longer without the write than it was before it: then it ends where the write does.
    """
    begin, end = unit.begin, unit.end
    first, last = begin // SECTOR * SECTOR + SECTOR, (end - 1) // SECTOR * SECTOR
    cuts = {first, (begin + end) // 2 // SECTOR * SECTOR, last}
    if ends and end > unit.before:
        new = max(begin, unit.before)
        cuts |= {new, new + 1, (new + end) // 2, end - 1}
    return sorted(cut for cut in cuts if begin < cut < end)
