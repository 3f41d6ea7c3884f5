"""The witness: a file beside the database that says how much of it was acknowledged.

RocksDB cannot tell that a log is missing, or that a prefix of one is not the whole. The witness is written after every
batch and before the answer; what the database holds less than it says was lost.

It is synced only once in a while, because it keeps nothing: operations are in the log, and that is synced. Whatever
happens to a process or to the files of the database, the witness is exact, for the system has it. A power failure may
set it back, but never behind the `anchor`, the mark that was synced last. The database holds this one too, so that a
witness that was set back is known from one of another store.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.reference_impl.m5_log.database import Change
from holdfast.reference_impl.m5_log.terms import StoreError

_MAGIC = b"m5-mark\n"
_HASH_BYTES = 32
_MODULUS = 2**256
_MARK_BYTES = 8 + 8 + _HASH_BYTES + 8 + _HASH_BYTES + _HASH_BYTES
# Two slots, never in one sector. While one is written, the other one holds the anchor: a torn write leaves that whole.
_SLOTS = (0, 4096)
# How many batches are written into a slot before it is synced and the other one is written.
PERIOD = 32
_MODE = 0o600


@dataclass(frozen=True, slots=True)
class Mark:
    """What was written so far.

    `rolling` is a hash over all batches in their order. `total` is the sum of all op_ids modulo 2^256: it does not
    depend on an order, so it is computed anew from the rows alone.
    """

    batches: int = 0
    rolling: bytes = bytes(_HASH_BYTES)
    operations: int = 0
    total: int = 0

    def after(self, changes: Sequence[Change], op_ids: Sequence[bytes]) -> Mark:
        """The mark after one more batch."""
        rolling = hashlib.sha256(self.rolling)
        for family, key, value in changes:
            rolling.update(f"{family.value} {key.hex()} {'-' if value is None else value.hex()}\n".encode("ascii"))
        return Mark(
            batches=self.batches + 1,
            rolling=rolling.digest(),
            operations=self.operations + len(op_ids),
            total=(self.total + total_of(op_ids)) % _MODULUS,
        )

    @property
    def is_synced(self) -> bool:
        """Whether the witness of this mark is on the disk before the answer, so that it is the next anchor."""
        return self.batches % PERIOD == PERIOD - 1

    @property
    def slot(self) -> int:
        """Where in the file the mark is written: all of one period in one slot."""
        return _SLOTS[self.batches // PERIOD % len(_SLOTS)]

    def encode(self) -> bytes:
        """The bytes of one slot, with a checksum at their end."""
        body = (
            _MAGIC
            + self.batches.to_bytes(8, "big")
            + self.rolling
            + self.operations.to_bytes(8, "big")
            + self.total.to_bytes(_HASH_BYTES, "big")
        )
        return body + hashlib.sha256(body).digest()


def total_of(op_ids: Iterable[bytes]) -> int:
    """The sum of ids modulo 2^256."""
    return sum(int.from_bytes(op_id, "big") for op_id in op_ids) % _MODULUS


def decode_mark(data: bytes) -> Mark | None:
    """The mark in the bytes of a slot; None where they are not whole."""
    body, checksum = data[:-_HASH_BYTES], data[-_HASH_BYTES:]
    if hashlib.sha256(body).digest() != checksum:
        return None
    return Mark(
        batches=int.from_bytes(body[8:16], "big"),
        rolling=body[16:48],
        operations=int.from_bytes(body[48:56], "big"),
        total=int.from_bytes(body[56:88], "big"),
    )


def encode_marks(anchor: Mark, now: Mark) -> bytes:
    """What the database holds of the witness: the anchor, and the mark after its last batch."""
    return anchor.encode() + now.encode()


def decode_marks(data: bytes | None) -> tuple[Mark, Mark]:
    """The two marks in the database. Raises StoreError."""
    anchor, now = decode_mark((data or b"")[:_MARK_BYTES]), decode_mark((data or b"")[_MARK_BYTES:])
    if anchor is not None and now is not None:
        return anchor, now
    raise StoreError("expected two marks in meta, got none")


def newest(slots: Sequence[Mark | None]) -> Mark:
    """The mark that counts. Raises StoreError where none is whole."""
    whole = [mark for mark in slots if mark is not None]
    if not whole:
        raise StoreError("the witness is damaged")
    return max(whole, key=lambda mark: mark.batches)


class Witness:
    """The file. Its newest whole slot counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Open from the first write to `close`: that is a third of what a write takes.
        self._handle: int | None = None

    def make(self, mark: Mark, slots: Sequence[Mark | None] = (None, None)) -> None:
        """Write the mark into both slots, the older one first, so that it is an anchor. Raises OSError."""
        order = sorted(zip(_SLOTS, slots, strict=True), key=_age)
        handle = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_CREAT, _MODE)
        try:
            for slot, _ in order:
                _put(handle, mark, slot)
                os.fsync(handle)
        finally:
            os.close(handle)

    def slots(self) -> Sequence[Mark | None]:
        """The marks of both slots, None for one that is not whole. Raises StoreError where there is no file."""
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise StoreError(f"the witness cannot be read: {error.strerror}") from error
        return [decode_mark(data[slot : slot + _MARK_BYTES]) for slot in _SLOTS]

    def write(self, mark: Mark) -> None:
        """Write the next mark, and wait for the disk if it is to be the next anchor. Raises OSError."""
        if self._handle is None:
            self._handle = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        _put(self._handle, mark, mark.slot)
        if mark.is_synced:
            # The length of the file does not change, so that the data is all there is to wait for.
            os.fdatasync(self._handle)

    def close(self) -> None:
        """Wait for the disk if anything was written. Raises OSError."""
        handle, self._handle = self._handle, None
        if handle is not None:
            try:
                os.fdatasync(handle)
            finally:
                os.close(handle)


def _age(pair: tuple[int, Mark | None]) -> int:
    """What has none comes before all others."""
    _, mark = pair
    return -1 if mark is None else mark.batches


def _put(handle: int, mark: Mark, slot: int) -> None:
    data = mark.encode()
    if os.pwrite(handle, data, slot) != len(data):
        raise OSError("the witness was written in part")
