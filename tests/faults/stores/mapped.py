"""A store that never calls `write` on a file: its pages are mapped, and a sync of the mapping makes them durable."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from tests.faults.stores.log import MAGIC, record, records
from tests.faults.stores.serve import Kept, serve, sync_folder

_SIZE = 1 << 16


class Mapped(Kept):
    """A log in a file of a fixed size; the first record that is not whole is the end."""

    def __init__(self, variant: str, where: str) -> None:
        self._syncs = variant == "right"
        path = Path(where, "facts.map")
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        size = os.fstat(fd).st_size
        if size < _SIZE:
            # All ended while it was made; a shorter file with bytes in it is damaged.
            if any(path.read_bytes()):
                raise ValueError(f"{path.name} was cut to {size} bytes")
            os.posix_fallocate(fd, 0, _SIZE)
            os.fsync(fd)
        sync_folder(where)
        self._map = mmap.mmap(fd, _SIZE)
        os.close(fd)
        if not any(self._map[: len(MAGIC)]) and not any(self._map[:]):
            self._map[: len(MAGIC)] = MAGIC
            self._map.flush()
        if self._map[: len(MAGIC)] != MAGIC:
            raise ValueError(f"{path.name} is no map of facts")
        self._facts: dict[str, str] = {}
        self._end = len(MAGIC)
        for end, facts in records(self._map[:]):
            self._facts |= facts
            self._end = end

    def put(self, facts: dict[str, str]) -> None:
        data = record(facts)
        if self._end + len(data) > _SIZE:
            raise OSError("the map is full")
        self._map[self._end : self._end + len(data)] = data
        if self._syncs:
            self._map.flush()
        self._end += len(data)
        self._facts |= facts

    def close(self) -> None:
        self._map.close()


if __name__ == "__main__":
    serve(Mapped)
