"""Sound variants of m5-log: each does what a clause permits, and the reference does not do."""

from __future__ import annotations

from collections.abc import Mapping

from rocksdict import Options

from holdfast.reference_impl.m5_log.database import Access, Database, Recovery
from holdfast.reference_impl.planting import Change, part


class SyncedByTheBatchAlone(Database):
    def options(self, access: Access, recovery: Recovery) -> Options:
        options = super().options(access, recovery)
        options.set_use_fsync(False)
        return options


BUGS: Mapping[str, Change] = {
    "choice-synced-by-the-batch-alone": part(database=SyncedByTheBatchAlone),
}
