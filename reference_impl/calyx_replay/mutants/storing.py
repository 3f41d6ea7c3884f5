"""Bugs in how the file is opened, where it lies and who may read it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import replace

from holdfast.reference_impl.calyx_replay.location import IGNORE_FILE, Location
from holdfast.reference_impl.calyx_replay.provision import Provisioner
from holdfast.reference_impl.calyx_replay.store import Store
from holdfast.reference_impl.planting import Change, part, value


class MadeWithRollbackJournal(Provisioner):
    def fill(self, connection: sqlite3.Connection) -> None:
        super().fill(connection)
        connection.execute("PRAGMA journal_mode = DELETE")


class AnyJournal(Store):
    def verify_pragmas(self, found: Mapping[str, int | str]) -> None:
        super().verify_pragmas({**found, "journal_mode": "wal"})


class SideFilesNotIgnored(Location):
    def make_ignored(self) -> None:
        (self.root / IGNORE_FILE).write_text("/runtime/mailbox/*.db\n", encoding="utf-8")


class LeftToUmask(Location):
    def make_file(self) -> None:
        self.database.touch(exist_ok=False)

    def tighten(self) -> None:
        pass


BUGS: Mapping[str, Change] = {
    "journal-mode-delete": part(provisioner=MadeWithRollbackJournal, store=AnyJournal),
    "journal-mode-unchecked": part(store=AnyJournal),
    "store-elsewhere": value(lambda settings: replace(settings, database_path="runtime/replay_state.db")),
    "side-files-not-ignored": part(location=SideFilesNotIgnored),
    "mode-left-to-umask": part(location=LeftToUmask),
}
