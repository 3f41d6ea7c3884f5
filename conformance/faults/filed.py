"""The items of a file's lines, read from the file each time: memory does not grow with the file."""

from __future__ import annotations

import os
import weakref
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar, overload

_Item = TypeVar("_Item")


class Filed(Sequence[_Item], Generic[_Item]):
    """A sequence that stays in its file, one item in each line."""

    def __init__(self, path: Path, parse: Callable[[bytes], _Item], check: Callable[[], None] = lambda: None) -> None:
        """`check` is called before each reading, and may raise to end it. Raises OSError.

        The file stays open as long as this object lives: it may lose its name before that.
        """
        self._parse, self._check = parse, check
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._file)
        # The offset at which each line begins, and at which the last one ends.
        self._places = array("Q")

    def add(self, begin: int) -> None:
        """Note one more line that begins there; at last note the end of the last line."""
        self._places.append(begin)

    def __len__(self) -> int:
        return max(0, len(self._places) - 1)

    @overload
    def __getitem__(self, place: int) -> _Item: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[_Item]: ...
    def __getitem__(self, place: int | slice) -> _Item | Sequence[_Item]:
        wanted = range(len(self))[place]
        return self._at(wanted) if isinstance(wanted, int) else [self._at(one) for one in wanted]

    def __iter__(self) -> Iterator[_Item]:
        return map(self._at, range(len(self)))

    def _at(self, place: int) -> _Item:
        self._check()
        begin, end = self._places[place : place + 2]
        return self._parse(os.pread(self._file, end - begin, begin))
