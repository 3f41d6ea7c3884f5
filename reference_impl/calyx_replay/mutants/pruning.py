"""Bugs of calyx-replay: which records a prune removes, and when (CALYX-PRN-*)."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.reference_impl.calyx_replay.command_line import CommandLine
from holdfast.reference_impl.calyx_replay.location import Location
from holdfast.reference_impl.calyx_replay.provision import Provisioner
from holdfast.reference_impl.calyx_replay.pruning import Pruning
from holdfast.reference_impl.calyx_replay.schema import Schema
from holdfast.reference_impl.calyx_replay.settings import load_settings
from holdfast.reference_impl.calyx_replay.store import COLUMNS, MailboxState, Store
from holdfast.reference_impl.calyx_replay.terms import RefusedError
from holdfast.reference_impl.calyx_replay.timing import earlier, written
from holdfast.reference_impl.planting import Change, part, value

_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# What goes


class CutoffIncluded(Store):
    def delete_before(self, connection: sqlite3.Connection, cutoff: int) -> int:
        return super().delete_before(connection, cutoff + 1)


class Inverted(Store):
    def delete_before(self, connection: sqlite3.Connection, cutoff: int) -> int:
        return connection.execute("DELETE FROM replay_state WHERE instant(seen_at) >= ?", (cutoff,)).rowcount


class ByEnvelopeTimestamp(Store):
    def delete_before(self, connection: sqlite3.Connection, cutoff: int) -> int:
        return connection.execute("DELETE FROM replay_state WHERE instant(envelope_timestamp) < ?", (cutoff,)).rowcount


class AsText(Store):
    def delete_before(self, connection: sqlite3.Connection, cutoff: int) -> int:
        text = written(_EPOCH + cutoff * _MICROSECOND)
        return connection.execute("DELETE FROM replay_state WHERE seen_at < ?", (text,)).rowcount


class UnreadableGoes(Store):
    def delete_before(self, connection: sqlite3.Connection, cutoff: int) -> int:
        return connection.execute(
            "DELETE FROM replay_state WHERE coalesce(instant(seen_at), 0) < ?", (cutoff,)
        ).rowcount


class OneRow(Store):
    def delete_before(self, connection: sqlite3.Connection, cutoff: int) -> int:
        return connection.execute(
            "DELETE FROM replay_state WHERE rowid IN "
            "(SELECT rowid FROM replay_state WHERE instant(seen_at) < ? ORDER BY seen_at LIMIT 1)",
            (cutoff,),
        ).rowcount


# In one transaction


class RowByRow(Store):
    def delete_before(self, connection: sqlite3.Connection, cutoff: int) -> int:
        old = connection.execute("SELECT rowid FROM replay_state WHERE instant(seen_at) < ?", (cutoff,)).fetchall()
        for row in old:
            connection.execute("DELETE FROM replay_state WHERE rowid = ?", row)
            connection.execute("COMMIT")
            connection.execute("BEGIN IMMEDIATE")
        return len(old)


class EmptiedAndRefilled(Store):
    def delete_before(self, connection: sqlite3.Connection, cutoff: int) -> int:
        removed = super().delete_before(connection, cutoff)
        young = self.rows(connection)
        # "Faster than a DELETE that reads every row": it empties the table and inserts the young rows again.
        connection.execute("DELETE FROM replay_state")
        connection.execute("COMMIT")
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(self.insert_statement(), [[row[name] for name in COLUMNS] for row in young])
        return removed


# How long it is kept


class RetentionConstant(Pruning):
    def retention(self, args: Any) -> timedelta:
        super().retention(args)
        return self._settings.retention


class RetentionUnchecked(Pruning):
    def long_enough(self, retention: timedelta) -> timedelta:
        return retention


class SignDropped(Pruning):
    def long_enough(self, retention: timedelta) -> timedelta:
        return super().long_enough(abs(retention))


class OneWindow(Pruning):
    def long_enough(self, retention: timedelta) -> timedelta:
        try:
            return super().long_enough(retention)
        except RefusedError:
            if retention < self._settings.window:
                raise
            return retention


class CutoffLocal(Pruning):
    def cutoff(self, retention: timedelta, *, now: datetime) -> datetime:
        return earlier(now.astimezone().replace(tzinfo=UTC), retention)


# By itself


class NeverPruned(Pruning):
    def automatic(self, *, now: datetime) -> None:
        pass


class AlwaysDue(Pruning):
    def due(self, state: MailboxState, *, now: datetime) -> bool:
        return True


# On the command line


class CommandLineElsewhere(CommandLine):
    def words(self, arguments: Sequence[str], *, now: datetime) -> list[str]:
        words = super().words(arguments, now=now)
        location = Location(self._root / "operator", load_settings(self._config))
        if not location.database.exists():
            location.root.mkdir()
            Provisioner(Schema()).make(location)
        words[words.index("--root") + 1] = str(location.root)
        return words


class EachForItself(Pruning):
    """A process reads once when the mailbox was pruned, and remembers its own prunes from then on."""

    def due(self, state: MailboxState, *, now: datetime) -> bool:
        own: str | None = self.__dict__.setdefault("_own", state.last_automatic)
        return super().due(replace(state, last_automatic=own), now=now)

    def prune_automatically(
        self, connection: sqlite3.Connection, state: MailboxState, retention: timedelta, *, now: datetime
    ) -> None:
        self.__dict__["_own"] = written(now)
        super().prune_automatically(connection, state, retention, now=now)


class CommandLineIdle(CommandLine):
    def run(self, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        if list(arguments) != ["prune"]:
            return super().run(arguments, now=now)
        settings = load_settings(self._config)
        cutoff = written(now - settings.retention)
        # It counts the rows that it would remove, reports the count, and ends.
        with contextlib.closing(sqlite3.connect(Location(self._root, settings).database)) as connection:
            (old,) = connection.execute("SELECT count(*) FROM replay_state WHERE seen_at < ?", (cutoff,)).fetchone()
        return {"status": 0, "output": f"removed {old}\n"}


BUGS: Mapping[str, Change] = {
    "retention-one-hour": value(lambda settings: replace(settings, retention=timedelta(hours=1))),
    "retention-in-minutes": value(lambda settings: replace(settings, retention=settings.retention / 60)),
    "cutoff-included": part(store=CutoffIncluded),
    "prune-inverted": part(store=Inverted),
    "prune-by-envelope-timestamp": part(store=ByEnvelopeTimestamp),
    "prune-row-by-row": part(store=RowByRow),
    "retention-constant": part(pruning=RetentionConstant),
    "never-pruned": part(pruning=NeverPruned),
    "command-line-elsewhere": part(command_line=CommandLineElsewhere),
    "command-line-idle": part(command_line=CommandLineIdle),
    "prune-by-each-process": part(pruning=EachForItself),
    "prune-each-accept": part(pruning=AlwaysDue),
    "retention-unchecked": part(pruning=RetentionUnchecked),
    "retention-sign-dropped": part(pruning=SignDropped),
    "retention-of-one-window": part(pruning=OneWindow),
    "prune-as-text": part(store=AsText),
    "unreadable-pruned": part(store=UnreadableGoes),
    "cutoff-local": part(pruning=CutoffLocal),
    "prune-one-row": part(store=OneRow),
    "prune-swaps-table": part(store=EmptiedAndRefilled),
}
