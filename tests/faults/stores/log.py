"""An append-only log: one record for every put, with its length and its checksum."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from tests.faults.stores.serve import say, serve, sync_folder, write_all

_HEAD = struct.Struct("<II")
_NO_LOCK = -1


def record(facts: dict[str, str]) -> bytes:
    """The bytes of one put."""
    body = json.dumps(facts).encode()
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def records(data: bytes) -> Iterator[tuple[int, dict[str, str]]]:
    """The whole records from the beginning on, each with the offset of its end; what follows is a torn tail."""
    at = 0
    while len(data) >= at + _HEAD.size:
        size, check = _HEAD.unpack_from(data, at)
        body = data[at + _HEAD.size : at + _HEAD.size + size]
        at += _HEAD.size + size
        # A record has facts: zeros, whose checksum is right, are none.
        if not size or len(body) != size or zlib.crc32(body) != check:
            return
        yield at, json.loads(body)


def bare_record(facts: dict[str, str]) -> bytes:
    """The bytes of one put without a checksum: a line for each fact."""
    return "".join(f"{name} {value}\n" for name, value in facts.items()).encode()


def bare_records(data: bytes) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines, whatever is in them."""
    at = 0
    while (end := data.find(b"\n", at)) >= 0:
        name, _, value = data[at:end].decode("latin-1").partition(" ")
        at = end + 1
        yield at, {name: value}


class Log:
    """The facts, and the file that they are read from at the start."""

    def __init__(self, variant: str, folder: Path) -> None:
        self._variant = variant
        self._folder = folder
        self._puts = 0
        self.answers_itself = variant == "ack_first"
        self._lock = folder / "lock"
        if variant == "stale_lock":
            self._lock.touch(exist_ok=False)
        self._record = bare_record if variant == "no_checksum" else record
        path = folder / "facts.log"
        path.touch()
        # Also when it stood there: whoever made it may have died before this.
        sync_folder(folder)
        data = path.read_bytes()
        self._facts: dict[str, str] = {}
        end = 0
        for at, facts in bare_records(data) if variant == "no_checksum" else records(data):
            self._facts |= facts
            end = at
        if variant == "refuses_tail" and end < len(data):
            raise ValueError(f"facts.log: expected a record at {end}")
        if variant == "rewrites" and data:
            # Nice and compact; the bytes of the new file are synced by the next put.
            new = folder / "facts.new"
            new.write_bytes(record(self._facts))
            new.replace(path)
            sync_folder(folder)
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        if variant not in ("keeps_tail", "rewrites") and end < len(data):
            # The next record would stand behind bytes that nobody can read.
            os.truncate(path, end)
            os.fsync(self._fd)

    def put(self, facts: dict[str, str]) -> None:
        data = self._record(facts)
        if self._variant == "swallow":
            with contextlib.suppress(OSError):
                write_all(self._fd, data)
                os.fsync(self._fd)
        elif self._variant == "short":
            os.write(self._fd, data)
            os.fsync(self._fd)
        else:
            write_all(self._fd, data)
            if self.answers_itself:
                say("OK")
            self._sync()
        self._facts |= facts

    def _sync(self) -> None:
        self._puts += 1
        if self._variant == "no_fsync" or (self._variant == "every_third" and self._puts % 3):
            return
        try:
            os.fsync(self._fd)
        except OSError:
            if self._variant != "retries_fsync":
                raise
            # The second time it says yes: the pages count as clean now.
            os.fsync(self._fd)

    def dump(self) -> dict[str, str]:
        return self._facts

    def close(self) -> None:
        os.close(self._fd)
        if self._variant == "stale_lock":
            self._lock.unlink()


if __name__ == "__main__":
    serve(Log)
