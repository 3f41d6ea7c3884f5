"""A log in segments: a new file after each twenty records."""

from __future__ import annotations

import os
from pathlib import Path

from tests.faults.stores.log import MAGIC, record, records
from tests.faults.stores.serve import Kept, serve, sync_folder, write_all

_RECORDS = 20


class Segments(Kept):
    """`right` syncs the segment that it writes to; `first` the one that it opened first, for ever."""

    def __init__(self, variant: str, where: str) -> None:
        self._variant, self._folder = variant, Path(where)
        self._facts: dict[str, str] = {}
        names = sorted(self._folder.glob("*.seg"))
        self._count = 0
        for name in names:
            self._count, end = 0, 0
            for end, facts in records(name.read_bytes()):  # noqa: B007
                self._facts |= facts
                self._count += 1
        self._number = len(names)
        if names:
            self._fd = os.open(names[-1], os.O_WRONLY | os.O_APPEND)
            os.ftruncate(self._fd, max(end, min(len(MAGIC), os.fstat(self._fd).st_size)))
            if os.fstat(self._fd).st_size < len(MAGIC):
                os.ftruncate(self._fd, 0)
                write_all(self._fd, MAGIC)
            os.fsync(self._fd)
            sync_folder(where)
        else:
            self._begin()
        self._synced = self._fd

    def _begin(self) -> None:
        self._number += 1
        self._count = 0
        self._fd = os.open(self._folder / f"{self._number:04}.seg", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        write_all(self._fd, MAGIC)
        os.fsync(self._fd)
        sync_folder(self._folder)

    def put(self, facts: dict[str, str]) -> None:
        if self._count == _RECORDS:
            self._begin()
            if self._variant == "right":
                self._synced = self._fd
        write_all(self._fd, record(facts))
        os.fdatasync(self._synced)
        self._count += 1
        self._facts |= facts


if __name__ == "__main__":
    serve(Segments)
