"""Bugs of hx-sync: how forgotten events are removed (HX-TMB-4, 5, 7, 8 and 10, HX-T2)."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from holdfast.reference_impl.answers import Answer
from holdfast.reference_impl.hx_sync.blobs import BlobCache
from holdfast.reference_impl.hx_sync.forgotten import Forgotten
from holdfast.reference_impl.hx_sync.header import Header
from holdfast.reference_impl.hx_sync.importing import Importing, Plan, Round
from holdfast.reference_impl.hx_sync.index import Index
from holdfast.reference_impl.hx_sync.layout import Layout
from holdfast.reference_impl.hx_sync.ledger import Ledger
from holdfast.reference_impl.hx_sync.merging import Merging
from holdfast.reference_impl.hx_sync.nodes import Node
from holdfast.reference_impl.hx_sync.objects import Found
from holdfast.reference_impl.hx_sync.records import Batch, EventKey, Window
from holdfast.reference_impl.hx_sync.terms import Kind
from holdfast.reference_impl.hx_sync.views import Views
from holdfast.reference_impl.planting import Change, part

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
        self.check_unreplaced(connection, found)
        self._ledger.record_tombstone(connection, found.place.object_id, window, found.object_hash)
        connection.execute("COMMIT")
        # Some work in between, so that more of the kills happen there.
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
    def forget_blobs(self, connection: sqlite3.Connection, keys: Sequence[EventKey]) -> None:
        pass


class LeftAreShown(Views):
    def event_of(self, table: Literal["artifacts", "pins"]) -> str:
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


BUGS: Mapping[str, Change] = {
    "windows-asked-before-the-transaction": part(importing=AskedBefore),
}
