"""Bugs of calyx-replay: an acknowledged envelope is not stored, or not yet durable (CALYX-ALG-3 and -11)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from holdfast.reference_impl.calyx_replay.store import Store
from holdfast.reference_impl.planting import Change
from holdfast.reference_impl.sqlite import SYNCHRONOUS_FULL


class AnyLevel(Store):
    """A check that accepts a connection that does not wait for the disk."""

    def verify_pragmas(self, found: Mapping[str, int | str]) -> None:
        super().verify_pragmas({**found, "synchronous": SYNCHRONOUS_FULL})


class EachLevel(AnyLevel):
    level = "FULL"

    def begin(self, connection: sqlite3.Connection) -> None:
        connection.execute(f"PRAGMA synchronous = {self.level}")
        super().begin(connection)


BUGS: Mapping[str, Change] = {}
