"""Bugs in how the file is opened, where it lies and who may read it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import replace

from holdfast.reference_impl.calyx_replay.location import IGNORE_FILE, Location
from holdfast.reference_impl.calyx_replay.mutants.planting import mutant, value
from holdfast.reference_impl.calyx_replay.provision import Provisioner
from holdfast.reference_impl.calyx_replay.store import Store
from holdfast.reference_impl.calyx_replay.terms import Purpose
from holdfast.reference_impl.mutants.planting import EVERYTHING, also, part
from holdfast.reference_impl.sqlite import FILE_MODE


class ForeignKeysOnce(Store):
    def prepare(self, connection: sqlite3.Connection, purpose: Purpose) -> None:
        super().prepare(connection, purpose)
        if self._held:
            # SQLite's default: it was switched on where the first connection was opened.
            connection.execute("PRAGMA foreign_keys = OFF")

    def verify_pragmas(self, found: Mapping[str, int | str]) -> None:
        super().verify_pragmas({**found, "foreign_keys": 1})


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


class MainFileOnly(LeftToUmask):
    def tighten(self) -> None:
        # Once SQLite has it open: what lies beside it has got the mode that it had before.
        if all(path.exists() for path in self.files()):
            self.database.chmod(FILE_MODE)


MUTANTS = (
    mutant(
        "foreign-keys-once",
        "Foreign keys are switched on in the first connection only",
        part(store=ForeignKeysOnce),
        {"HARD-1": "wrong_reason"},
    ),
    mutant(
        "journal-mode-delete",
        "The database has a rollback journal, and nobody looks at the mode",
        part(provisioner=MadeWithRollbackJournal, store=AnyJournal),
        {"HARD-2": "fail_open"},
        also("its case awaits a -wal beside the database", "LOC-3"),
    ),
    mutant(
        "journal-mode-unchecked",
        "Nobody looks at the mode of a database that was made in the right one",
        part(store=AnyJournal),
        {"HARD-2": "fail_open"},
    ),
    mutant(
        "store-elsewhere",
        "The database lies one folder higher",
        value(lambda settings: replace(settings, database_path="runtime/replay_state.db")),
        {"LOC-1": "wrong_reason"},
        {EVERYTHING: "whatever looks into the database, or puts something there, finds none"},
    ),
    mutant(
        "side-files-not-ignored",
        "git ignores the database and not what lies beside it",
        part(location=SideFilesNotIgnored),
        {"LOC-2": "state_leak"},
    ),
    mutant(
        "mode-left-to-umask",
        "The files get whatever mode the umask leaves",
        part(location=LeftToUmask),
        {"LOC-3": "state_leak"},
    ),
    mutant(
        "mode-of-main-file-only",
        "Only the database itself gets mode 0600, after the others were made",
        part(location=MainFileOnly),
        {"LOC-3": "state_leak"},
    ),
)
