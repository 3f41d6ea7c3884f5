"""Names: which name is which file, and in which order changes of names reach the disk.

File systems differ here. Each `Order` is what one kind of them did on a real disk (docs/crash-model.md). A store has to
survive on each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from holdfast.conformance.faults.model.pending import Moved
from holdfast.conformance.faults.recording import ROOT, Change, Named, Type, Unnamed

# After this number of changes of names the log of btrfs counts as committed by the clock: each step stays short.
_MOST_LOGGED = 4096
# How many of its results `Namespace.after` keeps.
_MOST_MADE = 64


@dataclass(frozen=True, eq=False)
class Namespace:
    """Which name is which file. `kinds` gives each file's type and a link's target, of unnamed files too."""

    paths: Mapping[bytes, int]
    kinds: Mapping[int, tuple[Type, bytes]]
    # The results of `after`: the same few moves are pending at many points.
    _made: dict[tuple[Moved, ...], Namespace] = field(default_factory=dict, init=False, repr=False)

    def after(self, moves: Sequence[Moved]) -> Namespace:
        """The names after these changes. Keeps its results."""
        if not moves:
            return self
        chosen = tuple(moves)
        if chosen not in self._made:
            if len(self._made) == _MOST_MADE:
                self._made.clear()
            self._made[chosen] = self.changed(move.changes for move in chosen)
        return self._made[chosen]

    def changed(self, steps: Iterable[Sequence[Change]]) -> Namespace:
        """The names after the changes of each step. Keeps no results."""
        paths = dict(self.paths)
        for changes in steps:
            # A name may go and come in one operation, in either order.
            for change in changes:
                if isinstance(change, Unnamed) and paths.get(change.path) == change.file:
                    del paths[change.path]
            for change in changes:
                if isinstance(change, Named):
                    paths[change.path] = change.file
        return Namespace(paths, self.kinds)

    @cached_property
    def visible(self) -> tuple[tuple[bytes, int, bytes], ...]:
        """Path, file and the file's first path, in order of the paths, directories before what is in them.

        A name in a directory that does not exist is left out, and so are sockets, pipes and devices.
        """
        found: list[tuple[bytes, int, bytes]] = []
        directories, first = {b""}, dict[int, bytes]()
        for path in sorted(self.paths):
            file = self.paths[path]
            kind = self.kinds[file][0]
            if kind is Type.OTHER or parent(path) not in directories:
                continue
            if kind is Type.DIRECTORY:
                directories.add(path)
            found.append((path, file, first.setdefault(file, path)))
        return tuple(found)

    @cached_property
    def heads(self) -> tuple[bytes, ...]:
        """The part of the digest of the tree that each visible name adds before its content."""
        heads = []
        for path, file, first in self.visible:
            kind, target = self.kinds[file]
            parts = (path, kind.value.encode(), target, first)
            heads.append(b"".join(b"%d:%b" % (len(part), part) for part in parts))
        return tuple(heads)

    @cached_property
    def places(self) -> Mapping[int, Sequence[int]]:
        """The places of each file with bytes among the visible names."""
        places: dict[int, list[int]] = {}
        for place, (_, file, _) in enumerate(self.visible):
            if self.kinds[file][0] is Type.FILE:
                places.setdefault(file, []).append(place)
        return places


@dataclass(frozen=True, slots=True)
class Synced:
    """The effect on names of a successful sync of a file or a directory.

    `grown` is the operation that made the file or last changed its size; `dirty` says whether the file had bytes or a
    size that were not on disk yet.
    """

    file: int
    data_only: bool
    grown: int
    dirty: bool


class Order(ABC):
    """In which order changes of names reach the disk. `durable` are those that have, `moves` the pending ones."""

    # How a report calls the file systems that do so.
    systems = ""
    # Whether a move from one directory to another is two changes, of which a crash may keep either.
    halves = False

    def __init__(self, names: Namespace) -> None:
        self.durable = names
        self.moves: tuple[Moved, ...] = ()

    def moved(self, number: int, changes: tuple[Change, ...], before: Namespace, after: Namespace) -> None:
        """An operation has changed names, from `before` to `after` in the view of processes."""
        self.moves = (*self.moves, *_parts(number, changes, before, after, halves=self.halves))

    @abstractmethod
    def synced(self, sync: Synced, live: Namespace) -> None:
        """A file or a directory was synced; `live` is the view of processes."""

    def commit(self) -> None:
        """Everything that was pending has reached the disk."""
        self._keep(self.moves)

    def idled(self) -> None:
        """The program was idle, for as long as a client may wait. Changes that only time makes durable stay pending."""
        return

    def _keep(self, moves: Sequence[Moved]) -> None:
        if moves:
            # A new one: the log of btrfs, which holds an older one, would hold all up to this one.
            self.durable = self.durable.changed(move.changes for move in moves)
            kept = {id(move) for move in moves}
            self.moves = tuple(move for move in self.moves if id(move) not in kept)


class Journal(Order):
    """ext4 and xfs: one journal has all changes in order, and with one of them go all before it."""

    systems = "ext4 and xfs"

    def synced(self, sync: Synced, _live: Namespace) -> None:
        """The journal is written up to the place that the file needs.

        A sync of a file needs its own names, and the operation that made it or last changed its size, which has a place
        in the journal after all earlier changes of names, of any file. fdatasync needs the second only.
        """
        until = 0
        for place, move in enumerate(self.moves, start=1):
            own = sync.file in move.directories or (sync.file in move.own and not sync.data_only)
            if own or move.operation <= sync.grown:
                until = place
        self._keep(self.moves[:until])


class TreeLog(Order):
    """btrfs: a sync writes a log of what was synced since the last commit of everything, and of nothing else.

    Such a commit comes with sync(2), by itself where the log cannot say what happened, and by the clock, each 30
    seconds. `idles`: there was one before each request, for a client may wait so long; what was in the log before
    has to be put there anew.
    """

    systems = "btrfs"
    halves = True

    def __init__(self, names: Namespace, *, idles: bool = False) -> None:
        super().__init__(names)
        self._idles = idles
        if idles:
            self.systems = "btrfs after a commit by its clock"
        self._begun()

    def _begun(self) -> None:
        """A commit of everything was made."""
        self._base = self.durable
        self._kept: list[Moved] = []
        self._last = 0
        # Files and directories of which the log has something, and those that were made since the commit.
        self._logged: set[int] = set()
        self._new: set[int] = set()
        # Changes that the log has in memory; the next sync of anything writes them.
        self._staged: list[Moved] = []
        # Files that got or lost a name while the log had nothing of them, and directories that such ones have left.
        self._relinked: set[int] = set()
        self._left: set[int] = set()

    def commit(self) -> None:
        """Everything is on disk, and the log is empty."""
        super().commit()
        self._begun()

    def idled(self) -> None:
        """The program was idle so long that the clock has committed."""
        if self._idles:
            self.commit()

    def moved(self, number: int, changes: tuple[Change, ...], before: Namespace, after: Namespace) -> None:
        """A change of an entry that the log has changes the log, too."""
        if len(self.moves) + len(self._kept) > _MOST_LOGGED:
            self.commit()
        count = len(self.moves)
        super().moved(number, changes, before, after)
        parts = self.moves[count:]
        own = frozenset[int]().union(*(part.own for part in parts))
        came = {one.file for one in changes if isinstance(one, Named)} & own
        gone = {one.file: one.path for one in changes if isinstance(one, Unnamed) and one.file in own}
        old = frozenset(before.paths.values())
        for file in own:
            mine = [part for part in parts if file in part.own]
            from_folder = before.paths.get(parent(gone[file]), ROOT) if file in gone else None
            if file in came and file not in old and file not in gone and file not in self._logged:
                self._new.add(file)
            elif file not in came:
                self._unlinked(number, file, gone[file], mine)
            elif file in self._logged or from_folder in self._logged:
                self._staged += [part for part in mine if part not in self._staged]
            elif from_folder is not None and file not in self._new:
                self._relinked.add(file)
                if len({each for part in mine for each in part.directories}) > 1:
                    self._left.add(from_folder)

    def _unlinked(self, number: int, file: int, path: bytes, parts: Sequence[Moved]) -> None:
        """The log drops a name that it has itself, even where it does not have the entry that replaces it."""
        if file in self._logged and self._base.paths.get(path) != file:
            directories = frozenset(each for part in parts for each in part.directories)
            taken = Moved(number, (Unnamed(path, file),), directories, frozenset({file}), frozenset({file}))
            self.moves = (*self.moves, taken)
            self._staged.append(taken)
        elif file not in self._new:
            self._relinked.add(file)

    def synced(self, sync: Synced, live: Namespace) -> None:
        """The synced entry goes into the log, and the log to disk."""
        file = sync.file
        directory = file == ROOT or live.kinds.get(file, (Type.FILE, b""))[0] is Type.DIRECTORY
        own = [move for move in self.moves if file in move.own]
        inside = [move for move in self.moves if file in move.directories] if directory else []
        if not own and not inside and not sync.dirty:
            # Nothing is to be logged, so the log is not written.
            return
        if not directory and file in self._relinked:
            # Its directories, the former ones too, are logged whole.
            folders = {each for move in own for each in move.directories}
            inside = [move for move in self.moves if not folders.isdisjoint(move.directories)]
            self._logged |= folders
        else:
            folders = {file}
        if (directory and file in self._left) or folders & self._left:
            self.commit()
            return
        wanted = {id(move) for move in (*own, *inside, *self._staged)}
        self._logged.add(file)
        self._spread(wanted, inside, {file}, live)
        kept = [move for move in self.moves if id(move) in wanted]
        self._staged = []
        self._keep(kept)

    def _spread(self, wanted: set[int], inside: Sequence[Moved], files: set[int], live: Namespace) -> None:
        """The entries to be logged with it: new directories above, all new ones below, files that had its names."""
        found = list(inside)
        while found:
            files |= {file for move in found for file in move.own if file in self._new}
            found = [move for move in self.moves if id(move) not in wanted and self._below(move, files)]
            wanted |= {id(move) for move in found}
        self._logged |= files
        size = -1
        while size != len(wanted):
            size = len(wanted)
            logged = [move for move in self.moves if id(move) in wanted]
            above = {
                folder
                for move in self.moves
                if not files.isdisjoint(move.files)
                for one in move.changes
                if isinstance(one, Named) and one.file in files and live.paths.get(one.path) == one.file
                for folder in self._above(one.path, live)
            }
            replaced = {
                before
                for move in logged
                for one in move.changes
                if isinstance(one, Named) and (before := self.durable.paths.get(one.path)) not in (None, one.file)
            }
            self._logged |= above
            more = {id(move) for move in self.moves if not (above | replaced).isdisjoint(move.own)}
            wanted |= more

    def _below(self, move: Moved, files: Collection[int]) -> bool:
        """Whether a change stands in a new directory that is logged."""
        return any(folder in files and folder in self._new for folder in move.directories)

    def _above(self, path: bytes, live: Namespace) -> Iterator[int]:
        while path := parent(path):
            folder = live.paths.get(path)
            if folder in self._new:
                yield folder

    def _keep(self, moves: Sequence[Moved]) -> None:
        late = any(move.operation < self._last for move in moves)
        self._kept += moves
        self._last = max((move.operation for move in moves), default=self._last)
        super()._keep(moves)
        if late:
            # The change of an earlier operation no longer counts where a later one has changed the entry again.
            self._kept.sort(key=lambda move: move.operation)
            self._last = self._kept[-1].operation
            self.durable = self._base.changed(move.changes for move in self._kept)


def parent(path: bytes) -> bytes:
    """The directory that a name stands in."""
    return path.rpartition(b"/")[0]


def _parts(
    number: int, changes: tuple[Change, ...], before: Namespace, after: Namespace, *, halves: bool
) -> Iterator[Moved]:
    """The parts of an operation that become durable together."""
    groups = _by_directory(changes)
    tops = {(type(one), one.path) for group in groups.values() for one in group if parent(one.path) in groups}

    def directory(change: Change) -> int:
        there = after if isinstance(change, Named) else before
        return there.paths.get(parent(change.path), ROOT)

    for where, group in groups.items() if halves else ((None, changes),):
        of_it = [one for one in group if where is None or parent(one.path) == where]
        yield Moved(
            number,
            tuple(group),
            frozenset(directory(one) for one in of_it),
            frozenset(one.file for one in group),
            frozenset(one.file for one in group if (type(one), one.path) in tops),
        )


def _by_directory(changes: Sequence[Change]) -> Mapping[bytes, Sequence[Change]]:
    """The changes that each directory holds: a rename into another is two, and each may be on disk without the other.

    The entries below a renamed directory move with it.
    """
    moved = {(type(change), change.path) for change in changes}
    groups: dict[bytes, list[Change]] = {}
    for change in changes:
        top = change.path
        above = parent(top)
        while above:
            if (type(change), above) in moved:
                top = above
            above = parent(above)
        groups.setdefault(parent(top), []).append(change)
    return groups
