"""A log beside a marker file that says that the log was made whole; a log with facts and no marker is not opened.

No folder is ever synced. LevelDB does the same with its CURRENT: a file that was synced is renamed, and the next record
of another file, which grows by it, takes the rename along.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.faults.stores.log import MAGIC, record, records
from tests.faults.stores.serve import Kept, serve, write_all, write_file

# Bytes that `in_place` reserves for its log.
_ROOM = 1 << 16


class Marked(Kept):
    """The facts of the log."""

    def __init__(self, variant: str, where: str) -> None:
        folder = Path(where)
        self._variant = variant
        self._ready, self._new = folder / "ready", folder / "ready.new"
        path = folder / "facts.log"
        data = path.read_bytes() if path.exists() else b""
        if not self._ready.exists():
            if any(records(data)):
                raise ValueError("facts.log: expected its marker beside it")
            data = self._make(path)
        if not data.startswith(MAGIC):
            raise ValueError("facts.log is no log of facts")
        self._facts: dict[str, str] = {}
        self._end = len(MAGIC)
        for at, facts in records(data):
            self._facts |= facts
            self._end = at
        self._fd = os.open(path, os.O_WRONLY)
        if variant != "in_place" and self._end < len(data):
            os.ftruncate(self._fd, self._end)
            os.fsync(self._fd)

    def _make(self, path: Path) -> bytes:
        data = MAGIC + bytes(_ROOM if self._variant == "in_place" else 0)
        write_file(path, data)
        if self._variant == "bare":
            self._ready.touch()
            return data
        write_file(self._new, b"1")
        if self._variant != "late":
            self._new.replace(self._ready)
        return data

    def put(self, facts: dict[str, str]) -> None:
        if self._variant == "late" and not self._ready.exists():
            self._new.replace(self._ready)
        data = record(facts)
        os.lseek(self._fd, self._end, os.SEEK_SET)
        write_all(self._fd, data)
        os.fdatasync(self._fd)
        self._end += len(data)
        self._facts |= facts


if __name__ == "__main__":
    serve(Marked)
