"""Bugs of hx-sync: what the index makes of a set of objects (HX-P1 to P5, HX-SEG-10, HX-SEG-11, HX-T4)."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer
from holdfast.reference_impl.hx_sync.forgotten import Forgotten
from holdfast.reference_impl.hx_sync.header import Header
from holdfast.reference_impl.hx_sync.importing import Importing, Round
from holdfast.reference_impl.hx_sync.layout import Place
from holdfast.reference_impl.hx_sync.merging import Merging
from holdfast.reference_impl.hx_sync.nodes import Node
from holdfast.reference_impl.hx_sync.objects import Found
from holdfast.reference_impl.hx_sync.publishing import Publishing
from holdfast.reference_impl.hx_sync.records import Batch, EventRow
from holdfast.reference_impl.hx_sync.schema import Schema
from holdfast.reference_impl.hx_sync.terms import Kind
from holdfast.reference_impl.hx_sync.views import Rows, Views, Winner
from holdfast.reference_impl.planting import Change, part

# The index is derived


class PinsOnlyInIndex(Publishing):
    def segment(self, node: Node, segment_id: str, batch: Mapping[str, Any], master: bytes, *, now: datetime) -> Answer:
        published = {name: records for name, records in batch.items() if name != "pins"}
        answer = super().segment(node, segment_id, published, master, now=now)
        pins = [(pin["node_id"], pin["session_id"], pin["seq"]) for pin in batch.get("pins", []) if pin["pinned"]]
        if pins and isinstance(answer, Accepted):
            with node.index.writing() as connection:
                connection.executemany(
                    "INSERT INTO pins (node_id, session_id, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", pins
                )
        return answer


class IndexCopied(Importing):
    def round(self, node: Node, master: bytes, done: Round) -> None:
        super().round(node, master, done)
        # "A backup that every device can reach."
        vault = node.index.folder.parents[1] / self._layout.vault
        shutil.copyfile(node.index.database, vault / f"index-{node.name}.db")


# Nothing happens twice


class NeverSkipped(Importing):
    def known(self, connection: sqlite3.Connection, node: Node, found: Found) -> bool:
        return found.place.kind is not Kind.SEGMENT and super().known(connection, node, found)

    def apply_segment(self, connection: sqlite3.Connection, found: Found, batch: Batch) -> tuple[bool, bool]:
        if self._ledger.recorded(connection, found.place) == found.object_hash:
            return True, self._merging.segment(connection, found.header, batch)
        return super().apply_segment(connection, found, batch)


class LookupsCounted(Importing):
    def take(self, node: Node, place: Place, master: bytes) -> bool:
        fresh = super().take(node, place, master)
        if place.kind is Kind.SEGMENT and not fresh:
            batch = self._objects.batch(self._objects.fetch(place.key, master))
            with node.index.writing() as connection:
                self._ledger.count(connection, "forgotten_events", _forgotten(connection, batch.events))
        return fresh


# Order does not matter


class FirstWins(Merging):
    def event_statement(self) -> str:
        same = "EXISTS (SELECT 1 FROM events WHERE node_id = ?1 AND session_id = ?2 AND seq = ?3)"
        return super().event_statement().replace(" ON CONFLICT", f" AND NOT {same} ON CONFLICT")


class LastWins(Merging):
    def insert_events(self, connection: sqlite3.Connection, rows: Sequence[EventRow]) -> None:
        connection.executemany(
            "DELETE FROM events WHERE node_id = ? AND session_id = ? AND seq = ?", [row[:3] for row in rows]
        )
        super().insert_events(connection, rows)


class NothingAsked(Merging):
    def remembered(self, connection: sqlite3.Connection, header: Header) -> Sequence[tuple[int, int]]:
        return []


class NobodyForgotten(Forgotten):
    def is_forgotten(self) -> str:
        return "(?1 IS NULL)"


# Every event of every segment


class SegmentReplacesNode(Merging):
    def segment(self, connection: sqlite3.Connection, header: Header, batch: Batch) -> bool:
        connection.execute("DELETE FROM events WHERE node_id = ?", (header.node_id,))
        return super().segment(connection, header, batch)


class StopsAtTombstone(Merging):
    def insert_events(self, connection: sqlite3.Connection, rows: Sequence[EventRow]) -> None:
        if not _forgotten(connection, rows):
            super().insert_events(connection, rows)


# What makes two events one


class KeyWithoutNode(Winner):
    def event_key(self) -> str:
        return "session_id, seq"


class KeyWithoutSession(Winner):
    def event_key(self) -> str:
        return "node_id, seq"


class KeyIsContent(Winner):
    def event_key(self) -> str:
        return "digest"


class ConflictsUntold(Views):
    def conflicts(self, connection: sqlite3.Connection) -> Rows:
        return []


class EventsNumbered(Schema):
    def events(self) -> tuple[str, ...]:
        table, *others = super().events()
        return (
            table.replace("  node_id", "  number INTEGER PRIMARY KEY AUTOINCREMENT,\n  node_id", 1)
            .replace(",\n  PRIMARY KEY (node_id, session_id, seq, digest)", "")
            .replace(" WITHOUT ROWID", ""),
            *others,
        )


class InsertedAgain(Merging):
    def event_statement(self) -> str:
        return super().event_statement().partition(" ON CONFLICT")[0]


class RowsShown(Winner):
    def event_key(self) -> str:
        # Of equal rows each is shown; of other contents the one that wins.
        return (
            "node_id, session_id, seq, CASE WHEN digest = (SELECT min(digest) FROM events AS other "
            "WHERE (other.node_id, other.session_id, other.seq) = (events.node_id, events.session_id, events.seq)) "
            "THEN number ELSE 0 END"
        )


def _forgotten(connection: sqlite3.Connection, rows: Sequence[EventRow]) -> int:
    """How many of these events are forgotten."""
    found = [
        connection.execute(
            "SELECT count(*) FROM forgotten_events WHERE node_id = ? AND session_id = ? AND seq = ?", row[:3]
        ).fetchone()[0]
        for row in rows
    ]
    return sum(found)


BUGS: Mapping[str, Change] = {
    "event-key-without-node": part(winner=KeyWithoutNode),
    "event-key-without-session": part(winner=KeyWithoutSession),
    "event-key-is-content": part(winner=KeyIsContent),
    "event-rows-not-unique": part(schema=EventsNumbered, merging=InsertedAgain, winner=RowsShown),
}
