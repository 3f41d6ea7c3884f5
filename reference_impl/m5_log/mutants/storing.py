"""Bugs in what is written: other rows than the contract's, more or fewer batches, no sync."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from rocksdict import WriteOptions

from holdfast.reference_impl.m5_log.cbor import encode
from holdfast.reference_impl.m5_log.checkpoints import Checkpoint
from holdfast.reference_impl.m5_log.credentials import Verifier
from holdfast.reference_impl.m5_log.database import Change, Database
from holdfast.reference_impl.m5_log.log import Log
from holdfast.reference_impl.m5_log.opening import Opened
from holdfast.reference_impl.m5_log.operations import ID_BYTES, Operation, packed
from holdfast.reference_impl.m5_log.state import Verified
from holdfast.reference_impl.m5_log.store import Store
from holdfast.reference_impl.m5_log.terms import Family
from holdfast.reference_impl.m5_log.witness import Mark, Witness, decode_marks
from holdfast.reference_impl.planting import part

# So many operations of a file are one batch.
_CHUNK = 1000


class Unsynced(Database):
    def write_options(self) -> WriteOptions:
        return WriteOptions()


class EndsAtOnce(Store):
    def release(self) -> None:
        # Closing would write a table, with a sync.
        if self.held is not None and sys.argv[1:2] == ["m5"]:
            sys.stdout.flush()
            os._exit(0)
        super().release()


class RowByRow(Store):
    def write(self, opened: Opened, changes: Sequence[Change]) -> None:
        for change in changes:
            opened.database.write([change])


class MarkedFirst(Store):
    def write(self, opened: Opened, changes: Sequence[Change]) -> None:
        _, mark = decode_marks(changes[-1][2])
        self._witness.write(mark)
        super().write(opened, changes)


class NoAnchor(Witness):
    def write(self, mark: Mark) -> None:
        with self.path.open("r+b") as file:
            os.pwrite(file.fileno(), mark.encode(), mark.slot)


class SortedParents(Log):
    def rows(self, operation: Operation) -> Sequence[Change]:
        first, _, *others = super().rows(operation)
        return [first, (Family.EDGES, operation.op_id, packed(sorted(operation.parents))), *others]


class ParentsCountedInAByte(Log):
    def rows(self, operation: Operation) -> Sequence[Change]:
        first, (family, op_id, edges), *others = super().rows(operation)
        counted = len(operation.parents) % 256
        return [first, (family, op_id, edges and edges[: ID_BYTES * counted]), *others]


class StoredTwice(Log):
    def admitted(self, raw: bytes, declared: bytes | None) -> Operation:
        operation = self._codec.decode(raw)
        self._codec.check_signature(operation)
        return operation if declared is None else replace(operation, op_id=declared)

    def check_same(self, opened: Opened, operation: Operation) -> None:
        self._store.commit(opened, [(Family.OPS, operation.op_id, operation.raw)])


class InChunks(Log):
    def write(self, opened: Opened, operations: Sequence[Operation]) -> None:
        for first in range(0, len(operations), _CHUNK):
            super().write(opened, operations[first : first + _CHUNK])


class CheckpointInOps(Log):
    def checkpoint_create(self, index: int | None = None) -> Checkpoint:
        made = super().checkpoint_create(index)
        event = hashlib.sha256(made.snapshot).digest()
        self._store.commit(self._store.writing(), [(Family.OPS, event, b"checkpoint")])
        return made


class EndForgotten(Verifier):
    def row(self, said: Verified) -> bytes:
        return encode({"issuer": said.issuer, "role": said.role, "scope": list(said.scope), "nbf": said.nbf})


BUGS = {
    "unsynced-batch": part(database=Unsynced),
    "command-ends-at-once": part(database=Unsynced, store=EndsAtOnce),
    "parents-counted-in-a-byte": part(log=ParentsCountedInAByte),
    "row-by-row": part(store=RowByRow),
    "witness-before-the-batch": part(store=MarkedFirst),
    "witness-never-synced": part(witness=NoAnchor),
    "parents-sorted": part(log=SortedParents),
    "operation-written-again": part(log=StoredTwice),
    "file-in-chunks": part(log=InChunks),
    "checkpoint-is-an-operation": part(log=CheckpointInOps),
    "end-of-credential-forgotten": part(verifier=EndForgotten),
}
