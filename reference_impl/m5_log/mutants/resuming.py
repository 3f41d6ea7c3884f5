"""Bugs in checkpoints, and in what goes on from them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from holdfast.reference_impl.m5_log.checkpoints import Checkpoint, Checkpoints
from holdfast.reference_impl.m5_log.dag import Dag
from holdfast.reference_impl.m5_log.database import Change, Database
from holdfast.reference_impl.m5_log.opening import LAST_CHECKPOINT, WATERMARK, Opened, number, read_number
from holdfast.reference_impl.m5_log.operations import Operation
from holdfast.reference_impl.m5_log.replay import Replay, Replayed, Source
from holdfast.reference_impl.m5_log.state import Fold, Snapshots, State, Verified
from holdfast.reference_impl.m5_log.store import Store
from holdfast.reference_impl.m5_log.terms import Family, RefusedError
from holdfast.reference_impl.planting import part

_SALT_BYTES = 4
# Ids go down from here.
_MOST_CHECKPOINTS = 2**40


class AppliedTwice(Replay):
    def usable(self, opened: Opened, state: State) -> State:
        found = super().usable(opened, state)
        found.applied -= found.applied > 0
        return found


class LeavesOneOut(Replay):
    def advance(self, opened: Opened, state: State, last: int) -> None:
        behind = 2 if state.applied else 1
        self.apply(opened, state, self.operations(opened, state.applied + behind, last))


class IndexTrusted(Replay):
    def is_prefix(self, opened: Opened, state: State) -> bool:
        return state.applied <= len(opened.dag.order())


class FromWatermark(Replay):
    def latest(self, opened: Opened) -> Replayed:
        last = read_number(opened.database.get(Family.META, WATERMARK))
        state = State()
        self.advance(opened, state, min(last, len(opened.dag.order())))
        return Replayed(state)


class LastOfMemoryLeftOut(Replay):
    def taken(self, opened: Opened, first: int, last: int, source: Source) -> Iterable[Operation]:
        return super().taken(opened, first, last - (source is Source.MEMORY), source)


class AbsentForgotten(Fold):
    """What a checkpoint was made without counts as judged for ever."""

    def still_true(self, state: State) -> bool:
        known: dict[bytes, Verified | None] = {key: said for key, said in state.judged.items() if said is not None}
        return super().still_true(replace(state, judged=known))


class NewestOfEqualGrants(Snapshots):
    """Of equal grants that are open a restored state finds the newest alone."""

    def decode(self, blob: bytes) -> State:
        state = super().decode(blob)
        for key, places in state.places.items():
            newest = {(state.grants[at].role, state.grants[at].author, state.grants[at].until): at for at in places}
            state.places[key] = sorted(newest.values())
        return state


class EndedNotJudged(Fold):
    """A checkpoint depends on the credentials of open grants alone."""

    def still_true(self, state: State) -> bool:
        in_use = {grant.credential for grant in state.grants if grant.until is None}
        judged = {key: said for key, said in state.judged.items() if key in in_use}
        return super().still_true(replace(state, judged=judged))


class JudgedForEver(Fold):
    def still_true(self, state: State) -> bool:
        return True


class EmptyForUnknown(Checkpoints):
    def load(self, database: Database, checkpoint_id: int) -> State:
        try:
            return super().load(database, checkpoint_id)
        except RefusedError:
            return State()


class DigestUnchecked(Checkpoints):
    def digest(self, content: bytes) -> bytes:
        return bytes(32)


class IdUsedAgain(Checkpoints):
    def created(self, database: Database, state: State) -> tuple[Checkpoint, Sequence[Change]]:
        made, _ = super().created(database, state)
        used = [checkpoint_id for checkpoint_id, _ in self.all(database)]
        made = replace(made, checkpoint_id=max(used, default=0) + 1)
        key = number(made.checkpoint_id)
        return made, [(Family.CHECKPOINTS, key, self.encode(made)), (Family.META, LAST_CHECKPOINT, key)]


class LittleEndianIds(Checkpoints):
    def created(self, database: Database, state: State) -> tuple[Checkpoint, Sequence[Change]]:
        made, (first, *others) = super().created(database, state)
        return made, [(first[0], first[1][::-1], first[2]), *others]

    def stored(self, database: Database, checkpoint_id: int) -> bytes:
        found = database.get(Family.CHECKPOINTS, number(checkpoint_id)[::-1])
        return super().stored(database, checkpoint_id) if found is None else found

    def all(self, database: Database) -> Sequence[tuple[int, bytes]]:
        return sorted((self.id_of(key[::-1]), row) for key, row in database.rows(Family.CHECKPOINTS))


class IdsDecrease(Checkpoints):
    def created(self, database: Database, state: State) -> tuple[Checkpoint, Sequence[Change]]:
        made, changes = super().created(database, state)
        key = number(_MOST_CHECKPOINTS - made.checkpoint_id)
        return replace(made, checkpoint_id=read_number(key)), [
            (family, name if family is Family.META else key, key if name == LAST_CHECKPOINT else value)
            for family, name, value in changes
        ]

    def all(self, database: Database) -> Sequence[tuple[int, bytes]]:
        return super().all(database)[::-1]


class IndexOfNext(Checkpoints):
    def created(self, database: Database, state: State) -> tuple[Checkpoint, Sequence[Change]]:
        made, changes = super().created(database, state)
        return replace(made, topo_index=made.topo_index + 1), changes


class Salted(Checkpoints):
    def created(self, database: Database, state: State) -> tuple[Checkpoint, Sequence[Change]]:
        made, (first, *others) = super().created(database, state)
        made = replace(made, snapshot=made.snapshot + os.urandom(_SALT_BYTES))
        return made, [(*first[:2], self.encode(made)), *others]

    def state(self, checkpoint: Checkpoint) -> State:
        return super().state(replace(checkpoint, snapshot=checkpoint.snapshot[:-_SALT_BYTES]))


class LatestNotNoted(Checkpoints):
    def deleted(self, database: Database, checkpoint_id: int) -> Sequence[Change]:
        return super().deleted(database, checkpoint_id)[:1]


class CountersLeftOut(Snapshots):
    def encode(self, state: State) -> bytes:
        return super().encode(replace(state, counters={}))


class WatermarkZero(Store):
    def watermark(self, dag: Dag) -> int:
        return 0


BUGS = {
    "absent-credentials-judged-for-ever": part(fold=AbsentForgotten),
    "last-of-checkpoint-twice": part(replay=AppliedTwice),
    "first-behind-checkpoint-left-out": part(replay=LeavesOneOut),
    "index-of-checkpoint-trusted": part(replay=IndexTrusted),
    "replay-to-the-watermark": part(replay=FromWatermark),
    "last-of-memory-left-out": part(replay=LastOfMemoryLeftOut),
    "judged-for-ever": part(fold=JudgedForEver),
    "ended-grants-not-judged": part(fold=EndedNotJudged),
    "newest-of-equal-grants": part(snapshots=NewestOfEqualGrants),
    "unknown-checkpoint-is-empty": part(checkpoints=EmptyForUnknown),
    "checkpoint-digest-unchecked": part(checkpoints=DigestUnchecked),
    "checkpoint-id-used-again": part(checkpoints=IdUsedAgain),
    "checkpoint-id-little-endian": part(checkpoints=LittleEndianIds),
    "checkpoint-ids-decrease": part(checkpoints=IdsDecrease),
    "checkpoint-index-of-the-next": part(checkpoints=IndexOfNext),
    "snapshot-with-salt": part(checkpoints=Salted),
    "latest-checkpoint-not-noted": part(checkpoints=LatestNotNoted),
    "counters-not-in-snapshot": part(snapshots=CountersLeftOut),
    "watermark-stays-zero": part(store=WatermarkZero),
}
