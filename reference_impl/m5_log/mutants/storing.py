"""Bugs in what is written: other rows than the contract's, more or fewer batches, no sync."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from rocksdict import WriteOptions

from holdfast.reference_impl.m5_log.database import Change, Database
from holdfast.reference_impl.m5_log.log import Log
from holdfast.reference_impl.m5_log.opening import Opened
from holdfast.reference_impl.m5_log.operations import Operation
from holdfast.reference_impl.m5_log.store import Store
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


class InChunks(Log):
    def write(self, opened: Opened, operations: Sequence[Operation]) -> None:
        for first in range(0, len(operations), _CHUNK):
            super().write(opened, operations[first : first + _CHUNK])


BUGS = {
    "command-ends-at-once": part(database=Unsynced, store=EndsAtOnce),
    "row-by-row": part(store=RowByRow),
    "witness-before-the-batch": part(store=MarkedFirst),
    "witness-never-synced": part(witness=NoAnchor),
    "file-in-chunks": part(log=InChunks),
}
