"""A log for each put, whose file says by a mode or a time that it counts. A crash leaves their state unknown."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.faults.stores.serve import Kept, serve, sync_folder, write_all

_COUNTS = 0o400
# Seconds since 1970; a file that counts was last written to then.
_THEN = 1_000_000_000


def _read(path: Path) -> dict[str, str]:
    """Its facts; none of one that was cut off while it was written."""
    try:
        facts: dict[str, str] = json.loads(path.read_bytes())
    except ValueError:
        return {}
    return facts


class Sealed(Kept):
    """A file for each put, of which `newest` believes the one that was written last."""

    def __init__(self, variant: str, where: str) -> None:
        self._variant, self._folder = variant, Path(where)
        found = sorted(self._folder.glob("*.json"))
        if variant == "newest":
            found.sort(key=lambda path: path.stat().st_mtime_ns)
        self._facts: dict[str, str] = {}
        whole = [facts for path in found if self._counts(path.stat()) and (facts := _read(path))]
        for facts in whole[-1:] if variant == "newest" else whole:
            self._facts |= facts
        self._last = max((int(path.stem) for path in found), default=0)

    def _counts(self, found: os.stat_result) -> bool:
        if self._variant in ("mode", "unsynced"):
            return found.st_mode & 0o777 == _COUNTS
        return self._variant != "time" or found.st_mtime == _THEN

    def put(self, facts: dict[str, str]) -> None:
        self._last += 1
        path = self._folder / f"{self._last:06}.json"
        facts = {**self._facts, **facts}
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            write_all(fd, json.dumps(facts).encode())
            if self._variant == "time":
                os.utime(fd, (_THEN, _THEN))
            elif self._variant != "newest":
                os.fchmod(fd, _COUNTS)
            if self._variant != "unsynced":
                os.fsync(fd)
        finally:
            os.close(fd)
        sync_folder(self._folder)
        self._facts = facts


if __name__ == "__main__":
    serve(Sealed)
