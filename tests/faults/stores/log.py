"""An append-only log: one record for every put, with its length and its checksum."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from tests.faults.stores.serve import Kept, say, serve, sync_folder, write_all

_HEAD = struct.Struct("<II")
# What every log begins with: a file of anything else is not one with a torn tail.
MAGIC = b"facts log 1\n"


def record(facts: dict[str, str]) -> bytes:
    """The bytes of one put."""
    body = json.dumps(facts).encode()
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def records(data: bytes) -> Iterator[tuple[int, dict[str, str]]]:
    """The whole records from the beginning on, each with the offset of its end; what follows is a torn tail."""
    at = len(MAGIC)
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
    """The lines, with every content."""
    at = len(MAGIC)
    while (end := data.find(b"\n", at)) >= 0:
        name, _, value = data[at:end].decode("latin-1").partition(" ")
        at = end + 1
        yield at, {name: value}


def opened(path: Path) -> tuple[int, bytes]:
    """The log to append to, and its bytes. Raises OSError if another process has it, ValueError if it is no log."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    # Also when it was there already: its writer may have ended before this step.
    sync_folder(path.parent)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    data = path.read_bytes()
    if data != MAGIC and MAGIC.startswith(data.rstrip(b"\0")) and len(data) <= len(MAGIC):
        # All ended while it was made.
        os.ftruncate(fd, 0)
        write_all(fd, MAGIC)
        os.fsync(fd)
        data = MAGIC
    if not data.startswith(MAGIC):
        raise ValueError(f"{path.name} is no log of facts")
    return fd, data


class Log(Kept):
    """The facts, and the file that they are read from at the start."""

    def __init__(self, variant: str, where: str) -> None:
        folder = Path(where)
        self._variant = variant
        self._puts = self._end = 0
        self.answers_itself = variant == "ack_first"
        self._lock = folder / "lock"
        if variant == "undoes":
            self._log = os.pipe()
        if variant == "stale_lock":
            self._lock.touch(exist_ok=False)
        self._record = bare_record if variant == "no_checksum" else record
        path = folder / "facts.log"
        self._path, self._is_new = path, not path.exists()
        self._fd, data = self._opened(path)
        self._facts: dict[str, str] = {}
        end = min(len(data), len(MAGIC))
        for at, facts in bare_records(data) if variant == "no_checksum" else records(data):
            self._facts |= facts
            end = at
        if variant == "refuses_tail" and end < len(data):
            raise ValueError(f"facts.log: expected a record at {end}")
        if variant == "rewrites" and data:
            # Nice and compact; the bytes of the new file are synced by the next put.
            new = folder / "facts.new"
            new.write_bytes(MAGIC + record(self._facts))
            new.replace(path)
            sync_folder(folder)
            self._fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        elif variant == "empties" and data:
            # Nice and compact, and gone if it ends before the bytes are back.
            os.ftruncate(self._fd, len(MAGIC))
            os.write(self._fd, record(self._facts))
            os.fsync(self._fd)
        elif variant != "keeps_tail" and end < len(data):
            # The next record would follow bytes that cannot be read.
            os.ftruncate(self._fd, end)
            os.fsync(self._fd)

    def _opened(self, path: Path) -> tuple[int, bytes]:
        if self._variant == "waits_for_lock" and path.exists():
            with path.open("rb") as waiting:
                fcntl.flock(waiting, fcntl.LOCK_EX)
        try:
            return opened(path)
        except OSError:
            if self._variant not in ("locked_is_empty", "keeps_in_memory"):
                raise
            # There is something to write to, and what is in it can be read later.
            return os.memfd_create("facts"), b"" if self._variant == "locked_is_empty" else path.read_bytes()
        except ValueError:
            if self._variant != "foreign_is_empty":
                raise
            return os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_APPEND), b""

    def put(self, facts: dict[str, str]) -> None:
        data = self._record(facts)
        if self._variant in ("undoes", "undoes_late"):
            if self.answers_itself and self._variant == "undoes_late":
                os.ftruncate(self._fd, self._end)
            self.answers_itself = False
            self._end = os.fstat(self._fd).st_size
        if self._variant == "swallow":
            with contextlib.suppress(OSError):
                write_all(self._fd, data)
                os.fsync(self._fd)
        elif self._variant == "short":
            os.write(self._fd, data)
            os.fsync(self._fd)
        else:
            write_all(self._fd, data)
            if self._variant == "ack_first":
                say("OK")
            if not self._is_synced():
                return
        self._facts |= facts

    def _is_synced(self) -> bool:
        """False where a failed sync was answered."""
        self._puts += 1
        if self._variant == "no_fsync" or (self._variant == "every_third" and self._puts % 3):
            return True
        if self._variant == "syncs_new" and not self._is_new:
            return True
        try:
            os.fsync(self._fd)
        except OSError as error:
            if self._variant == "undoes":
                # A line in a log that is a pipe is no answer: the record is still in the file.
                os.write(self._log[1], f"sync: {error}\n".encode())
                os.ftruncate(self._fd, self._end)
                os.fsync(self._fd)
            if self._variant in ("undoes", "undoes_late"):
                # Where it is undone late, the record is in the file until the next put, and a start reads it.
                say("REFUSED nothing was written")
                self.answers_itself = True
                return False
            if self._variant != "retries_fsync":
                raise
            # The second time it says yes: the pages count as clean now.
            os.fsync(self._fd)
        return True

    def dump(self) -> dict[str, str]:
        if self._variant == "gone_is_empty" and not self._path.exists():
            return {}
        return super().dump()

    def close(self) -> None:
        super().close()
        if self._variant == "stale_lock":
            self._lock.unlink()


if __name__ == "__main__":
    serve(Log)
