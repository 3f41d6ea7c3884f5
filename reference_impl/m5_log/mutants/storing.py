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
from holdfast.reference_impl.m5_log.log import Log, Put
from holdfast.reference_impl.m5_log.mutants.choices import SyncedByTheBatchAlone
from holdfast.reference_impl.m5_log.opening import Opened
from holdfast.reference_impl.m5_log.operations import ID_BYTES, Operation, packed
from holdfast.reference_impl.m5_log.state import Verified
from holdfast.reference_impl.m5_log.store import Store
from holdfast.reference_impl.m5_log.terms import Family, Reason, RefusedError
from holdfast.reference_impl.m5_log.witness import Mark, Witness, decode_marks
from holdfast.reference_impl.planting import part

# So many operations of a file are one batch.
_CHUNK = 1000


class Unsynced(Database):
    def write_options(self) -> WriteOptions:
        return WriteOptions()


class UnsyncedWithoutFsync(Unsynced, SyncedByTheBatchAlone):
    pass


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


class EdgesBehind(Store):
    late: Sequence[Change] = ()

    def write(self, opened: Opened, changes: Sequence[Change]) -> None:
        self.late = [change for change in changes if change[0] is Family.EDGES]
        super().write(opened, [change for change in changes if change[0] is not Family.EDGES])

    def attest(self, mark: Mark) -> None:
        if self.late and self.held is not None:
            self.held.database.write(self.late)
        super().attest(mark)


class MarkedFirst(Store):
    def write(self, opened: Opened, changes: Sequence[Change]) -> None:
        _, mark = decode_marks(changes[-1][2])
        self._witness.write(mark)
        super().write(opened, changes)


class MarkedWhenSynced(Witness):
    def write(self, mark: Mark) -> None:
        if mark.is_synced:
            super().write(mark)


class NoAnchor(Witness):
    def write(self, mark: Mark) -> None:
        with self.path.open("r+b") as file:
            os.pwrite(file.fileno(), mark.encode(), mark.slot)


class HexKeys(Log):
    def rows(self, operation: Operation) -> Sequence[Change]:
        _, *others = super().rows(operation)
        return [(Family.OPS, operation.op_id.hex().encode(), operation.raw), *others]


class SortedParents(Log):
    def rows(self, operation: Operation) -> Sequence[Change]:
        first, _, *others = super().rows(operation)
        return [first, (Family.EDGES, operation.op_id, packed(sorted(operation.parents))), *others]


class ParentsCountedInAByte(Log):
    def rows(self, operation: Operation) -> Sequence[Change]:
        first, (family, op_id, edges), *others = super().rows(operation)
        counted = len(operation.parents) % 256
        return [first, (family, op_id, edges and edges[: ID_BYTES * counted]), *others]


class RetryPlacedAgain(Log):
    def check_same(self, opened: Opened, operation: Operation) -> None:
        super().check_same(opened, operation)
        known = opened.dag._order
        opened.dag._order = known and (*known, operation.op_id)


class GenesisWithoutEdges(Log):
    def rows(self, operation: Operation) -> Sequence[Change]:
        first, edges, *others = super().rows(operation)
        return [first, edges, *others] if operation.parents else [first, *others]


class LittleEndianClock(Log):
    def rows(self, operation: Operation) -> Sequence[Change]:
        first, edges, _, *others = super().rows(operation)
        clock = operation.hlc[:8][::-1] + operation.hlc[8:]
        return [first, edges, (Family.BY_AUTHOR, operation.author + clock + operation.op_id, b""), *others]


class CarriedForgotten(Log):
    def rows(self, operation: Operation) -> Sequence[Change]:
        return super().rows(operation)[:3]


class StoredTwice(Log):
    def admitted(self, raw: bytes, declared: bytes | None) -> Operation:
        operation = self._codec.decode(raw)
        self._codec.check_signature(operation)
        return operation if declared is None else replace(operation, op_id=declared)

    def check_same(self, opened: Opened, operation: Operation) -> None:
        self._store.commit(opened, [(Family.OPS, operation.op_id, operation.raw)])


