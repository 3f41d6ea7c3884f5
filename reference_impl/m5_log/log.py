"""The log: every operation that writes, and the state while the process runs. Each method raises RefusedError."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.reference_impl.m5_log import checkpoints, credentials
from holdfast.reference_impl.m5_log.checkpoints import Checkpoint
from holdfast.reference_impl.m5_log.credentials import TrustFiles, Verified, cred_hash_of
from holdfast.reference_impl.m5_log.database import Change
from holdfast.reference_impl.m5_log.opening import Opened
from holdfast.reference_impl.m5_log.operations import OpCodec, Operation, author_key, packed
from holdfast.reference_impl.m5_log.replay import Replay
from holdfast.reference_impl.m5_log.state import State
from holdfast.reference_impl.m5_log.store import Store
from holdfast.reference_impl.m5_log.terms import Family, Key, Reason, StoreError
from holdfast.reference_impl.terms import RefusedError


@dataclass(frozen=True, slots=True)
class Put:
    """What became of an operation: whether it is new, whether it waits, and which of its parents are not stored."""

    op_id: Key
    new: bool
    pending: bool
    missing: tuple[bytes, ...]


class Log:
    """Writes to one store. Everything is checked before anything is written, and what belongs together is one batch."""

    def __init__(self, store: Store, codec: OpCodec, trust: TrustFiles, replay: Replay) -> None:
        self._store = store
        self._codec = codec
        self._trust = trust
        self._replay = replay
        self._state: State | None = None

    # Operations

    def put(self, raw: bytes, declared: bytes | None = None) -> Put:
        """Store one operation."""
        return self.append([self.admitted(raw, declared)])[0]

    def put_file(self, raw: bytes) -> Sequence[Put]:
        """Store every operation of a file in one batch, or none."""
        return self.append([self.admitted(part, None) for part in self._codec.batch(raw)])

    def admitted(self, raw: bytes, declared: bytes | None) -> Operation:
        """An operation that may be stored."""
        operation = self._codec.accept(raw, declared)
        if operation.kind == "credential":
            credentials.compact(self.carried(operation))
        return operation

    def carried(self, operation: Operation) -> bytes:
        """The credential that an operation carries."""
        credential = operation.payload["credential"]
        if not isinstance(credential, bytes):
            raise RefusedError(Reason.OP_MALFORMED, "expected a credential as a byte string")
        return credential

    def append(self, operations: Sequence[Operation]) -> Sequence[Put]:
        """Store admitted operations in one batch."""
        opened = self._store.writing()
        new: dict[bytes, Operation] = {}
        for operation in operations:
            if operation.op_id in opened.dag:
                # What is stored under this id are these bytes. It is never written again.
                if opened.database.get(Family.OPS, operation.op_id) != operation.raw:
                    raise StoreError(f"other bytes are stored under the id {operation.op_id.hex()}")
            else:
                new.setdefault(operation.op_id, operation)
        if new:
            self.write(opened, list(new.values()))
        return [
            Put(
                op_id=operation.op_id,
                new=operation.op_id in new,
                pending=not opened.dag.is_surfaced(operation.op_id),
                missing=opened.dag.missing(operation.op_id),
            )
            for operation in operations
        ]

    def write(self, opened: Opened, operations: Sequence[Operation]) -> None:
        """Write operations that are not there yet, with all of their rows."""
        changes = [change for operation in operations for change in self.rows(operation)]
        for operation in operations:
            opened.dag.add(operation.op_id, operation.parents, operation.hlc)
        self._store.commit(opened, changes, [operation.op_id for operation in operations])

    def rows(self, operation: Operation) -> Sequence[Change]:
        """The rows of one operation: its bytes as they came, its edges, its place in its author's time."""
        changes: list[Change] = [
            (Family.OPS, operation.op_id, operation.raw),
            (Family.EDGES, operation.op_id, packed(operation.parents)),
            (Family.BY_AUTHOR, author_key(operation), b""),
        ]
        if operation.kind == "credential":
            credential = self.carried(operation)
            changes.append((Family.VC_RAW, cred_hash_of(credential), credential))
        return changes

    def persist_vc(self, raw: bytes) -> tuple[bytes, bool]:
        """Store a credential as it came; its hash, and whether it is new."""
        credentials.compact(raw)
        cred_hash = cred_hash_of(raw)
        opened = self._store.writing()
        new = opened.database.get(Family.VC_RAW, cred_hash) != raw
        if new:
            self._store.commit(opened, [(Family.VC_RAW, cred_hash, raw)])
        return cred_hash, new

    def persist_verified_vc(self, cred_hash: Key) -> tuple[Verified, bool]:
        """Verify a stored credential, then note what it says; that, and whether the note is new."""
        opened = self._store.writing()
        raw = opened.database.get(Family.VC_RAW, cred_hash)
        if raw is None:
            raise RefusedError(Reason.CREDENTIAL_UNKNOWN, "no credential with this hash is stored")
        # What a credential says, by its signature and not by any cache.
        if cred_hash_of(raw) != cred_hash:
            raise StoreError(f"a credential is not what was written: {cred_hash.hex()}")
        said = credentials.verify(raw, self._trust.read())
        row = credentials.row_of(said)
        new = opened.database.get(Family.VC_VERIFIED, cred_hash) != row
        if new:
            self._store.commit(opened, [(Family.VC_VERIFIED, cred_hash, row)])
        return said, new

    def checkpoint_create(self, index: int | None = None) -> Checkpoint:
        """Store the state after the operation with this index, or after the last one."""
        opened = self._store.writing()
        state = self.state(opened) if index is None else self._replay.at(opened, index)
        checkpoint, changes = checkpoints.created(opened.database, state)
        self._store.commit(opened, changes)
        return checkpoint

    def checkpoint_load(self, checkpoint_id: int) -> State:
        """The state of a checkpoint that can be used."""
        with self._store.reading() as opened:
            return self._replay.loaded(opened, checkpoint_id)

    def checkpoint_delete(self, checkpoint_id: int) -> None:
        """Remove a checkpoint; its id is never used again."""
        opened = self._store.writing()
        self._store.commit(opened, checkpoints.deleted(opened.database, checkpoint_id))

    # The state while the process runs

    def state(self, opened: Opened) -> State:
        """The state after the whole order, continued from what was computed before if that still holds."""
        before, self._state = self._state, None
        self._state = self._replay.continued(opened, before)
        return self._state

    def decide(self, opened: Opened, subject: Key, role: str, tag: str, op_id: Key) -> bool:
        """Whether a subject with a role is allowed a tag at an operation. Raises KeyError for one not in the order."""
        order = opened.dag.order()
        if not opened.dag.is_surfaced(op_id):
            raise KeyError(f"the order has no operation {op_id.hex()}")
        state, at = self.state(opened), self._replay.operation(opened, op_id)
        return self._replay.fold(opened).allowed(state, subject, role, tag, at, order.index(op_id) + 1)
