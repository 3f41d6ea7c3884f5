"""A store that several processes use at once: one log, to which they append in turns."""

from __future__ import annotations

import fcntl
import os
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.stores.serve import serve, sync_folder, write_all


class Shared:
    """One line for each put: a checksum, the names and values. What it read from the log, it reads again to show it.

    `borrows_sync`, the wrong one: does not sync if another thread did since the put began. But a put begins before it
    has waited for its turn, so that the other's sync may be older than what it is to save. With one client at a time
    nothing of it shows.
    """

    def __init__(self, variant: str, where: str) -> None:
        folder = Path(where)
        self._variant = variant
        self._log = os.open(folder / "facts.log", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._turn = os.open(folder / "turn", os.O_RDWR | os.O_CREAT, 0o600)
        with self._our_turn():
            whole = sum(len(line) for line in self._lines())
            if whole < os.fstat(self._log).st_size:
                os.ftruncate(self._log, whole)
            os.fsync(self._log)
            sync_folder(folder)
            # When it was last synced, by the clock that all processes share: of no boot but this one.
            os.pwrite(self._turn, struct.pack("q", 0), 0)

    @contextmanager
    def _our_turn(self) -> Iterator[None]:
        fcntl.flock(self._turn, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    def _lines(self) -> list[bytes]:
        """Up to the first that is not whole."""
        found = []
        for line in os.pread(self._log, 1 << 20, 0).splitlines(keepends=True):
            check, _, body = line.partition(b" ")
            if not line.endswith(b"\n") or check != b"%08x" % zlib.crc32(body):
                break
            found.append(line)
        return found

    def put(self, facts: dict[str, str]) -> None:
        began = time.monotonic_ns()
        body = " ".join(word for fact in facts.items() for word in fact).encode() + b"\n"
        with self._our_turn():
            write_all(self._log, b"%08x %b" % (zlib.crc32(body), body))
            (synced,) = struct.unpack("q", os.pread(self._turn, 8, 0))
            if self._variant != "borrows_sync" or synced < began:
                os.fsync(self._log)
                os.pwrite(self._turn, struct.pack("q", time.monotonic_ns()), 0)

    def dump(self) -> dict[str, str]:
        facts: dict[str, str] = {}
        with self._our_turn():
            for line in self._lines():
                words = line.decode().split()[1:]
                facts |= dict(zip(words[::2], words[1::2], strict=True))
        return facts

    def close(self) -> None:
        os.close(self._log)
        os.close(self._turn)


if __name__ == "__main__":
    serve(Shared)
