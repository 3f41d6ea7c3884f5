"""Replaying the log: from genesis, from a checkpoint, from what was computed before. All three end in one state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, unique

from holdfast.reference_impl.m5_log import checkpoints
from holdfast.reference_impl.m5_log.credentials import Authority, TrustFiles
from holdfast.reference_impl.m5_log.database import Database
from holdfast.reference_impl.m5_log.opening import Opened
from holdfast.reference_impl.m5_log.operations import OpCodec, Operation, author_key
from holdfast.reference_impl.m5_log.state import Fold, State, chain_of
from holdfast.reference_impl.m5_log.terms import Family, Key, Reason, StoreError
from holdfast.reference_impl.terms import RefusedError


@unique
class Source(Enum):
    """Where apply_incremental takes its operations from."""

    STORE = "store"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Replayed:
    """A state, the checkpoint that it was continued from, and why newer ones were not."""

    state: State
    checkpoint_id: int | None = None
    passed_over: tuple[str, ...] = field(default=())


class Replay:
    """Computes states. It never writes, and each method raises StoreError."""

    def __init__(self, codec: OpCodec, trust: TrustFiles) -> None:
        self._codec = codec
        self._trust = trust

    def full(self, opened: Opened) -> State:
        """The state after the whole order, from genesis."""
        state = State()
        self.advance(opened, state, len(opened.dag.order()))
        return state

    def latest(self, opened: Opened) -> Replayed:
        """The same state from the newest checkpoint that can be used, from genesis if there is none."""
        passed_over = []
        for checkpoint_id, row in reversed(checkpoints.listed(opened.database)):
            try:
                state = self.usable(opened, checkpoints.restored(checkpoints.decode(checkpoint_id, row)))
            except StoreError:
                raise
            except RefusedError as error:
                passed_over.append(f"checkpoint {checkpoint_id}: {error}")
                continue
            self.advance(opened, state, len(opened.dag.order()))
            return Replayed(state, checkpoint_id, tuple(passed_over))
        return Replayed(self.full(opened), None, tuple(passed_over))

    def loaded(self, opened: Opened, checkpoint_id: int) -> State:
        """The state of one checkpoint, as it is. Raises RefusedError."""
        return self.usable(opened, checkpoints.load(opened.database, checkpoint_id))

    def usable(self, opened: Opened, state: State) -> State:
        """A state that was computed before, if it is that of the present prefix. Raises RefusedError."""
        if not self.is_prefix(opened, state):
            raise RefusedError(Reason.CHECKPOINT_STALE, "its prefix is not that of the present order")
        if not self.fold(opened).still_true(state):
            raise RefusedError(Reason.CHECKPOINT_STALE, "a credential or an issuer in it is judged otherwise now")
        return state

    def is_prefix(self, opened: Opened, state: State) -> bool:
        """Whether the order still begins with what the state was computed of. Its index alone does not say so."""
        order = opened.dag.order()
        return chain_of(order[: state.applied]) == state.chain

    def continued(self, opened: Opened, before: State | None) -> State:
        """The state after the whole order, from one that was computed before if that still holds."""
        try:
            state = State() if before is None else self.usable(opened, before)
        except StoreError:
            raise
        except RefusedError:
            state = State()
        self.advance(opened, state, len(opened.dag.order()))
        return state

    def at(self, opened: Opened, index: int) -> State:
        """The state after the first `index` operations, from genesis. Raises RefusedError."""
        if index > len(opened.dag.order()):
            raise RefusedError(Reason.RANGE_INVALID, f"the order ends at {len(opened.dag.order())}")
        state = State()
        self.advance(opened, state, index)
        return state

    def incremental(self, opened: Opened, first: int, last: int, source: Source) -> State:
        """The state after the operations `first` to `last`, both included. Raises RefusedError."""
        end = len(opened.dag.order())
        if not 1 <= first <= last + 1 <= end + 1:
            raise RefusedError(Reason.RANGE_INVALID, f"expected a range within 1 to {end}, got {first} to {last}")
        state = self.at(opened, first - 1)
        self.apply(opened, state, self.taken(opened, first, last, source))
        return state

    def taken(self, opened: Opened, first: int, last: int, source: Source) -> Iterable[Operation]:
        """The operations of a range, read one by one, or all of them before the first is applied."""
        found = self.operations(opened, first, last)
        return found if source is Source.STORE else list(found)

    def advance(self, opened: Opened, state: State, last: int) -> None:
        """Apply what lies after a state, up to the operation with the index `last`."""
        self.apply(opened, state, self.operations(opened, state.applied + 1, last))
        if last == len(opened.dag.order()):
            # What waits does so because of its own parents, not because of its edges.
            for op_id in opened.dag.pending():
                self.operation(opened, op_id)

    def apply(self, opened: Opened, state: State, operations: Iterable[Operation]) -> None:
        """Apply operations in their order."""
        fold = self.fold(opened)
        for operation in operations:
            fold.apply(state, operation)

    def fold(self, opened: Opened) -> Fold:
        """What applies operations of this store, with the files of trust as they are now."""
        return Fold(Authority(opened.database, self._trust.read()))

    def operations(self, opened: Opened, first: int, last: int) -> Iterator[Operation]:
        """The operations `first` to `last` of the order, counted from 1."""
        for op_id in opened.dag.order()[first - 1 : last]:
            yield self.operation(opened, op_id)

    def operation(self, opened: Opened, op_id: Key) -> Operation:
        """A stored operation, with the id and the parents under which it stands in the graph."""
        operation = self.stored(opened.database, op_id)
        if operation is None:
            raise StoreError(f"an operation has edges and no bytes: {op_id.hex()}")
        if operation.parents != opened.dag.parents[op_id]:
            raise StoreError(f"the edges of an operation are not its parents: {op_id.hex()}")
        if opened.database.get(Family.BY_AUTHOR, author_key(operation)) is None:
            raise StoreError(f"by_author has another author or clock of an operation: {op_id.hex()}")
        return operation

    def stored(self, database: Database, op_id: Key) -> Operation | None:
        """A stored operation as its bytes say; None where there is none. Its signature was checked when it came."""
        raw = database.get(Family.OPS, op_id)
        if raw is None:
            return None
        if self._codec.op_id(raw) != op_id:
            raise StoreError(f"an operation is not what was written: {op_id.hex()}")
        try:
            return self._codec.decode(raw)
        except RefusedError as error:
            raise StoreError(f"an operation is not what was written: {op_id.hex()}: {error}") from error
