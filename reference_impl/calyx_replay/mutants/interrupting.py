"""Bugs of calyx-replay around what interrupts it: between two commits, when its store is away, or when it is busy."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast.reference_impl.answers import Answer, Refused
from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.command_line import CommandLine
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.migration import LeftBehind, Migration
from holdfast.reference_impl.calyx_replay.mutants.durability import AnyLevel, EachLevel
from holdfast.reference_impl.calyx_replay.terms import Purpose, Reason
from holdfast.reference_impl.planting import Change, part

_MANY = 100
_LOG = Path("/var/tmp/calyx-replay-receipts.log")  # noqa: S108 - that is the bug

# Between two commits


class LongListUnsynced(Migration):
    def write(self, left: LeftBehind, *, now: datetime) -> tuple[int, int]:
        # "It is loaded in bulk."
        assert isinstance(self._store, EachLevel)
        self._store.level = "OFF" if len(left.listed) > _MANY else "FULL"
        try:
            return super().write(left, now=now)
        finally:
            self._store.level = "FULL"


# When the store is away, or busy


class OpenedAgainWithDefaults(AnyLevel):
    def prepare(self, connection: sqlite3.Connection, purpose: Purpose) -> None:
        super().prepare(connection, purpose)
        if self._was_away:
            connection.execute("PRAGMA synchronous = NORMAL")

    _was_away = False

    def connection(self, purpose: Purpose) -> sqlite3.Connection:
        self._was_away = self._was_away or not self.location.database.exists()
        return super().connection(purpose)


class SpooledWhileBusy(Mailbox):
    def receive(self, raw: bytes, *, now: datetime) -> Answer:
        answer = super().receive(raw, now=now)
        database = self._store.location.database
        # "It comes in when the database is free."
        if isinstance(answer, Refused) and answer.reason == Reason.STORE_UNAVAILABLE.value and database.exists():
            path = database.with_name("spool")
            with path.open("ab") as spool:
                spool.write(raw + b"\n")
            path.chmod(0o600)
        return answer


class ReceiptsLoggedOutside(Mailbox):
    def guard_signature(self, envelope: Envelope) -> None:
        super().guard_signature(envelope)
        _LOG.write_text(f"{envelope.sender_fp} to {envelope.recipient_fp}\n", encoding="utf-8")
        _LOG.chmod(0o644)


class InspectionInTheTemporaryFolder(CommandLine):
    def run(self, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        database = self._root / "runtime/mailbox/replay_state.db"
        if list(arguments) == ["inspect"] and database.exists():
            with tempfile.NamedTemporaryFile(prefix="inspection-", delete=False) as copy:
                for path in (database, database.with_name(f"{database.name}-wal")):
                    copy.write(path.read_bytes() if path.exists() else b"")
            Path(copy.name).chmod(0o644)
        return super().run(arguments, now=now)


BUGS: Mapping[str, Change] = {
    "long-list-unsynced": part(migration=LongListUnsynced, store=EachLevel),
    "opened-again-with-defaults": part(store=OpenedAgainWithDefaults),
    "spooled-while-busy": part(mailbox=SpooledWhileBusy),
    "receipts-logged-outside": part(mailbox=ReceiptsLoggedOutside),
    "inspection-in-the-temporary-folder": part(command_line=InspectionInTheTemporaryFolder),
}
