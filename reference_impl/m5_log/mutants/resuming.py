"""Bugs in checkpoints, and in what goes on from them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from holdfast.reference_impl.m5_log.checkpoints import Checkpoint, Checkpoints
from holdfast.reference_impl.m5_log.database import Change, Database
from holdfast.reference_impl.m5_log.opening import LAST_CHECKPOINT, Opened, number
from holdfast.reference_impl.m5_log.operations import Operation
from holdfast.reference_impl.m5_log.replay import Replay, Source
from holdfast.reference_impl.m5_log.state import Fold, State, Verified
from holdfast.reference_impl.m5_log.terms import Family
from holdfast.reference_impl.planting import part

_SALT_BYTES = 4


class AppliedTwice(Replay):
    def usable(self, opened: Opened, state: State) -> State:
        found = super().usable(opened, state)
        found.applied -= found.applied > 0
        return found


class LastOfMemoryLeftOut(Replay):
    def taken(self, opened: Opened, first: int, last: int, source: Source) -> Iterable[Operation]:
        return super().taken(opened, first, last - (source is Source.MEMORY), source)


class AbsentForgotten(Fold):
    """What a checkpoint was made without counts as judged for ever."""

    def still_true(self, state: State) -> bool:
        known: dict[bytes, Verified | None] = {key: said for key, said in state.judged.items() if said is not None}
        return super().still_true(replace(state, judged=known))


class EndedNotJudged(Fold):
    """A checkpoint depends on the credentials of open grants alone."""

    def still_true(self, state: State) -> bool:
        in_use = {grant.credential for grant in state.grants if grant.until is None}
        judged = {key: said for key, said in state.judged.items() if key in in_use}
        return super().still_true(replace(state, judged=judged))


class IdUsedAgain(Checkpoints):
    def created(self, database: Database, state: State) -> tuple[Checkpoint, Sequence[Change]]:
        made, _ = super().created(database, state)
        used = [checkpoint_id for checkpoint_id, _ in self.all(database)]
        made = replace(made, checkpoint_id=max(used, default=0) + 1)
        key = number(made.checkpoint_id)
        return made, [(Family.CHECKPOINTS, key, self.encode(made)), (Family.META, LAST_CHECKPOINT, key)]


class Salted(Checkpoints):
    def created(self, database: Database, state: State) -> tuple[Checkpoint, Sequence[Change]]:
        made, (first, *others) = super().created(database, state)
        made = replace(made, snapshot=made.snapshot + os.urandom(_SALT_BYTES))
        return made, [(*first[:2], self.encode(made)), *others]

    def state(self, checkpoint: Checkpoint) -> State:
        return super().state(replace(checkpoint, snapshot=checkpoint.snapshot[:-_SALT_BYTES]))


BUGS = {
    "absent-credentials-judged-for-ever": part(fold=AbsentForgotten),
    "last-of-checkpoint-twice": part(replay=AppliedTwice),
    "last-of-memory-left-out": part(replay=LastOfMemoryLeftOut),
    "ended-grants-not-judged": part(fold=EndedNotJudged),
    "checkpoint-id-used-again": part(checkpoints=IdUsedAgain),
    "snapshot-with-salt": part(checkpoints=Salted),
}
