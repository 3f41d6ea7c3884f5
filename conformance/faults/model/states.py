"""The states that a crash may leave at a point of a recording: a bounded set, each with a text for its losses."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum, unique
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from holdfast.conformance.faults.model.contents import EMPTY, Content, Draft
from holdfast.conformance.faults.model.disk import Point
from holdfast.conformance.faults.model.names import Namespace
from holdfast.conformance.faults.model.pending import (
    PAGE,
    SECTOR,
    Data,
    Moved,
    OfFile,
    Pending,
    Resized,
    Spans,
    clip,
    land,
    sector_up,
)
from holdfast.conformance.faults.recording import Named, Type

# The pending operations on files that a crash leaves on disk, and the bytes that they make


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
    operations after `sizes_until` no size is on disk; None means that every size is.
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
    after a cut that is not on disk went to blocks that nothing points to.
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


# Describes the lost pending operations: bytes of which file and operations, and when they were synced

# How many changes of names are described one by one.
SHOWN_NAMES = 4


def losses(point: Point, lost: Sequence[Pending]) -> tuple[str, ...]:
    """The losses, the file with most of them first. What a failed sync gave up is lost in each state but one."""
    return (*_bytes_lost(point, lost), *_given_up(point), *_names_lost(lost))


def path_of(point: Point, file: int) -> str:
    """The name of a file for a person."""
    return point.paths.get(file, b"a file without a name").decode("utf-8", "backslashreplace")


def _operations(numbers: Iterable[int]) -> str:
    found = sorted(set(numbers))
    if len(found) == 1:
        return f"op {found[0]}"
    return f"ops {found[0]}\N{EN DASH}{found[-1]}"


def _bytes_lost(point: Point, lost: Sequence[Pending]) -> Iterator[str]:
    files: dict[int, list[OfFile]] = {}
    for unit in lost:
        if not isinstance(unit, Moved):
            files.setdefault(unit.file, []).append(unit)
    counts = {
        file: sum(unit.end - unit.begin for unit in units if isinstance(unit, Data)) for file, units in files.items()
    }
    for file in sorted(files, key=lambda file: counts[file], reverse=True):
        what = f"{counts[file]:,} unsynced bytes" if counts[file] else "an unsynced size"
        synced = point.synced.get(file)
        when = "never synced" if synced is None else f"last sync at op {synced}"
        ops = _operations(unit.operation for unit in files[file])
        yield f"{path_of(point, file)} had {what} ({ops}, {when})"


def _given_up(point: Point) -> Iterator[str]:
    for file, pages in point.doomed.items():
        size = point.live.get(file, EMPTY).size
        if pages:
            count = sum(min(page * PAGE + PAGE, size) - page * PAGE for page in pages)
            by = _operations(pages.values())
            yield f"{path_of(point, file)} had {count:,} bytes that the failed sync of {by} gave up"


def _names_lost(lost: Sequence[Pending]) -> Iterator[str]:
    moves = [move for move in lost if isinstance(move, Moved)]
    shown = []
    for move in moves[:SHOWN_NAMES]:
        changes = [
            ("+" if isinstance(one, Named) else "-") + one.path.decode("utf-8", "backslashreplace")
            for one in move.changes[:SHOWN_NAMES]
        ]
        more = " …" if len(move.changes) > SHOWN_NAMES else ""
        shown.append(f"op {move.operation} {' '.join(changes)}{more}")
    if shown:
        more = ", …" if len(moves) > SHOWN_NAMES else ""
        count = "a change" if len(moves) == 1 else f"{len(moves)} changes"
        yield f"{count} of names had not been synced ({', '.join(shown)}{more})"


# Of more pending operations than this at one point, the kinds that take them one by one try the last and a few others.
MANY = 16
TORN_FILES = 4
RANDOM_STATES = 3


@unique
class StateRule(StrEnum):
    """By what rule a state was chosen, in the words that an explanation begins with."""

    ALL = "everything kept"
    MINIMUM = "unsynced dropped"
    NAMES = "names without data"
    DATA = "data without names"
    ZEROS = "sizes without bytes"
    TORN = "torn write"
    ALL_BUT_ONE = "one operation dropped"
    ONLY_ONE = "one operation kept"
    PREFIX = "first names only"
    RANDOM = "some dropped"


@dataclass(frozen=True, eq=False)
class State:
    """One legal state of the disk after a crash at a point.

    `moves` are the places of the pending changes of names that are in it, `kept` says what of `point.data` is. The
    bytes are made from those each time that they are wanted, so that thousands of states can be held.
    """

    kind: StateRule
    point: Point
    names: Namespace
    # Equal for equal trees only: names, types, bytes, targets of links, and which names are one file. Hex.
    hash: str
    moves: tuple[int, ...]
    kept: Kept
    note: str = ""

    def contents(self) -> Mapping[int, Content]:
        """The bytes of each file that has any."""
        if self.kind is StateRule.ALL:
            return self.point.live
        units: dict[int, list[tuple[OfFile, Part | None]]] = {}
        if self.kept is not NOTHING:
            for place, unit in enumerate(self.point.data):
                units.setdefault(unit.file, []).append((unit, self.kept.of(place, unit)))
        durable = self.point.durable
        return {**durable, **{file: built(durable.get(file, EMPTY), own) for file, own in units.items()}}

    @property
    def lost(self) -> tuple[Pending, ...]:
        """The pending operations that are not in it, or not completely."""
        if self.kind is StateRule.ALL:
            return ()
        moves = (move for place, move in enumerate(self.point.moves) if place not in self.moves)
        every = enumerate(self.point.data)
        data = (unit for place, unit in every if self.kept.of(place, unit) != whole_of(unit))
        return (*moves, *data)

    @property
    def tree(self) -> dict[bytes, Content | bytes | None]:
        """The entry under each path: bytes of a file, target of a link, None for a directory."""
        tree: dict[bytes, Content | bytes | None] = {}
        contents = self.contents()
        for path, file, _ in self.names.visible:
            kind, target = self.names.kinds[file]
            tree[path] = contents.get(file, EMPTY) if kind is Type.FILE else target if kind is Type.LINK else None
        return tree

    def write(self, folder: Path) -> None:
        """Put the tree into an empty folder; only its owner may read it. Raises OSError."""
        root, contents = os.fsencode(folder), self.contents()
        for path, file, first in self.names.visible:
            kind, target = self.names.kinds[file]
            place = os.path.join(root, path)
            if kind is Type.DIRECTORY:
                os.mkdir(place, 0o700)
            elif first != path:
                os.link(os.path.join(root, first), place, follow_symlinks=False)
            elif kind is Type.LINK:
                os.symlink(target, place)
            else:
                _write(place, contents.get(file, EMPTY))

    @property
    def text(self) -> str:
        """What was lost, for a person: whose bytes, of which operations, and when they were last synced."""
        if self.kind is StateRule.ALL:
            return self.kind.value
        said = [self.note] if self.note else []
        return f"{self.kind.value}: {'; '.join([*said, *self.losses]) or 'nothing was pending'}"

    @property
    def losses(self) -> tuple[str, ...]:
        """The pending operations that are not in it, or not completely: the file with most of them first."""
        return losses(self.point, self.lost)


def states(point: Point, *, seed: int = 0, kinds: Collection[StateRule] = tuple(StateRule)) -> Iterator[State]:
    """The legal states at a point, of these kinds, each tree once. Random ones depend on seed and point alone."""
    seen = set[str]()
    maker = _Maker(point)
    for kind in StateRule:
        if kind in kinds:
            # A generator of its own, so that the states of a kind do not depend on the other kinds.
            draw = random.Random(f"{seed}:linux:{point.first}:{kind.name}")  # noqa: S311
            for state in maker.make(kind, draw):
                if state.hash not in seen:
                    seen.add(state.hash)
                    yield state


_Item = TypeVar("_Item")


class _Maker:
    """Makes the states of one point."""

    def __init__(self, point: Point) -> None:
        self._point = point
        self._draw = random.Random(0)  # noqa: S311
        # The durable tree under each set of names, made once, as most states differ from it in a few files.
        self._hashed: dict[Namespace, list[bytes]] = {}
        # Most states keep all of most files.
        self._built: dict[int, Content] = {}
        self._prefixes: dict[int, Content] = {}

    @cached_property
    def _files(self) -> Mapping[int, Sequence[int]]:
        """The places in `Point.data` of each file's operations. Not needed where all is kept, or nothing."""
        files: dict[int, list[int]] = {}
        for place, unit in enumerate(self._point.data):
            files.setdefault(unit.file, []).append(place)
        return files

    def make(self, kind: StateRule, draw: random.Random) -> Iterable[State]:
        self._draw = draw
        moves = range(len(self._point.moves))
        makers: Mapping[StateRule, Callable[[], Iterable[State]]] = {
            StateRule.ALL: self._all,
            StateRule.MINIMUM: lambda: [self._state(kind, (), NOTHING)],
            StateRule.NAMES: lambda: [self._state(kind, moves, NOTHING)],
            StateRule.DATA: lambda: [self._state(kind, (), EVERYTHING)],
            StateRule.ZEROS: self._zeros,
            StateRule.TORN: self._torn,
            StateRule.ALL_BUT_ONE: self._all_but_one,
            StateRule.ONLY_ONE: self._only_one,
            StateRule.PREFIX: self._first_names,
            StateRule.RANDOM: self._random,
        }
        return makers[kind]()

    def _state(self, kind: StateRule, moves: Iterable[int], kept: Kept, note: str = "") -> State:
        point, chosen = self._point, tuple(moves)
        kept = self._in_order(chosen, kept)
        contents: dict[int, Content] = {}
        if kept is not NOTHING:
            some = {point.data[place].file for place in kept.parts}
            files = some if kept.rest is Rest.NONE else self._files
            contents = {file: self._content(file, self._files[file], kept) for file in files}
        names = point.durable_names.after([point.moves[place] for place in chosen])
        return State(kind, point, names, self._hash(names, contents), chosen, kept, note)

    def _in_order(self, moves: Sequence[int], kept: Kept) -> Kept:
        """A change of size is on disk only with all names that were changed before it; bytes inside a file are free."""
        point = self._point
        if kept is NOTHING or len(moves) == len(point.moves):
            return kept
        return replace(kept, sizes_until=point.moves[len(moves)].operation)

    def _all(self) -> Iterator[State]:
        point = self._point
        contents = {file: one for file, one in point.live.items() if point.durable.get(file) is not one}
        yield State(StateRule.ALL, point, point.live_names, self._hash(point.live_names, contents), (), EVERYTHING)

    def _hash(self, names: Namespace, contents: Mapping[int, Content]) -> str:
        """The hash of a tree with the durable files, or those of `contents` in their place."""
        durable = self._point.durable
        if names not in self._hashed:
            leaves = list(names.heads)
            for file, places in names.places.items():
                for place in places:
                    leaves[place] += durable.get(file, EMPTY).digest
            self._hashed[names] = leaves
        leaves = self._hashed[names].copy()
        for file, content in contents.items():
            for place in names.places.get(file, ()):
                leaves[place] = names.heads[place] + content.digest
        return hashlib.blake2b(b"".join(leaves), digest_size=16).hexdigest()

    def _content(self, file: int, places: Sequence[int], kept: Kept) -> Content:
        data = self._point.data
        whole = kept.rest is Rest.WHOLE and not any(place in kept.parts for place in places)
        whole = whole and not kept.withholds(data[places[-1]])
        if whole and file in self._built:
            return self._built[file]
        count = max(0, len(places) - MANY // 2) if kept.rest is Rest.WHOLE else 0
        if any(place in kept.parts for place in places[:count]) or (count and kept.withholds(data[places[count - 1]])):
            count = 0
        content = self._build(self._begun(file, places, count), places[count:], kept)
        if whole:
            self._built[file] = content
        return content

    def _begun(self, file: int, places: Sequence[int], count: int) -> Content:
        """A file with the first `count` of its pending operations: most states lack only the last ones."""
        if not count:
            return self._point.durable.get(file, EMPTY)
        if file not in self._prefixes:
            durable = self._point.durable.get(file, EMPTY)
            self._prefixes[file] = self._build(durable, places[:count], EVERYTHING)
        return self._prefixes[file]

    def _build(self, content: Content, places: Iterable[int], kept: Kept) -> Content:
        data = self._point.data
        return built(content, [(data[place], kept.of(place, data[place])) for place in places])

    def _without(self, place: int) -> Content:
        """A file with all of its pending operations but one."""
        file = self._point.data[place].file
        return self._content(file, self._files[file], Kept(Rest.WHOLE, {place: None}))

    def _zeros(self) -> Iterator[State]:
        moves = range(len(self._point.moves))
        yield self._state(StateRule.ZEROS, moves, Kept(Rest.SIZES), "sizes kept")
        for place, unit in self._last_writes():
            if unit.size > unit.before:
                note = f"size of {self._path(unit)} kept in operation {unit.operation}"
                yield self._state(StateRule.ZEROS, moves, Kept(Rest.WHOLE, {place: SIZED}), note)

    def _torn(self) -> Iterator[State]:
        moves = range(len(self._point.moves))
        for rank, (place, unit) in enumerate(self._last_writes()):
            # The last write of all is torn at several places, that of another file in the middle.
            cuts = cuts_of(unit, ends=self._without(place).size <= unit.before)
            for cut in cuts if rank == 0 else cuts[len(cuts) // 2 :][:1]:
                part = Part(clip(unit.spans, 0, cut), sized=False)
                note = (
                    f"of {unit.end - unit.begin:,} bytes of operation {unit.operation} in {self._path(unit)} "
                    f"the first {cut - unit.begin:,} kept"
                )
                yield self._state(StateRule.TORN, moves, Kept(Rest.WHOLE, {place: part}), note)
            middle = (unit.begin + unit.end) // 2 // SECTOR * SECTOR
            if middle > unit.begin:
                part = Part(clip(unit.spans, middle, sector_up(unit.end)), sized=True)
                note = (
                    f"of {unit.end - unit.begin:,} bytes of operation {unit.operation} in {self._path(unit)} "
                    f"the last {unit.end - middle:,} kept"
                )
                yield self._state(StateRule.TORN, moves, Kept(Rest.WHOLE, {place: part}), note)

    def _all_but_one(self) -> Iterator[State]:
        every = range(len(self._point.moves))
        for place in self._sample(range(len(self._point.data))):
            yield self._state(StateRule.ALL_BUT_ONE, every, Kept(Rest.WHOLE, {place: None}))

    def _only_one(self) -> Iterator[State]:
        point = self._point
        for place in self._sample(range(len(point.data))):
            unit = point.data[place]
            # As many names as make the file visible, or as its change of size brings along: those go in order.
            grows = isinstance(unit, Resized) or unit.size != unit.before
            own = [
                one
                for one, move in enumerate(point.moves)
                if unit.file in move.files or (grows and move.operation < unit.operation)
            ]
            names: Iterable[int] = self._first(own[-1] + 1) if own else ()
            note = f"of what was pending only operation {unit.operation} in {self._path(unit)} kept"
            yield self._state(StateRule.ONLY_ONE, names, Kept(Rest.NONE, {place: whole_of(unit)}), note)

    def _first_names(self) -> Iterator[State]:
        for count in self._sample(range(1, len(self._point.moves))):
            yield self._state(StateRule.PREFIX, self._first(count), NOTHING)
            yield self._state(StateRule.PREFIX, self._first(count), EVERYTHING)

    def _first(self, count: int) -> range:
        """The first `count` pending names, and the rest of the last one's operation: they are committed as one."""
        moves = self._point.moves
        while 0 < count < len(moves) and moves[count].operation == moves[count - 1].operation:
            count += 1
        return range(count)

    def _random(self) -> Iterator[State]:
        point, draw = self._point, self._draw
        count = len(point.moves)
        for _ in range(RANDOM_STATES if point.moves or point.data else 0):
            share = draw.choice((0.25, 0.5, 0.75))
            moves: Sequence[int] = self._first(draw.randint(0, count))
            dropped = (place for place in range(len(point.data)) if draw.random() >= share)
            yield self._state(StateRule.RANDOM, moves, Kept(Rest.WHOLE, dict.fromkeys(dropped)))

    def _last_writes(self) -> list[tuple[int, Data]]:
        """The last pending operation of each file, if it is a write: that of the last file first."""
        last = sorted((places[-1] for places in self._files.values()), reverse=True)
        found = [(place, unit) for place in last if isinstance(unit := self._point.data[place], Data)]
        return found[:TORN_FILES]

    def _sample(self, items: Sequence[_Item]) -> Sequence[_Item]:
        if len(items) <= MANY:
            return items
        head, tail = items[: -MANY // 2], items[-MANY // 2 :]
        drawn = sorted(self._draw.sample(range(len(head)), MANY - len(tail)))
        return [*(head[place] for place in drawn), *tail]

    def _path(self, unit: OfFile) -> str:
        return path_of(self._point, unit.file)


def _write(place: bytes, content: Content) -> None:
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as stream:
        for offset, data in content.pieces():
            stream.seek(offset)
            stream.write(data)
        stream.truncate(content.size)
