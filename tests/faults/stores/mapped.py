"""A store that never calls `write` on a file: its pages are mapped, and a sync of the mapping makes them durable."""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from tests.faults.stores.serve import Kept, serve, sync_folder

_HEAD = struct.Struct("<II")
_SIZE = 1 << 16
_MAGIC = b"mapped facts 1\n\0"


class Mapped(Kept):
    """Records one behind the other in a file of a fixed size; the first that is not whole is the end."""

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
        if not any(self._map[: len(_MAGIC)]) and not any(self._map[:]):
            self._map[: len(_MAGIC)] = _MAGIC
            self._map.flush()
        if self._map[: len(_MAGIC)] != _MAGIC:
            raise ValueError(f"{path.name} is no map of facts")
        self._facts: dict[str, str] = {}
        self._end = len(_MAGIC)
        for end, facts in self._records():
            self._facts |= facts
            self._end = end

    def _records(self) -> Iterator[tuple[int, dict[str, str]]]:
        at = len(_MAGIC)
        while at + _HEAD.size <= _SIZE:
            size, check = _HEAD.unpack_from(self._map, at)
            body = self._map[at + _HEAD.size : at + _HEAD.size + size]
            at += _HEAD.size + size
            if not size or len(body) != size or zlib.crc32(body) != check:
                return
            yield at, json.loads(body)

    def put(self, facts: dict[str, str]) -> None:
        body = json.dumps(facts).encode()
        record = _HEAD.pack(len(body), zlib.crc32(body)) + body
        if self._end + len(record) > _SIZE:
            raise OSError("the map is full")
        self._map[self._end : self._end + len(record)] = record
        if self._syncs:
            self._map.flush()
        self._end += len(record)
        self._facts |= facts

    def close(self) -> None:
        self._map.close()


if __name__ == "__main__":
    serve(Mapped)
