"""Bugs in what is done with a request: made to fit, counted, done by halves, said to be done; and in the lock."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from rocksdict import WriteOptions

from holdfast.reference_impl.m5_log.checkpoints import Checkpoint
from holdfast.reference_impl.m5_log.database import Change, Database
from holdfast.reference_impl.m5_log.log import Log
from holdfast.reference_impl.m5_log.opening import Opened
from holdfast.reference_impl.m5_log.store import Store
from holdfast.reference_impl.m5_log.terms import UncertainError
from holdfast.reference_impl.m5_log.witness import Mark
from holdfast.reference_impl.planting import part

_PIECE = 16


class InPieces(Log):
    def checkpoint_create(self, index: int | None = None) -> Checkpoint:
        opened = self._store.writing()
        state = self.state(opened) if index is None else self._replay.at(opened, index)
        checkpoint, changes = self._checkpoints.created(opened.database, state)
        (family, key, row), *others = changes
        for size in range(0, len(row or b""), _PIECE):
            self._store.commit(opened, [(family, key, (row or b"")[:size])])
        self._store.commit(opened, [(family, key, row), *others])
        return checkpoint


class SyncsOnRequest(Database):
    syncs = True

    def write_options(self) -> WriteOptions:
        return super().write_options() if self.syncs else WriteOptions()


class OperationsSynced(Store):
    def commit(self, opened: Opened, changes: Sequence[Change], op_ids: Sequence[bytes] = ()) -> None:
        if isinstance(opened.database, SyncsOnRequest):
            opened.database.syncs = bool(op_ids)
        super().commit(opened, changes, op_ids)


class SaysDone(Store):
    def write(self, opened: Opened, changes: Sequence[Change]) -> None:
        with contextlib.suppress(UncertainError):
            super().write(opened, changes)

    def attest(self, mark: Mark) -> None:
        with contextlib.suppress(UncertainError):
            super().attest(mark)


BUGS = {
    "checkpoint-in-pieces": part(log=InPieces),
    "only-operations-are-synced": part(database=SyncsOnRequest, store=OperationsSynced),
    "failed-write-is-done": part(store=SaysDone),
}
