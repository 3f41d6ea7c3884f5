"""Bugs of calyx-replay: what is forgotten, and when (CALYX-PRN-*)."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.reference_impl.calyx_replay.command_line import CommandLine
from holdfast.reference_impl.calyx_replay.location import Location
from holdfast.reference_impl.calyx_replay.mutants.planting import mutant, value
from holdfast.reference_impl.calyx_replay.provision import Provisioner
from holdfast.reference_impl.calyx_replay.pruning import Pruning
from holdfast.reference_impl.calyx_replay.schema import Schema
from holdfast.reference_impl.calyx_replay.settings import load_settings
from holdfast.reference_impl.calyx_replay.store import COLUMNS, MailboxState, Store
from holdfast.reference_impl.calyx_replay.terms import RefusedError
from holdfast.reference_impl.calyx_replay.timing import shifted, written
from holdfast.reference_impl.mutants.catalogue import Mutant
from holdfast.reference_impl.mutants.planting import also, part

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
        # "Faster than a DELETE that looks at every row": the table is emptied, and the young ones are put back.
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
        return shifted(now.astimezone().replace(tzinfo=UTC), -retention)


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


class CommandLineIdle(CommandLine):
    def run(self, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        if list(arguments) != ["prune"]:
            return super().run(arguments, now=now)
        settings = load_settings(self._config)
        cutoff = written(now - settings.retention)
        # It counts what it would remove, tells it, and ends.
        with contextlib.closing(sqlite3.connect(Location(self._root, settings).database)) as connection:
            (old,) = connection.execute("SELECT count(*) FROM replay_state WHERE seen_at < ?", (cutoff,)).fetchone()
        return {"status": 0, "output": f"removed {old}\n"}


_YOUNG = "records that are younger than the retention go"
_CUTOFF = "its record is of the cutoff itself"
_OLDER = "it prunes what older versions left"

MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "retention-one-hour",
        "Without an argument, an hour is kept",
        value(lambda settings: replace(settings, retention=timedelta(hours=1))),
        {"PRN-1": "lost_durability"},
        also(_YOUNG, "ALG-5 ALG-12 KEY-5 MIG-5 PRN-2 PRN-3 PRN-4 PRN-6a PRN-6c PRN-8 PRN-9 PRN-10 PRN-11"),
    ),
    mutant(
        "retention-in-minutes",
        "Without an argument, 24 minutes are kept",
        value(lambda settings: replace(settings, retention=settings.retention / 60)),
        {"PRN-1": "lost_durability"},
        also(_YOUNG, "ALG-5 ALG-12 KEY-5 MIG-5 PRN-2 PRN-3 PRN-4 PRN-6a PRN-6c PRN-8 PRN-9 PRN-10 PRN-11"),
    ),
    mutant(
        "cutoff-included",
        "A record of the cutoff itself goes as well",
        part(store=CutoffIncluded),
        {"PRN-2": "lost_durability"},
        also(_CUTOFF, "PRN-1 PRN-7 PRN-8"),
    ),
    mutant(
        "prune-inverted",
        "A prune removes the young records",
        part(store=Inverted),
        {"PRN-2": "lost_durability"},
        also(
            "the wrong records go",
            "ALG-4 ALG-5 ALG-8 ALG-12 PRN-1 PRN-3 PRN-4 PRN-5 PRN-6a PRN-6b PRN-6c PRN-7 PRN-8 PRN-9 PRN-10 PRN-11 "
            "SCH-6",
        ),
    ),
    mutant(
        "prune-by-envelope-timestamp",
        "A prune goes by the sender's timestamp",
        part(store=ByEnvelopeTimestamp),
        {"PRN-3": "lost_durability"},
        also(
            "its records have an envelope timestamp of another day",
            "ALG-4 PRN-1 PRN-2 PRN-4 PRN-5 PRN-6a PRN-6b PRN-7 PRN-8 PRN-9 PRN-10 PRN-11",
        ),
    ),
    mutant(
        "prune-row-by-row",
        "A prune commits after each record",
        part(store=RowByRow),
        {"PRN-4": "state_leak"},
        also("its prune dies", "PRN-11"),
    ),
    mutant(
        "retention-constant",
        "A prune keeps the usual retention, whatever it is asked for",
        part(pruning=RetentionConstant),
        {"PRN-5": "lost_durability"},
        also("it asks for another retention", "ALG-5 ALG-12 PRN-7 PRN-10"),
    ),
    mutant(
        "never-pruned",
        "A mailbox does not prune by itself",
        part(pruning=NeverPruned),
        {"PRN-6a": "state_leak"},
        also("it waits for an automatic prune", "PRN-6c PRN-10"),
    ),
    mutant(
        "command-line-elsewhere",
        "The command line works on a mailbox of its own",
        part(command_line=CommandLineElsewhere),
        {"PRN-6b": "state_leak"},
        also("it uses the command line", "LOC-1 MIG-1"),
    ),
    mutant(
        "command-line-idle",
        "The command line tells what it would remove, and removes nothing",
        part(command_line=CommandLineIdle),
        {"PRN-6b": "state_leak"},
        also("it uses the command line", "LOC-1"),
    ),
    mutant(
        "prune-each-accept",
        "A mailbox prunes with each receipt",
        part(pruning=AlwaysDue),
        {"PRN-6c": "state_leak"},
    ),
    mutant(
        "retention-unchecked",
        "Any retention is long enough",
        part(pruning=RetentionUnchecked),
        {"PRN-7": "fail_open"},
    ),
    mutant(
        "retention-sign-dropped",
        "A negative retention is taken for a positive one",
        part(pruning=SignDropped),
        {"PRN-7": "fail_open"},
    ),
    mutant(
        "retention-of-one-window",
        "A retention of one window is long enough",
        part(pruning=OneWindow),
        {"PRN-7": "fail_open"},
    ),
    mutant(
        "prune-as-text",
        "A prune compares times as text",
        part(store=AsText),
        {"PRN-8": "lost_durability"},
    ),
    mutant(
        "unreadable-pruned",
        "What is no instant is pruned",
        part(store=UnreadableGoes),
        {"PRN-8": "lost_durability"},
        also(_OLDER, "PRN-6a"),
    ),
    mutant(
        "cutoff-local",
        "The cutoff is reckoned in local time",
        part(pruning=CutoffLocal),
        {"PRN-9": "lost_durability"},
    ),
    mutant(
        "prune-one-row",
        "A prune removes one record",
        part(store=OneRow),
        {"PRN-10": "state_leak"},
        also("more than one record is old", "ALG-5 PRN-4 PRN-5 PRN-6a PRN-6c"),
    ),
    mutant(
        "prune-swaps-table",
        "A prune empties the table and then puts the young records back",
        part(store=EmptiedAndRefilled),
        {"PRN-11": "fail_open"},
        also("its prune dies", "PRN-4"),
    ),
)
