"""Bugs of hx-sync: what becomes of what is forgotten (HX-TMB-4, 5, 7, 8 and 10, HX-T2)."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.reference_impl.answers import Answer
from holdfast.reference_impl.hx_sync.blobs import BlobCache
from holdfast.reference_impl.hx_sync.forgotten import Forgotten
from holdfast.reference_impl.hx_sync.header import Header
from holdfast.reference_impl.hx_sync.importing import Importing, Plan, Round
from holdfast.reference_impl.hx_sync.index import Index
from holdfast.reference_impl.hx_sync.layout import Layout
from holdfast.reference_impl.hx_sync.ledger import Ledger
from holdfast.reference_impl.hx_sync.merging import Merging
from holdfast.reference_impl.hx_sync.mutants.planting import mutant
from holdfast.reference_impl.hx_sync.nodes import Node
from holdfast.reference_impl.hx_sync.objects import Found
from holdfast.reference_impl.hx_sync.records import Batch, EventKey, Window
from holdfast.reference_impl.hx_sync.terms import Kind
from holdfast.reference_impl.hx_sync.views import Views
from holdfast.reference_impl.mutants.catalogue import Mutant
from holdfast.reference_impl.mutants.planting import also, part

# When it is forgotten


class FromNowOn(Merging):
    def tombstone(self, connection: sqlite3.Connection, window: Window) -> bool:
        return False


class OwnEventsOnly(Forgotten):
    def keys_within(self, connection: sqlite3.Connection, first: int, last: int, node_id: str | None) -> list[EventKey]:
        (own,) = connection.execute("SELECT node_id FROM node_config").fetchone()
        return super().keys_within(connection, first, last, own) if node_id in (None, own) else []


class RecordedFirst(Importing):
    def apply_tombstone(self, connection: sqlite3.Connection, found: Found, window: Any) -> tuple[bool, bool]:
        if not self.is_due(self._ledger.recorded_tombstone(connection, found.place.object_id), found):
            return False, False
        self._ledger.record_tombstone(connection, found.place.object_id, window, found.object_hash)
        connection.execute("COMMIT")
        # Some work in between, or few of the moments at which it is killed lie there.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("BEGIN IMMEDIATE")
        return True, self._merging.tombstone(connection, window)


class EventsAfterwards(Importing):
    def apply_tombstone(self, connection: sqlite3.Connection, found: Found, window: Any) -> tuple[bool, bool]:
        connection.execute("CREATE TEMPORARY TABLE kept AS SELECT * FROM events")
        done = super().apply_tombstone(connection, found, window)
        connection.execute("INSERT OR IGNORE INTO events SELECT * FROM kept")
        connection.execute("COMMIT")
        # As above: only the events are left for later.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DROP TABLE kept")
        connection.execute(
            "DELETE FROM events WHERE (node_id, session_id, seq) IN "
            "(SELECT node_id, session_id, seq FROM forgotten_events)"
        )
        return done


class AskedBefore(Importing):
    _anew = False

    def plan(self, node: Node, found: Found) -> Plan:
        if self._anew or found.place.kind is not Kind.SEGMENT:
            return super().plan(node, found)
        with node.index.reading() as connection:
            bounds = self._merging.remembered(connection, found.header)
        planned = super().plan(node, found)

        def apply(connection: sqlite3.Connection) -> tuple[bool, bool]:
            self._merging.remembered = lambda *_: bounds  # type: ignore[method-assign]
            try:
                return planned.apply(connection)
            finally:
                del self._merging.remembered

        return replace(planned, apply=apply)

    def rebuild(self, node: Node, master: bytes) -> Answer:
        self._anew = True
        try:
            return super().rebuild(node, master)
        finally:
            self._anew = False


# For how long


class KeysNotKept(Forgotten):
    def is_forgotten(self) -> str:
        return "(?1 IS NULL)"


class ByWindowsOnly(Merging):
    def segment(self, connection: sqlite3.Connection, header: Header, batch: Batch) -> bool:
        bounds = self.remembered(connection, header)
        inside = {row[:3] for row in batch.events if self._windows.covers(bounds, row[4])}
        artifacts = [row for row in batch.artifacts if (row[0], row[3], row[4]) not in inside]
        leaves = super().segment(connection, header, replace(batch, artifacts=artifacts))
        self._forgotten.drop_events(connection, sorted(inside))
        return leaves


def _forget_the_forgotten(connection: sqlite3.Connection) -> None:
    for table in ("applied_tombstones", "forgotten_events", "forgotten_blobs", "counters"):
        connection.execute(f"DELETE FROM {table}")


class TombstonesDropped(Ledger):
    def reset(self, connection: sqlite3.Connection) -> None:
        super().reset(connection)
        _forget_the_forgotten(connection)


class OnlyFromStore(Importing):
    def round(self, node: Node, master: bytes, done: Round) -> None:
        there = set(self._store.list(self._layout.objects).keys)
        with node.index.writing() as connection:
            applied = connection.execute("SELECT tombstone_id FROM applied_tombstones").fetchall()
            if any(self._layout.tombstone(tombstone_id) not in there for (tombstone_id,) in applied):
                self._ledger.reset(connection)
                _forget_the_forgotten(connection)
        super().round(node, master, done)


class WithheldUntold(Ledger):
    def missing(self, connection: sqlite3.Connection, layout: Layout, keys: set[str]) -> list[str]:
        return []


# What goes with it


class EventsOnly(Forgotten):
    def drop_pins(self, connection: sqlite3.Connection, keys: Sequence[EventKey]) -> None:
        pass

    def forget_blobs(self, connection: sqlite3.Connection, keys: Sequence[EventKey]) -> None:
        pass


class LeftAreShown(Views):
    def event_of(self, table: str) -> str:
        return (
            f"({super().event_of(table)} OR EXISTS (SELECT 1 FROM forgotten_events AS gone WHERE (gone.node_id, "
            f"gone.session_id, gone.seq) = ({table}.node_id, {table}.session_id, {table}.seq)))"
        )


class BlobsKept(Forgotten):
    def uncache(self, connection: sqlite3.Connection) -> bool:
        return False


class KeptElsewhere(Forgotten):
    def drop_events(self, connection: sqlite3.Connection, keys: Sequence[EventKey]) -> None:
        connection.executemany(
            "INSERT OR IGNORE INTO counters (name, value) SELECT 'gone ' || kind || data, 0 FROM events "
            "WHERE node_id = ? AND session_id = ? AND seq = ?",
            keys,
        )
        super().drop_events(connection, keys)


class BlobsMovedAway(BlobCache):
    def sweep(self, kept: set[str]) -> None:
        attic = self._folder.parent / "attic"
        attic.mkdir(exist_ok=True)
        for path in self.files():
            if path.name not in kept:
                shutil.copyfile(path, attic / path.name)
        super().sweep(kept)


class FreePagesKept(Index):
    def prepare(self, connection: sqlite3.Connection) -> None:
        super().prepare(connection)
        connection.execute("PRAGMA secure_delete = OFF").fetchone()


class LogKept(Index):
    def purge(self) -> None:
        pass


class SessionsAlwaysLive(Views):
    def session_is_live(self) -> str:
        return "TRUE"


_FORGOTTEN = "it forgets"

MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "tombstone-only-from-now-on",
        "A tombstone is asked for what comes, and deletes nothing that is there",
        part(merging=FromNowOn),
        {"TMB-4": "wrong_reason"},
        also(_FORGOTTEN, "P4 TMB-3 TMB-5 TMB-6 TMB-7 TMB-8 TMB-9 TMB-10 PIN-3 CLI-1 T1 T2 T4 LOC-5 P1 P3 P5 LOC-4"),
    ),
    mutant(
        "forgotten-keys-not-kept",
        "Only windows are asked: another content of a forgotten event with another time comes in",
        part(forgotten=KeysNotKept, merging=ByWindowsOnly),
        {"TMB-5": "fail_open"},
        also("an event has a content inside the window and one outside", "P4 TMB-8 PIN-3"),
    ),
    mutant(
        "rebuild-drops-tombstones",
        "A rebuild drops what was forgotten with the rest",
        part(ledger=TombstonesDropped),
        {"TMB-5": "fail_open"},
        also("a tombstone's object is removed", "TMB-7"),
    ),
    mutant(
        "tombstones-from-store-only",
        "A tombstone that is not in the store any more does not count any more",
        part(importing=OnlyFromStore),
        {"TMB-7": "fail_open"},
        also("a tombstone's object is removed", "TMB-5"),
    ),
    mutant(
        "withheld-untold",
        "The status names no object that is gone from the store",
        part(ledger=WithheldUntold),
        {"TMB-7": "wrong_reason"},
        also("its status names what is gone", "LOC-5 MAN-1 TMB-5 T2"),
    ),
    mutant(
        "only-events-forgotten",
        "Pins and artifacts of a forgotten event stay",
        part(forgotten=EventsOnly, views=LeftAreShown),
        {"TMB-8": "fail_open"},
        also("a forgotten event has a pin or an artifact", "P4 TMB-7 PIN-3 T2"),
    ),
    mutant(
        "blob-of-forgotten-kept",
        "The cache keeps what only a forgotten event referred to",
        part(forgotten=BlobsKept),
        {"TMB-8": "fail_open"},
        also("a forgotten event has an artifact", "P4 T2"),
    ),
    mutant(
        "session-without-events-shown",
        "A session is shown though none of its events is there",
        part(views=SessionsAlwaysLive),
        {"TMB-8": "fail_open"},
        also("all events of a session are forgotten", "P4 T2"),
    ),
    mutant(
        "forgotten-kept-elsewhere",
        "What is forgotten is kept in another table, where nobody shows it",
        part(forgotten=KeptElsewhere),
        {"TMB-8": "fail_open"},
        also("it looks at the counters", "LOC-5"),
    ),
    mutant(
        "blob-kept-under-another-name",
        "What leaves the cache is kept in another folder of the device",
        part(cache=BlobsMovedAway),
        {"TMB-8": "fail_open"},
        also("it looks what lies in the folder of a device", "IMP-3"),
    ),
    mutant(
        "deleted-rows-stay-in-free-pages",
        "Deleted rows are not overwritten in the file of the index",
        part(index=FreePagesKept),
        {"TMB-8": "fail_open"},
    ),
    mutant(
        "log-keeps-what-is-forgotten",
        "The write-ahead log is left as it is after something was forgotten",
        part(index=LogKept),
        {"TMB-8": "fail_open"},
    ),
    mutant(
        "windows-asked-before-the-transaction",
        "What is forgotten is asked before the transaction that inserts",
        part(importing=AskedBefore),
        {"TMB-5": "fail_open"},
        also("a tombstone is imported at the same time", "TMB-4 P4"),
    ),
    mutant(
        "tombstone-recorded-first",
        "A tombstone is recorded, and its events are deleted afterwards",
        part(importing=RecordedFirst),
        {"TMB-10": "lost_durability"},
        faults={"kill-tombstones": "lost_durability"},
    ),
    mutant(
        "events-deleted-afterwards",
        "A tombstone is recorded and blobs leave the cache in one transaction, and the events are deleted in another",
        part(importing=EventsAfterwards),
        {"TMB-10": "lost_durability"},
        faults={"kill-tombstones": "lost_durability"},
    ),
    mutant(
        "tombstone-only-for-own-events",
        "A tombstone deletes the events of the device that applies it",
        part(forgotten=OwnEventsOnly),
        {"T2": "fail_open"},
        also(_FORGOTTEN, "P4 TMB-3 TMB-4 TMB-5 TMB-6 TMB-7 TMB-8 TMB-9 PIN-3 T1 P1 P3 P5 LOC-4 LOC-5 CLI-1 T4 TMB-10"),
    ),
)
