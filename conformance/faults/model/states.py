"""The states that a crash may leave at a point of a recording: a bounded set, each with words for what it lost."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum, unique
from pathlib import Path
from typing import TypeAlias, TypeVar

from conformance.faults.model.contents import EMPTY, Content, Draft
from conformance.faults.model.disk import Pending, Point, Profile
from conformance.faults.model.losses import losses, path_of
from conformance.faults.model.names import Namespace
from conformance.faults.model.writes import SECTOR, Data, OfFile, Resized, Spans, clip, land, sector_up
from conformance.faults.recording import Type

# Of more pending operations than this at one point, the kinds that take them one by one try the last ones and a draw.
MANY = 16
TORN_FILES = 4
RANDOM_STATES = 3


@unique
class Kind(StrEnum):
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


@dataclass(frozen=True, slots=True)
class _Part:
    """What of a pending write is on disk: these sectors, and whether its size is even where they end before it.

    `resizes` says whether the file may get another size by it: a journal has sizes and names in one order.
    """

    spans: Spans
    sized: bool
    resizes: bool = True


# What is on disk of the pending operations on files, by their places in `Point.data`: of those left out nothing is.
_Kept: TypeAlias = "Mapping[int, _Part]"


@dataclass(frozen=True, eq=False)
class State:
    """One legal state of the disk after a crash at a point.

    `moves` are the places of the pending changes of names that are in it, `parts` what of each of `point.data` is. The
    bytes are made from those each time that they are wanted, so that thousands of states can be held.
    """

    kind: Kind
    point: Point
    names: Namespace
    # Equal for equal trees only: names, types, bytes, targets of links, and which names are one file. Hex.
    hash: str
    moves: tuple[int, ...]
    parts: tuple[_Part | None, ...]
    note: str = ""

    def contents(self) -> Mapping[int, Content]:
        """The bytes of each file that has any."""
        if self.kind is Kind.ALL:
            return self.point.live
        units: dict[int, list[tuple[OfFile, _Part | None]]] = {}
        for unit, part in zip(self.point.data, self.parts, strict=True):
            units.setdefault(unit.file, []).append((unit, part))
        durable = self.point.durable
        return {**durable, **{file: _build(durable.get(file, EMPTY), own) for file, own in units.items()}}

    @property
    def lost(self) -> tuple[Pending, ...]:
        """What of the pending operations is not in it, or not all of it."""
        if self.kind is Kind.ALL:
            return ()
        moves = (move for place, move in enumerate(self.point.moves) if place not in self.moves)
        data = (unit for unit, part in zip(self.point.data, self.parts, strict=True) if part != _whole(unit))
        return (*moves, *data)

    @property
    def tree(self) -> dict[bytes, Content | bytes | None]:
        """What stands under each path: bytes of a file, target of a link, None for a directory."""
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
        """What was lost, as a person is told: whose bytes, of which operations, and when they were last synced."""
        if self.kind is Kind.ALL:
            return self.kind.value
        said = [self.note] if self.note else []
        return f"{self.kind.value}: {'; '.join([*said, *self.losses]) or 'nothing was pending'}"

    @property
    def losses(self) -> tuple[str, ...]:
        """What of the pending operations is not in it, or not all of it: the file with most of it first."""
        return losses(self.point, self.lost)


def states(point: Point, *, seed: int = 0, kinds: Collection[Kind] = tuple(Kind)) -> Iterator[State]:
    """The legal states at a point, of these kinds, each tree once. Random ones depend on seed and point alone."""
    seen = set[str]()
    maker = _Maker(point)
    for kind in Kind:
        if kind in kinds:
            # Of its own, so that the states of a kind do not depend on which others are asked for.
            draw = random.Random(f"{seed}:{point.profile}:{point.first}:{kind.name}")  # noqa: S311
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
        self._files: dict[int, list[int]] = {}
        for place, unit in enumerate(point.data):
            self._files.setdefault(unit.file, []).append(place)
        self._whole: dict[int, _Part] = {place: _whole(unit) for place, unit in enumerate(point.data)}
        # The durable tree under each set of names, made once, as most states differ from it in a few files.
        self._hashed: dict[Namespace, list[bytes]] = {}
        # Most states keep all of most files.
        self._built: dict[int, Content] = {}

    def make(self, kind: Kind, draw: random.Random) -> Iterable[State]:
        self._draw = draw
        moves = range(len(self._point.moves))
        makers: Mapping[Kind, Callable[[], Iterable[State]]] = {
            Kind.ALL: self._all,
            Kind.MINIMUM: lambda: [self._state(kind, (), {})],
            Kind.NAMES: lambda: [self._state(kind, moves, {})],
            Kind.DATA: lambda: [self._state(kind, (), self._whole)],
            Kind.ZEROS: self._zeros,
            Kind.TORN: self._torn,
            Kind.ALL_BUT_ONE: self._all_but_one,
            Kind.ONLY_ONE: self._only_one,
            Kind.PREFIX: self._prefixes,
            Kind.RANDOM: self._random,
        }
        return makers[kind]()

    def _state(self, kind: Kind, moves: Iterable[int], kept: _Kept, note: str = "") -> State:
        point, chosen = self._point, tuple(moves)
        kept = self._in_order(chosen, kept)
        contents = {
            file: self._content(file, places, kept)
            for file, places in self._files.items()
            if any(place in kept for place in places)
        }
        names = point.durable_names.after([point.moves[place] for place in chosen])
        parts = tuple(map(kept.get, range(len(point.data))))
        return State(kind, point, names, self._hash(names, contents), chosen, parts, note)

    def _in_order(self, moves: Sequence[int], kept: _Kept) -> _Kept:
        """A change of size is on disk only with all names that were changed before it; bytes inside a file are free."""
        point = self._point
        if point.profile is Profile.POSIX or len(moves) == len(point.moves):
            return kept
        first_lost = point.moves[len(moves)].operation
        return {
            place: replace(part, resizes=False) if point.data[place].operation > first_lost else part
            for place, part in kept.items()
        }

    def _all(self) -> Iterator[State]:
        point = self._point
        contents = {file: one for file, one in point.live.items() if point.durable.get(file) is not one}
        yield State(Kind.ALL, point, point.live_names, self._hash(point.live_names, contents), (), ())

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

    def _content(self, file: int, places: Sequence[int], kept: _Kept) -> Content:
        point = self._point
        whole = all(kept.get(place) is self._whole[place] for place in places)
        if whole and file in self._built:
            return self._built[file]
        content = _build(point.durable.get(file, EMPTY), [(point.data[place], kept.get(place)) for place in places])
        if whole:
            self._built[file] = content
        return content

    def _without(self, place: int) -> Content:
        """A file with all of its pending operations but one."""
        file = self._point.data[place].file
        kept = {other: part for other, part in self._whole.items() if other != place}
        return self._content(file, self._files[file], kept)

    def _zeros(self) -> Iterator[State]:
        moves, sized = range(len(self._point.moves)), _Part((), sized=True)
        yield self._state(Kind.ZEROS, moves, dict.fromkeys(self._whole, sized), "sizes kept")
        for place, unit in self._last_writes():
            if unit.size > unit.before:
                note = f"size of {self._path(unit)} kept in operation {unit.operation}"
                yield self._state(Kind.ZEROS, moves, {**self._whole, place: sized}, note)

    def _torn(self) -> Iterator[State]:
        moves = range(len(self._point.moves))
        for rank, (place, unit) in enumerate(self._last_writes()):
            # The last write of all is torn at several places, that of another file in the middle.
            cuts = _cuts(unit, ends=self._without(place).size <= unit.before)
            for cut in cuts if rank == 0 else cuts[len(cuts) // 2 :][:1]:
                part = _Part(clip(unit.spans, 0, cut), sized=False)
                note = (
                    f"of {unit.end - unit.begin:,} bytes of operation {unit.operation} in {self._path(unit)} "
                    f"the first {cut - unit.begin:,} kept"
                )
                yield self._state(Kind.TORN, moves, {**self._whole, place: part}, note)
            middle = (unit.begin + unit.end) // 2 // SECTOR * SECTOR
            if middle > unit.begin:
                part = _Part(clip(unit.spans, middle, sector_up(unit.end)), sized=True)
                note = (
                    f"of {unit.end - unit.begin:,} bytes of operation {unit.operation} in {self._path(unit)} "
                    f"the last {unit.end - middle:,} kept"
                )
                yield self._state(Kind.TORN, moves, {**self._whole, place: part}, note)

    def _all_but_one(self) -> Iterator[State]:
        every = range(len(self._point.moves))
        for place in self._sample(range(len(self._point.data))):
            kept = {other: part for other, part in self._whole.items() if other != place}
            yield self._state(Kind.ALL_BUT_ONE, every, kept)
        if self._point.profile is Profile.POSIX:
            for place in self._sample(every):
                yield self._state(Kind.ALL_BUT_ONE, [one for one in every if one != place], self._whole)

    def _only_one(self) -> Iterator[State]:
        point, every = self._point, range(len(self._point.moves))
        for place in self._sample(range(len(point.data))):
            unit = point.data[place]
            names: Iterable[int] = every
            if point.profile is Profile.LINUX:
                # As many names as show the file, or as a change of its size brings along: those go in order.
                grows = isinstance(unit, Resized) or unit.size != unit.before
                own = [
                    one
                    for one, move in enumerate(point.moves)
                    if unit.file in move.files or (grows and move.operation < unit.operation)
                ]
                names = self._first(own[-1] + 1) if own else ()
            note = f"of what was pending only operation {unit.operation} in {self._path(unit)} kept"
            yield self._state(Kind.ONLY_ONE, names, {place: self._whole[place]}, note)
        if point.profile is Profile.POSIX:
            for place in self._sample(every):
                note = f"of what was pending only the names of operation {point.moves[place].operation} kept"
                yield self._state(Kind.ONLY_ONE, [place], {}, note)

    def _prefixes(self) -> Iterator[State]:
        for count in self._sample(range(1, len(self._point.moves))):
            yield self._state(Kind.PREFIX, self._first(count), {})
            yield self._state(Kind.PREFIX, self._first(count), self._whole)

    def _first(self, count: int) -> range:
        """So many of the pending names, and the rest of the last one's operation: they are committed as one."""
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
            if point.profile is Profile.POSIX:
                moves = [place for place in range(count) if draw.random() < share]
            kept = {place: part for place, part in self._whole.items() if draw.random() < share}
            yield self._state(Kind.RANDOM, moves, kept)

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


def _whole(unit: OfFile) -> _Part:
    return _Part(unit.spans if isinstance(unit, Data) else (), sized=True)


def _build(content: Content, units: Iterable[tuple[OfFile, _Part | None]]) -> Content:
    """A file with these parts of its pending operations on disk.

    Sizes go to disk in order: without a change of size alone there is none of the later ones, and what was written
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


def _cuts(unit: Data, *, ends: bool) -> list[int]:
    """Where a write may end on disk: what overwrites at the ends of sectors, what appends at any byte.

    `ends` says that without it the file is no longer than it was before it: then it ends where the write does.
    """
    begin, end = unit.begin, unit.end
    first, last = begin // SECTOR * SECTOR + SECTOR, (end - 1) // SECTOR * SECTOR
    cuts = {first, (begin + end) // 2 // SECTOR * SECTOR, last}
    if ends and end > unit.before:
        new = max(begin, unit.before)
        cuts |= {new, new + 1, (new + end) // 2, end - 1}
    return sorted(cut for cut in cuts if begin < cut < end)


def _write(place: bytes, content: Content) -> None:
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as stream:
        for offset, data in content.pieces():
            stream.seek(offset)
            stream.write(data)
        stream.truncate(content.size)
