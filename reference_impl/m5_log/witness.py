"""The witness: a file beside the database that says how much of it was acknowledged.

RocksDB cannot tell that a log is missing, or that a prefix of one is not the whole. After every batch the witness is
written and synced, before the answer; what the database holds less than it says was lost.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.reference_impl.m5_log.cbor import encode
from holdfast.reference_impl.m5_log.database import Change
from holdfast.reference_impl.m5_log.terms import StoreError

_MAGIC = b"m5-mark\n"
_HASH_BYTES = 32
_MODULUS = 2**256
_MARK_BYTES = 8 + 8 + _HASH_BYTES + 8 + _HASH_BYTES + _HASH_BYTES
# Two slots, written in turns and never in one sector: a write that is torn leaves the other one whole.
_SLOTS = (0, 4096)
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
        """The mark behind one more batch."""
        batch = encode([[family.value, key, value] for family, key, value in changes])
        return Mark(
            batches=self.batches + 1,
            rolling=hashlib.sha256(self.rolling + hashlib.sha256(batch).digest()).digest(),
            operations=self.operations + len(op_ids),
            total=(self.total + total_of(op_ids)) % _MODULUS,
        )

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
    if len(data) != _MARK_BYTES or not body.startswith(_MAGIC) or hashlib.sha256(body).digest() != checksum:
        return None
    return Mark(
        batches=int.from_bytes(body[8:16], "big"),
        rolling=body[16:48],
        operations=int.from_bytes(body[48:56], "big"),
        total=int.from_bytes(body[56:88], "big"),
    )


def encode_marks(before: Mark, now: Mark) -> bytes:
    """What the database holds of the witness: the mark before its last batch and the one behind it."""
    return before.encode() + now.encode()


def decode_marks(data: bytes | None) -> tuple[Mark, Mark]:
    """The two marks in the database. Raises StoreError."""
    if data is not None and len(data) == 2 * _MARK_BYTES:
        before, now = decode_mark(data[:_MARK_BYTES]), decode_mark(data[_MARK_BYTES:])
        if before is not None and now is not None:
            return before, now
    raise StoreError("expected two marks in meta, got none")


class Witness:
    """The file. Its newest whole slot counts."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self, mark: Mark) -> None:
        """Make the file, or write both of its slots. Raises OSError."""
        handle = os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, _MODE)
        try:
            for slot in _SLOTS:
                os.pwrite(handle, mark.encode(), slot)
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

    def read(self) -> Mark:
        """The newest mark. Raises StoreError where none is whole."""
        whole = [mark for mark in self.slots() if mark is not None]
        if not whole:
            raise StoreError("the witness is damaged")
        return max(whole, key=lambda mark: mark.batches)

    def write(self, mark: Mark) -> None:
        """Write the next mark over the older one, and wait for the disk. Raises OSError."""
        handle = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            data = mark.encode()
            if os.pwrite(handle, data, _SLOTS[mark.batches % len(_SLOTS)]) != len(data):
                raise OSError("the witness was written in part")
            # Its length does not change, so that the data is all there is to wait for.
            os.fdatasync(handle)
        finally:
            os.close(handle)
