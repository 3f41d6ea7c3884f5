"""Which name is which file, and what stands under the names after some changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from conformance.faults.model.pending import Moved
from conformance.faults.recording import Named, Type, Unnamed

# What `Namespace.after` keeps of what it has made.
_MOST_MADE = 64


@dataclass(frozen=True, eq=False)
class Namespace:
    """Which name is which file. `kinds` gives each file's type and a link's target, of files that are not named too."""

    paths: Mapping[bytes, int]
    kinds: Mapping[int, tuple[Type, bytes]]
    # What `after` has made: the same few moves are pending at many points.
    _made: dict[tuple[Moved, ...], Namespace] = field(default_factory=dict, init=False, repr=False)

    def after(self, moves: Sequence[Moved]) -> Namespace:
        """With these changes made. Keeps what it has made."""
        if not moves:
            return self
        chosen = tuple(moves)
        if chosen not in self._made:
            if len(self._made) == _MOST_MADE:
                self._made.clear()
            self._made[chosen] = self.made_anew(chosen)
        return self._made[chosen]

    def made_anew(self, moves: Sequence[Moved]) -> Namespace:
        """The same, and nothing of it is kept."""
        paths = dict(self.paths)
        for move in moves:
            # A name may go and come in one operation, in either order.
            for change in move.changes:
                if isinstance(change, Unnamed) and paths.get(change.path) == change.file:
                    del paths[change.path]
            for change in move.changes:
                if isinstance(change, Named):
                    paths[change.path] = change.file
        return Namespace(paths, self.kinds)

    @cached_property
    def visible(self) -> tuple[tuple[bytes, int, bytes], ...]:
        """Path, file and the file's first path, in order of the paths, directories before what is in them.

        A name in a directory that is not there is not there. Sockets, pipes and devices are left out.
        """
        found: list[tuple[bytes, int, bytes]] = []
        directories, first = {b""}, dict[int, bytes]()
        for path in sorted(self.paths):
            file = self.paths[path]
            kind = self.kinds[file][0]
            if kind is Type.OTHER or parent_of(path) not in directories:
                continue
            if kind is Type.DIRECTORY:
                directories.add(path)
            found.append((path, file, first.setdefault(file, path)))
        return tuple(found)

    @cached_property
    def heads(self) -> tuple[bytes, ...]:
        """What a digest of the tree needs of each visible name before its content."""
        heads = []
        for path, file, first in self.visible:
            kind, target = self.kinds[file]
            parts = (path, kind.value.encode(), target, first)
            heads.append(b"".join(b"%d:%b" % (len(part), part) for part in parts))
        return tuple(heads)

    @cached_property
    def places(self) -> Mapping[int, Sequence[int]]:
        """Where among the visible names each file with bytes stands."""
        places: dict[int, list[int]] = {}
        for place, (_, file, _) in enumerate(self.visible):
            if self.kinds[file][0] is Type.FILE:
                places.setdefault(file, []).append(place)
        return places


def parent_of(path: bytes) -> bytes:
    """The directory that a path stands in."""
    return path.rpartition(b"/")[0]
