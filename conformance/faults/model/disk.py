"""What is durable and what is pending after each operation of a recording.

Nothing here touches a file or a process. A disk moves through the operations; a `Point` is how it stands between two
of them, as a value that later operations do not change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, unique
from functools import cached_property
from itertools import chain

from conformance.faults.model.contents import EMPTY, Content, Draft
from conformance.faults.model.names import Namespace, parent_of
from conformance.faults.model.pending import (
    PAGE,
    SECTOR,
    Data,
    Moved,
    OfFile,
    Pending,
    Resized,
    Spill,
    Units,
    clip,
    land,
    sector_up,
    without,
)
from conformance.faults.recording import (
    ROOT,
    Change,
    Entry,
    Event,
    Failed,
    Mapped,
    Named,
    Names,
    Operation,
    Recording,
    Sync,
    SyncAll,
    Truncate,
    Type,
    Write,
)


@unique
class Profile(StrEnum):
    """By whose rules: what ext4, xfs and btrfs were seen to do, or the least that POSIX promises."""

    LINUX = "linux"
    POSIX = "posix"


@dataclass(frozen=True, eq=False)
class Point:
    """How the disk stands after operation `first` and up to `last`: those behind `first` did not change it.

    `first` is 0 before the first operation. `live` and `live_names` are what processes see, `durable` and
    `durable_names` what surely survives; between them lie `moves` and, of each file, `units`, in order. `synced` is the
    last operation that synced a file, `doomed` the pages of a file that failed syncs gave up, and by which operation.
    """

    profile: Profile
    first: int
    last: int
    live_names: Namespace
    live: Mapping[int, Content]
    durable_names: Namespace
    durable: Mapping[int, Content]
    moves: tuple[Moved, ...]
    units: Mapping[int, Units]
    synced: Mapping[int, int]
    doomed: Mapping[int, Mapping[int, int]]
    paths: Mapping[int, bytes] = field(repr=False)

    @cached_property
    def data(self) -> tuple[OfFile, ...]:
        """What is pending of all files, in order."""
        return tuple(sorted(chain.from_iterable(self.units.values()), key=lambda unit: unit.operation))

    @property
    def pending(self) -> tuple[Pending, ...]:
        """What is not durable, in the order in which it was done."""
        return tuple(sorted((*self.moves, *self.data), key=lambda one: one.operation))

    @property
    def numbers(self) -> range:
        """The operations after which the disk stood so."""
        return range(self.first, self.last + 1)


def points(recording: Recording, profile: Profile) -> Iterator[Point]:
    """The points of a recording, in order; together they cover each operation and 0.

    A write that syncs by itself has two points: while it was under way, its bytes pending, and after it.
    """
    disk = _Disk(recording.snapshot, profile)
    first = last = 0
    for operation in recording.operations:
        if not isinstance(operation.action, Event | Failed):
            yield disk.point(first, last)
            first = operation.number
            disk.apply(operation)
            if isinstance(operation.action, Write) and operation.action.durable:
                yield disk.point(first, first)
                disk.sync_written(operation)
        last = operation.number
    yield disk.point(first, last)


def at(recording: Recording, number: int, profile: Profile) -> Point:
    """The point after operation `number`. Raises IndexError if the recording has none such."""
    found = [point for point in points(recording, profile) if number in point.numbers]
    return found[-1]


class _Disk:
    """A disk on its way through a recording. Mappings are replaced, never changed, as points hold on to them."""

    def __init__(self, snapshot: Sequence[Entry], profile: Profile) -> None:
        self._profile = profile
        # Grows only, so all points share it.
        self._kinds: dict[int, tuple[Type, bytes]] = {ROOT: (Type.DIRECTORY, b"")}
        self._paths: dict[int, bytes] = {}
        paths, contents = dict[bytes, int](), dict[int, Content]()
        for entry in snapshot:
            self._kinds[entry.file] = (entry.type, entry.data if entry.type is Type.LINK else b"")
            if entry.type is Type.FILE:
                contents[entry.file] = Content.of(entry.data)
            for path in entry.names:
                if path:
                    paths[path] = entry.file
                    self._paths[entry.file] = path
        self._live_names = self._durable_names = Namespace(paths, self._kinds)
        self._live: dict[int, Content] = contents
        self._durable: dict[int, Content] = contents
        self._moves: tuple[Moved, ...] = ()
        # Only files of which something is pending.
        self._units: dict[int, Units] = {}
        self._spill = Spill()
        self._synced: dict[int, int] = {}
        self._doomed: dict[int, dict[int, int]] = {}
        # The operation that last changed what fdatasync of a file cares for: that it exists, and its size.
        self._grown: dict[int, int] = {}

    def point(self, first: int, last: int) -> Point:
        return Point(
            profile=self._profile,
            first=first,
            last=last,
            live_names=self._live_names,
            live=self._live,
            durable_names=self._durable_names,
            durable=self._durable,
            moves=self._moves,
            units=self._units,
            synced=self._synced,
            doomed=self._doomed,
            paths=self._paths,
        )

    def apply(self, operation: Operation) -> None:
        action, number = operation.action, operation.number
        match action:
            case Names():
                self._move(number, action.changes)
            case Write():
                self._write(number, action.file, action.offset, action.data)
            case Mapped():
                # Each page of a mapping goes to disk by itself.
                offset, data = action.offset, action.data
                while data:
                    size = PAGE - offset % PAGE
                    self._write(number, action.file, offset, data[:size])
                    offset, data = offset + size, data[size:]
            case Truncate():
                self._truncate(number, action.file, action.size)
            case Sync() if action.error:
                self._doom(number, action)
            case Sync() if operation.call.startswith("sync_file_range"):
                self._sync_range(action)
            case Sync():
                self._sync(number, action.file, action.begin, action.end, data_only=action.data_only)
            case SyncAll():
                for file in tuple(self._units):
                    self._sync_data(number, file, 0, None)
                self._keep_names(self._moves)
            case Event() | Failed():
                pass

    def sync_written(self, operation: Operation) -> None:
        """A write has synced what it wrote."""
        write = operation.action
        assert isinstance(write, Write)
        end = write.offset + len(write.data)
        self._sync(operation.number, write.file, write.offset, end, data_only=True)

    def _move(self, number: int, changes: tuple[Change, ...]) -> None:
        self._paths = {**self._paths, **{change.file: change.path for change in changes if change.file != ROOT}}
        for change in changes:
            if isinstance(change, Named) and change.file not in self._kinds:
                self._kinds[change.file] = (change.type, change.data)
                self._grown[change.file] = number
        before = self._live_names
        after = before.made_anew([Moved(number, changes, frozenset(), frozenset())])
        self._live_names = after

        def directory(change: Change) -> int:
            there = after if isinstance(change, Named) else before
            return there.paths.get(parent_of(change.path), ROOT)

        if self._profile is Profile.LINUX:
            directories = frozenset(directory(change) for change in changes)
            moves = [Moved(number, changes, directories, frozenset(change.file for change in changes))]
        else:
            moves = []
            for parent, group in _by_directory(changes).items():
                directories = frozenset(directory(change) for change in group if parent_of(change.path) == parent)
                moves.append(Moved(number, tuple(group), directories, frozenset(change.file for change in group)))
        self._moves = (*self._moves, *moves)

    def _write(self, number: int, file: int, offset: int, data: bytes) -> None:
        if not data:
            return
        old = self._live.get(file, EMPTY)
        new = old.write(offset, data)
        self._live = {**self._live, file: new}
        if new.size != old.size:
            self._grown[file] = number
        end = offset + len(data)
        low, high = offset // SECTOR * SECTOR, sector_up(end)
        if doomed := self._doomed.get(file):
            # A rewrite makes the whole page dirty again, and with it what a failed sync had given up there.
            first, last = offset // PAGE, (end - 1) // PAGE
            low = first * PAGE if first in doomed else low
            high = last * PAGE + PAGE if last in doomed else high
            left = {page: by for page, by in doomed.items() if not first <= page <= last}
            self._doomed = {**self._doomed, file: left}
        sectors = new.read(low, high)
        held = self._spill.put(sectors)
        self._append(Data(number, file, offset, end, low, held, ((low, high),), old.size, new.size))

    def _truncate(self, number: int, file: int, size: int) -> None:
        old = self._live.get(file, EMPTY)
        if old.size == size:
            return
        self._live = {**self._live, file: old.resize(size)}
        self._grown[file] = number
        self._append(Resized(number, file, size))
        if doomed := self._doomed.get(file):
            self._doomed = {**self._doomed, file: {page: by for page, by in doomed.items() if page * PAGE < size}}

    def _doom(self, number: int, sync: Sync) -> None:
        """The pages that the sync was to write are clean now, and on no disk for sure."""
        end = _end(sync.end)
        pages = {
            page
            for unit in self._units.get(sync.file, ())
            if isinstance(unit, Data)
            for begin, stop in clip(unit.spans, sync.begin, end)
            for page in range(begin // PAGE, (stop - 1) // PAGE + 1)
        }
        if pages:
            self._doomed = {
                **self._doomed,
                sync.file: {**dict.fromkeys(pages, number), **self._doomed.get(sync.file, {})},
            }

    def _sync(self, number: int, file: int, begin: int, end: int | None, *, data_only: bool) -> None:
        self._sync_data(number, file, begin, end)
        if self._profile is Profile.POSIX:
            self._keep_names([move for move in self._moves if file in move.directories])
            return
        # The journal holds changes of names in order: with one of them go all before it.
        directory = self._kinds.get(file, (Type.FILE, b""))[0] is Type.DIRECTORY
        until = 0
        for place, move in enumerate(self._moves, start=1):
            # fdatasync of a file waits for the journal only as far as it made the file or changed its size.
            limited = data_only and not directory and move.operation > self._grown.get(file, 0)
            if file in move.directories or (file in move.files and not limited):
                until = place
        self._keep_names(self._moves[:until])

    def _keep_names(self, moves: Sequence[Moved]) -> None:
        if moves:
            self._durable_names = self._durable_names.after(moves)
            kept = {id(move) for move in moves}
            self._moves = tuple(move for move in self._moves if id(move) not in kept)

    def _sync_data(self, number: int, file: int, begin: int, end: int | None) -> None:
        """Bytes in a range become durable, and sizes as far as they are needed for them."""
        self._synced = {**self._synced, file: number}
        units = self._units.get(file)
        if not units:
            return
        doomed = self._doomed.get(file, {})
        if end is None and begin == 0 and not doomed:
            self._durable = {**self._durable, file: self._live.get(file, EMPTY)}
            self._replace(file, ())
            return
        low, high = begin // PAGE * PAGE, _end(None if end is None else -(-end // PAGE) * PAGE)
        draft = Draft(self._durable.get(file, EMPTY))
        left: list[OfFile] = []
        # What a later truncation cut off cannot come back.
        bounds = [unit.size if isinstance(unit, Resized) else None for unit in units]
        for place, unit in enumerate(units):
            if isinstance(unit, Resized):
                draft.resize(unit.size)
                continue
            spans = clip(unit.spans, low, high)
            for page in doomed:
                spans = without(spans, page * PAGE, page * PAGE + PAGE)
            land(draft, unit, spans)
            bound = min((sector_up(size) for size in bounds[place + 1 :] if size is not None), default=_end(None))
            rest = clip(without(unit.spans, low, high), 0, bound)
            if rest:
                left.append(dataclasses.replace(unit, spans=rest))
        self._durable = {**self._durable, file: draft.content()}
        self._replace(file, left)

    def _sync_range(self, sync: Sync) -> None:
        """sync_file_range writes pages, but neither the size that they need nor any name."""
        units = self._units.get(sync.file, Units())
        draft = Draft(self._durable.get(sync.file, EMPTY))
        begin, end = sync.begin // SECTOR * SECTOR, min(_end(sync.end), draft.size // SECTOR * SECTOR)
        if any(isinstance(unit, Resized) for unit in units) or self._doomed.get(sync.file):
            return
        left: list[OfFile] = []
        for unit in units:
            assert isinstance(unit, Data)
            land(draft, unit, clip(unit.spans, begin, end))
            if rest := without(unit.spans, begin, end):
                left.append(dataclasses.replace(unit, spans=rest))
        self._durable = {**self._durable, sync.file: draft.content()}
        self._replace(sync.file, left)

    def _append(self, unit: OfFile) -> None:
        self._units = {**self._units, unit.file: self._units.get(unit.file, Units()).plus(unit)}

    def _replace(self, file: int, left: Sequence[OfFile]) -> None:
        others = {other: units for other, units in self._units.items() if other != file}
        self._units = {**others, file: Units(left)} if left else others


def _end(end: int | None) -> int:
    return 1 << 63 if end is None else end


def _by_directory(changes: Sequence[Change]) -> Mapping[bytes, Sequence[Change]]:
    """The changes that each directory holds: a rename into another is two, and each may be on disk without the other.

    What is below a renamed directory moves with it.
    """
    moved = {(type(change), change.path) for change in changes}
    groups: dict[bytes, list[Change]] = {}
    for change in changes:
        top = change.path
        parent = parent_of(top)
        while parent:
            if (type(change), parent) in moved:
                top = parent
            parent = parent_of(parent)
        groups.setdefault(parent_of(top), []).append(change)
    return groups