class AlwaysNew(Log):
    def append(self, operations: Sequence[Operation]) -> Sequence[Put]:
        return [replace(put, new=True) for put in super().append(operations)]


class RefusesAgain(Log):
    def check_same(self, opened: Opened, operation: Operation) -> None:
        raise RefusedError(Reason.OP_MALFORMED, "it is stored")


class OneByOne(Log):
    def put_file(self, raw: bytes) -> Sequence[Put]:
        return [self.put(each) for each in self._codec.batch(raw)]


class CountedTwice(Log):
    def append(self, operations: Sequence[Operation]) -> Sequence[Put]:
        opened = self._store.writing()
        new = [each for each in operations if each.op_id not in opened.dag]
        if len({each.op_id for each in new}) < len(new):
            self.write(opened, new)
        return super().append(operations)


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


class FirstRemoved(Log):
    def checkpoint_create(self, index: int | None = None) -> Checkpoint:
        made, opened = super().checkpoint_create(index), self._store.writing()
        self._store.commit(opened, [(Family.OPS, op_id, None) for op_id in opened.dag.order()[:1]])
        return made


class HashOfClaims(Log):
    def persist_vc(self, raw: bytes) -> tuple[bytes, bool]:
        self._verifier.compact(raw)
        cred_hash = hashlib.sha256(raw.split(b".")[1]).digest()
        self._store.commit(self._store.writing(), [(Family.VC_RAW, cred_hash, raw)])
        return cred_hash, True


class CachedUnverified(Log):
    def persist_vc(self, raw: bytes) -> tuple[bytes, bool]:
        cred_hash, new = super().persist_vc(raw)
        row = self._verifier.row(self._verifier.claims(self._verifier.compact(raw)))
        self._store.commit(self._store.writing(), [(Family.VC_VERIFIED, cred_hash, row)])
        return cred_hash, new


class EndForgotten(Verifier):
    def row(self, said: Verified) -> bytes:
        return encode({"issuer": said.issuer, "role": said.role, "scope": list(said.scope), "nbf": said.nbf})


BUGS = {
    "unsynced-batch": part(database=Unsynced),
    "unsynced-without-fsync": part(database=UnsyncedWithoutFsync),
    "command-ends-at-once": part(database=Unsynced, store=EndsAtOnce),
    "parents-counted-in-a-byte": part(log=ParentsCountedInAByte),
    "retry-placed-again": part(log=RetryPlacedAgain),
    "row-by-row": part(store=RowByRow),
    "edges-in-a-second-batch": part(store=EdgesBehind),
    "witness-before-the-batch": part(store=MarkedFirst),
    "witness-only-with-its-sync": part(witness=MarkedWhenSynced),
    "witness-never-synced": part(witness=NoAnchor),
    "op-id-in-hex": part(log=HexKeys),
    "parents-sorted": part(log=SortedParents),
    "genesis-without-edges": part(log=GenesisWithoutEdges),
    "clock-little-endian": part(log=LittleEndianClock),
    "carried-credential-forgotten": part(log=CarriedForgotten),
    "operation-written-again": part(log=StoredTwice),
    "stored-operation-is-new": part(log=AlwaysNew),
    "stored-operation-is-refused": part(log=RefusesAgain),
    "file-one-by-one": part(log=OneByOne),
    "file-in-chunks": part(log=InChunks),
    "twice-in-a-file-counts-twice": part(log=CountedTwice),
    "checkpoint-is-an-operation": part(log=CheckpointInOps),
    "checkpoint-collects-operations": part(log=FirstRemoved),
    "hash-of-claims": part(log=HashOfClaims),
    "unverified-is-cached": part(log=CachedUnverified),
    "end-of-credential-forgotten": part(verifier=EndForgotten),
}
