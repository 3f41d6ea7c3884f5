"""Bugs of hx-sync: what an event has to be (HX-SEG-12, HX-SEG-13), and pins (HX-PIN-*)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.reference_impl.hx_sync.forgotten import Forgotten
from holdfast.reference_impl.hx_sync.header import Header, MalformedError
from holdfast.reference_impl.hx_sync.merging import Merging
from holdfast.reference_impl.hx_sync.records import EventKey, Records
from holdfast.reference_impl.hx_sync.views import Rows, Views
from holdfast.reference_impl.planting import Change, part

# Events


class AnyNode(Records):
    def check_event_node(self, node_id: Any, header: Header) -> None:
        pass


class BadEventsSkipped(Records):
    def admitted(self, events: Iterable[Any], header: Header) -> Iterable[Any]:
        return [record for record in super().admitted(events, header) if self._sound(record, header)]

    def _sound(self, record: Any, header: Header) -> bool:
        if isinstance(record, dict) and record.get("node_id", header.node_id) != header.node_id:
            # That case has its own refusal below.
            return True
        try:
            self.event(record, header)
        except MalformedError:
            return False
        return True


class AnySeq(Records):
    def seq(self, value: Any) -> int:
        return value if type(value) is int and value < 0 else super().seq(value)


class AnyTime(Records):
    def event_time(self, text: Any) -> int:
        try:
            return super().event_time(text)
        except MalformedError:
            return 0


# Pins


class UnpinKept(Records):
    def pin(self, record: Any) -> EventKey | None:
        pinned = super().pin(record)
        if pinned is not None:
            return pinned
        node_id, session_id, seq = super().pin({**record, "pinned": True}) or ("", "", 0)
        # No event has such a number: an unpin.
        return node_id, session_id, -1 - seq


class LastPinWins(Merging):
    def insert_pins(self, connection: sqlite3.Connection, rows: Sequence[EventKey]) -> None:
        for node_id, session_id, seq in rows:
            if seq >= 0:
                super().insert_pins(connection, [(node_id, session_id, seq)])
                continue
            connection.execute(
                "DELETE FROM pins WHERE node_id = ? AND session_id = ? AND seq = ?", (node_id, session_id, -1 - seq)
            )


class UnpinIsPin(Records):
    def pins(self, pinned: bool) -> bool:  # noqa: FBT001 - the value of a member
        return True


class UnpinRefused(Records):
    def pins(self, pinned: bool) -> bool:  # noqa: FBT001 - the value of a member
        if not pinned:
            raise MalformedError("pin.pinned: expected true")
        return True


class PinnedSurvives(Forgotten):
    def events(self, connection: sqlite3.Connection, keys: Sequence[EventKey]) -> int:
        pinned = set(connection.execute("SELECT node_id, session_id, seq FROM pins").fetchall())
        return super().events(connection, [key for key in keys if tuple(key) not in pinned])


class PinsLeftAreShown(Views):
    def pins(self, connection: sqlite3.Connection) -> Rows:
        forgotten = connection.execute("SELECT node_id, session_id, seq FROM pins NATURAL JOIN forgotten_events")
        return [
            *super().pins(connection),
            *({"node_id": node_id, "session_id": session_id, "seq": seq} for node_id, session_id, seq in forgotten),
        ]


BUGS: Mapping[str, Change] = {
    "bad-events-skipped": part(records=BadEventsSkipped),
    "last-pin-wins": part(records=UnpinKept, merging=LastPinWins),
    "unpin-is-pin": part(records=UnpinIsPin),
    "unpin-refused": part(records=UnpinRefused),
}
