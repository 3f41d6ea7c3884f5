"""Bugs of calyx-replay: what the source leaves open and the contract settles (CALYX-ALG-13, -HARD-8, -MIG-8)."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Mapping
from datetime import datetime

from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.migration import Migration
from holdfast.reference_impl.calyx_replay.store import Store
from holdfast.reference_impl.calyx_replay.terms import Purpose
from holdfast.reference_impl.calyx_replay.timing import TimestampError, Window
from holdfast.reference_impl.planting import Change, part


class FromYearOne(Window):
    def read(self, text: str) -> datetime:
        if text.startswith("0000"):
            raise TimestampError("expected a year from 1 on")
        return super().read(text)


class RepairedFromTheDatabase(Store):
    def connection(self, purpose: Purpose) -> sqlite3.Connection:
        database, log, _ = self.location.files()
        if self._held and not log.exists():
            # "The log is lost, the database itself is whole."
            repaired = database.with_suffix(".repaired")
            shutil.copyfile(database, repaired)
            os.replace(repaired, database)
        return super().connection(purpose)


class ForgottenWithItsRecord(Migration):
    def keep_ahead(self, connection: sqlite3.Connection, envelope: Envelope, key: str, *, now: datetime) -> None:
        pass


BUGS: Mapping[str, Change] = {
    "timestamps-from-year-one": part(window=FromYearOne),
    "lost-log-repaired": part(store=RepairedFromTheDatabase),
    "migrated-ahead-forgotten": part(migration=ForgottenWithItsRecord),
}
