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
from holdfast.reference_impl.hx_sync.importing import Importing
from holdfast.reference_impl.hx_sync.layout import Place
from holdfast.reference_impl.hx_sync.merging import Merging
from holdfast.reference_impl.hx_sync.mutants.planting import mutant
from holdfast.reference_impl.hx_sync.nodes import Node
from holdfast.reference_impl.hx_sync.objects import Found
from holdfast.reference_impl.hx_sync.publishing import Publishing
from holdfast.reference_impl.hx_sync.records import Batch, EventRow
from holdfast.reference_impl.hx_sync.schema import Schema
from holdfast.reference_impl.hx_sync.terms import Kind
from holdfast.reference_impl.hx_sync.views import Rows, Views, Winner
from holdfast.reference_impl.mutants.catalogue import Mutant
from holdfast.reference_impl.mutants.planting import EVERYTHING, also, part

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
    def settle(self, node: Node, master: bytes) -> None:
        super().settle(node, master)
        # "A backup that every device can reach."
        vault = node.index.folder.parents[1] / self._layout.vault
        shutil.copyfile(node.index.database, vault / f"index-{node.name}.db")


# Nothing happens twice


class NeverSkipped(Importing):
    def known(self, connection: sqlite3.Connection, node: Node, found: Found) -> bool:
        return found.place.kind is not Kind.SEGMENT and super().known(connection, node, found)

    def apply_segment(self, connection: sqlite3.Connection, found: Found, batch: Batch) -> tuple[bool, bool]:
        fresh, leaves = super().apply_segment(connection, found, batch)
        if not fresh:
            leaves = self._merging.segment(connection, found.header, batch)
        return True, leaves


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
            .replace(" STRICT, WITHOUT ROWID", " STRICT"),
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


_CONFLICT = "its segments hold two contents of one event"
_LATE = "its tombstone comes before what it covers"

MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "pins-only-in-index",
        "Publishing writes pins into the publisher's own index, and not into the segment",
        part(publishing=PinsOnlyInIndex),
        {"P1": "lost_durability"},
        also("it publishes a pin", "PIN-1 PIN-3 T1 P2"),
    ),
    mutant(
        "index-copied-into-store",
        "Each import puts a copy of the index into the store",
        part(importing=IndexCopied),
        {"P1": "wrong_reason"},
        also("their cases look what lies in the store", "LAY-1 LAY-2 LAY-3 P7"),
    ),
    mutant(
        "segments-never-skipped",
        "A segment that was imported is imported again, and counted again",
        part(importing=NeverSkipped),
        {"P3": "fail_open", "T4": "fail_open"},
        {EVERYTHING: "an import counts what it had imported before"},
    ),
    mutant(
        "forgotten-counted-again",
        "Forgotten events are counted whenever a segment holds them",
        part(importing=LookupsCounted),
        {"P3": "wrong_reason"},
    ),
    mutant(
        "first-comes-wins",
        "Of two contents of an event the one that was imported first is kept",
        part(merging=FirstWins),
        {"P4": "wrong_reason", "SEG-11": "wrong_reason", "T1": "wrong_reason"},
        also(_CONFLICT, "LOC-5 TMB-5 SEG-7 SEG-10"),
    ),
    mutant(
        "last-comes-wins",
        "Of two contents of an event the one that was imported last is kept",
        part(merging=LastWins),
        {"P4": "wrong_reason", "SEG-11": "wrong_reason", "T1": "wrong_reason"},
        also(_CONFLICT, "LOC-5 TMB-5 SEG-7 SEG-10"),
    ),
    mutant(
        "tombstone-only-at-its-time",
        "A tombstone deletes what is there when it is applied, and is never asked again",
        part(merging=NothingAsked, forgotten=NobodyForgotten),
        {"P4": "wrong_reason", "TMB-4": "wrong_reason", "TMB-5": "wrong_reason", "T2": "wrong_reason"},
        also(_LATE, "P1 P5 TMB-3 TMB-6 TMB-7 TMB-8 TMB-9 PIN-3 T1 T4 P3 LOC-5 IMP-5"),
    ),
    mutant(
        "segment-replaces-node",
        "A segment replaces all that its node published before",
        part(merging=SegmentReplacesNode),
        {"P5": "wrong_reason"},
        {EVERYTHING: "it imports two segments of one node"},
    ),
    mutant(
        "merge-stops-at-tombstone",
        "A segment with a forgotten event is recorded as imported, without any of its events",
        part(merging=StopsAtTombstone),
        {"P5": "wrong_reason"},
        also("a segment holds an event that is forgotten and others", "P1 P3 P4 TMB-3 TMB-6 LOC-5 TMB-8 T1 T2"),
    ),
    mutant(
        "event-key-without-node",
        "Events of two nodes with the same session and number are one",
        part(winner=KeyWithoutNode),
        {"SEG-10": "wrong_reason"},
        also("two nodes have events of one session and number", "P4 P5 IMP-2 SEG-11 TMB-9 T1 T2 CRY-6 T3 T5"),
    ),
    mutant(
        "event-key-without-session",
        "Events of two sessions with the same number are one",
        part(winner=KeyWithoutSession),
        {"SEG-10": "wrong_reason"},
        also("two sessions have events of one number", "P4 P5 CRY-1 CRY-2 CRY-3 CRY-4 CRY-5 CRY-6 T1 T3 T5"),
    ),
    mutant(
        "event-key-is-content",
        "Events are one if they have the same content",
        part(winner=KeyIsContent),
        {"SEG-10": "wrong_reason"},
        also(_CONFLICT, "P4 SEG-11 T1 LOC-5"),
    ),
    mutant(
        "conflicts-untold",
        "The status lists no conflicts",
        part(views=ConflictsUntold),
        {"SEG-11": "wrong_reason"},
        also(_CONFLICT, "LOC-5 P4 SEG-7"),
    ),
    mutant(
        "event-rows-not-unique",
        "An event that two segments hold has two rows, and both are shown",
        part(schema=EventsNumbered, merging=InsertedAgain, winner=RowsShown),
        {"T4": "wrong_reason"},
        also("one event is in two segments", "P4 P5 SEG-10 T1 LOC-5 SEG-7 SEG-11 T2 T3 T5 CRY-6 TMB-7"),
    ),
)
