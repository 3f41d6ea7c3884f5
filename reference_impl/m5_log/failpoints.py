"""The failpoints of whatever writes, wrapped around the two steps of a commit."""

from __future__ import annotations

from enum import Enum, unique
from typing import Any

from holdfast.reference_impl.failpoints import AbortedError, HoldOrAbort, Step, wrap
from holdfast.reference_impl.m5_log.store import Store
from holdfast.reference_impl.m5_log.terms import StoreError, UncertainError


@unique
class Point(Enum):
    """Places of a commit, in order; see `hold_at` in methods.yaml."""

    BEFORE_BATCH = "before_batch"
    AFTER_BATCH = "after_batch"
    AFTER_WITNESS = "after_witness"


class Failpoints(HoldOrAbort[Point]):
    """The failpoints of one store."""

    def watch(self, store: Store) -> None:
        """Wrap the steps of a commit. To it an abort is the same as a disk that fails."""
        wrap(store, "write", self._write)
        wrap(store, "attest", self._attest)

    def _write(self, write: Step) -> Step:
        def wrapped(*args: Any) -> None:
            try:
                self.reach(Point.BEFORE_BATCH)
            except AbortedError as error:
                raise StoreError(str(error)) from error
            write(*args)
            self._behind(Point.AFTER_BATCH)

        return wrapped

    def _attest(self, attest: Step) -> Step:
        def wrapped(*args: Any) -> None:
            attest(*args)
            self._behind(Point.AFTER_WITNESS)

        return wrapped

    def _behind(self, point: Point) -> None:
        try:
            self.reach(point)
        except AbortedError as error:
            raise UncertainError(str(error)) from error
