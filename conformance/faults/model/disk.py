"""What is durable and what is pending after each operation of a recording.

Nothing here touches a file or a process. A disk moves through the operations. A `Point` is its state between two of
them, as a value that later operations do not change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, groupby

from holdfast.conformance.faults.model.contents import EMPTY, Content, Draft
from holdfast.conformance.faults.model.names import Journal, Namespace, Order, Synced, TreeLog
from holdfast.conformance.faults.model.pending import (
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
from holdfast.conformance.faults.recording import (
    ROOT,
    Change,
    Changed,
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
    Unnamed,
    Write,
)


@dataclass(frozen=True, eq=False)
class Point:
    """The state of the disk after operation `first` and up to `last`: those after `first` did not change it.

    `first` is 0 before the first operation. `live` and `live_names` are what processes see, `durable` and
    `durable_names` what surely survives; between them lie `moves` and, of each file, `units`, in order. `synced` is the
    last operation that synced a file, `doomed` the pages of a file that failed syncs gave up, and by which operation.
    `systems` are the file systems that it may stand on so, empty if all: between two operations there is a point for
    each.
    """

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
    systems: str = ""

    @cached_property
    def data(self) -> tuple[OfFile, ...]:
        """The pending operations on all files, in order."""
        return tuple(sorted(chain.from_iterable(self.units.values()), key=lambda unit: unit.operation))

    @property
    def takes_away(self) -> bool:
        """Whether durable bytes are cut, or lose a name, while bytes are pending that may be to replace them."""
        gone = (change.file for move in self.moves for change in move.changes if isinstance(change, Unnamed))
        cut = ((unit.file, unit.size) for unit in self.data if isinstance(unit, Resized))
        lost = any(size < self.durable.get(file, EMPTY).size for file, size in (*cut, *((file, 0) for file in gone)))
        return lost and any(isinstance(unit, Data) for unit in self.data)

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The operations that are not durable, in order."""
        return tuple(sorted((*self.moves, *self.data), key=lambda one: one.operation))

    @property
    def numbers(self) -> range:
        """The operations after which the disk was in this state."""
        return range(self.first, self.last + 1)


def moments(recording: Recording, idle: Collection[int] = ()) -> Iterator[tuple[Point, ...]]:
    """The states of the disk, in order, in each way that is possible; together they cover each operation and 0.

    A write that syncs by itself has two moments: while it was under way, its bytes pending, and after it. `idle` are
    the numbers of operations before which the program had waited for a request, for as long as that took.
    """
    disk = _Disk(recording.snapshot)
    first = last = 0
    waited = False
    for operation in recording.operations:
        waited = waited or operation.number in idle
        if not isinstance(operation.action, Changed | Event | Failed):
            yield disk.points(first, last)
            first = operation.number
            if waited:
                disk.idled()
                waited = False
            disk.apply(operation)
            if isinstance(operation.action, Write) and operation.action.durable:
                yield disk.points(first, first)
                disk.sync_written(operation)
        last = operation.number
    yield disk.points(first, last)


def points(recording: Recording, idle: Collection[int] = ()) -> Iterator[Point]:
    """The points of all moments."""
    return chain.from_iterable(moments(recording, idle))


def on(every: Iterable[Point], systems: str) -> Iterator[Point]:
    """Of the points that several file systems have after one operation, the last of these, or the last of the first."""
    for _, group in groupby(every, key=lambda point: point.first):
        found = list(group)
        wanted = [point for point in found if point.systems == systems]
        yield (wanted or [point for point in found if point.systems == found[0].systems])[-1]


def _same(one: Order, other: Order) -> bool:
    """Whether the same names are durable, and the same operations pending, in any division."""
    pending, others = ({move.operation for move in order.moves} for order in (one, other))
    return pending == others and one.durable.paths == other.durable.paths


class _Disk:
    """A disk on its way through a recording. Mappings are replaced, never changed, because points refer to them."""

    def __init__(self, snapshot: Sequence[Entry]) -> None:
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
        self._live_names = Namespace(paths, self._kinds)
        names = self._live_names
        self._orders: Sequence[Order] = (Journal(names), TreeLog(names), TreeLog(names, idles=True))
        # Those that differ, until names change again.
        self._ways: Sequence[Order] = ()
        self._live: dict[int, Content] = contents
        self._durable: dict[int, Content] = contents
        # Only files with pending operations.
        self._units: dict[int, Units] = {}
        self._spill = Spill()
        self._synced: dict[int, int] = {}
        self._doomed: dict[int, dict[int, int]] = {}
        # The operation that last changed what fdatasync of a file writes: its existence and its size.
        self._grown: dict[int, int] = {}

    def points(self, first: int, last: int) -> tuple[Point, ...]:
        """Its possible states: one, or one for each file system where these differ in the durable names."""
        if not self._ways:
            known: list[Order] = []
            for order in self._orders:
                if not any(_same(order, other) for other in known):
                    known.append(order)
            self._ways = known
        return tuple(
            Point(
                first=first,
                last=last,
                live_names=self._live_names,
                live=self._live,
                durable_names=order.durable,
                durable=self._durable,
                moves=order.moves,
                units=self._units,
                synced=self._synced,
                doomed=self._doomed,
                paths=self._paths,
                systems=order.systems if len(self._ways) > 1 else "",
            )
            for order in self._ways
        )

    def idled(self) -> None:
        """The program was idle, for as long as a client may wait."""
        for order in self._orders:
            order.idled()
        self._ways = ()

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
                for order in self._orders:
                    order.commit()
                self._ways = ()
            case Changed() | Event() | Failed():
                pass

    def sync_written(self, operation: Operation) -> None:
        """A write has synced its own bytes."""
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
        self._live_names = before.changed([changes])
        for order in self._orders:
            order.moved(number, changes, before, self._live_names)
        self._ways = ()

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
            # A rewrite makes the whole page dirty again, and with it the bytes that a failed sync had given up there.
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
        """The pages that the sync had to write are clean now, and it is not certain that any disk has them."""
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
        sync = Synced(file, data_only, self._grown.get(file, 0), dirty=file in self._units)
        self._sync_data(number, file, begin, end)
        for order in self._orders:
            order.synced(sync, self._live_names)
        self._ways = ()

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
