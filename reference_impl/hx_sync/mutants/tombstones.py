"""Bugs of hx-sync: what a tombstone says and covers (HX-TMB-1 to 3, HX-TMB-6, HX-TMB-9)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from holdfast.reference_impl.hx_sync import canonical
from holdfast.reference_impl.hx_sync.forgetting import Forgetting
from holdfast.reference_impl.hx_sync.forgotten import Windows
from holdfast.reference_impl.hx_sync.header import Header, Headers
from holdfast.reference_impl.hx_sync.importing import Importing
from holdfast.reference_impl.hx_sync.instants import Instants
from holdfast.reference_impl.hx_sync.merging import Merging
from holdfast.reference_impl.hx_sync.objects import Found
from holdfast.reference_impl.hx_sync.records import Records, Window
from holdfast.reference_impl.hx_sync.views import Views
from holdfast.reference_impl.planting import Change, part

_SECOND = 1_000_000
_MINUTE = 60 * _SECOND
# As many as there are offsets in minutes, and the greatest number that the database takes.
_OFFSETS, _HALF = 4096, 2048
_GREATEST = 2**63 - 1
_TRUE = Instants()
_WHEN = "made when: "

# What it says


class HeaderDefaulted(Headers):
    def parse(self, data: bytes) -> dict[str, Any]:
        members = super().parse(data)
        if members.get("object_type") != "tombstone":
            return members
        return {"node_id": "00000000-0000-4000-8000-000000000000", "created_at": "1970-01-01T00:00:00Z", **members}


class CryptoOptional(Headers):
    def parse(self, data: bytes) -> dict[str, Any]:
        members = super().parse(data)
        default = {"crypto": {"alg": "xchacha20-poly1305"}} if members.get("object_type") == "tombstone" else {}
        return {**default, **members}


class StartDefaulted(Records):
    def window(self, payload: bytes) -> Window:
        return super().window(canonical.write({"start_ts": "0001-01-01T00:00:00Z", **self.parse(payload)}))


class EndDefaulted(Records):
    def window(self, payload: bytes) -> Window:
        return super().window(canonical.write({"end_ts": "9999-12-31T23:59:59Z", **self.parse(payload)}))


class Swapped(Records):
    def ordered(self, window: Window) -> Window:
        return super().ordered(replace(window, start=min(window.start, window.end), end=max(window.start, window.end)))


# What it covers


class EndsLeftOut(Windows):
    def bounds(self, window: Window) -> tuple[int, int]:
        first, last = super().bounds(window)
        return first + 1, last - 1


class FractionsCutOff(Windows):
    def bounds(self, window: Window) -> tuple[int, int]:
        first, last = super().bounds(window)
        return first // _SECOND * _SECOND, last // _SECOND * _SECOND + _SECOND - 1


class ComparedAsText(Instants):
    """Numbers that sort like the texts up to their offsets: by local time, not by the instant."""

    def read(self, text: object) -> int:
        at = _TRUE.read(text)
        offset = datetime.fromisoformat(str(text)).utcoffset() or timedelta()
        minutes = offset // timedelta(minutes=1)
        shown = (at + minutes * _MINUTE) * _OFFSETS + minutes + _HALF
        return max(-_GREATEST, min(_GREATEST, shown))

    def of(self, instant: datetime) -> int:
        return super().of(instant) * _OFFSETS + _HALF

    def write(self, at: int) -> str:
        shown, minutes = divmod(at, _OFFSETS)
        return super().write(shown - (minutes - _HALF) * _MINUTE)


class MakingKept(Importing):
    def apply_tombstone(self, connection: sqlite3.Connection, found: Found, window: Any) -> tuple[bool, bool]:
        done = super().apply_tombstone(connection, found, window)
        self._ledger.count(connection, _WHEN + found.place.object_id, _made(found.header))
        return done


class LaterSpared(Merging):
    def remembered(self, connection: sqlite3.Connection, header: Header) -> Sequence[tuple[int, int]]:
        older = f"EXISTS (SELECT 1 FROM counters WHERE name = '{_WHEN}' || tombstone_id AND value < ?)"
        made = (_made(header),)
        # "They were made before, so they cannot mean it."
        spared = connection.execute(f"SELECT * FROM applied_tombstones WHERE {older}", made).fetchall()
        connection.execute(f"DELETE FROM applied_tombstones WHERE {older}", made)
        try:
            return super().remembered(connection, header)
        finally:
            connection.executemany("INSERT INTO applied_tombstones VALUES (?, ?, ?, ?, ?)", spared)


def _made(header: Header) -> int:
    return int(datetime.fromisoformat(header.members["created_at"]).timestamp() * _SECOND)


class ForgottenUntold(Views):
    def counters(self, connection: sqlite3.Connection) -> Mapping[str, int]:
        return {**super().counters(connection), "forgotten_events": 0}


class Unclamped(Forgetting):
    def clamped(self, window: Window, now: int) -> Window:
        return window


class ScopeIsIssuer(Merging):
    def scope(self, window: Window, issuer: str | None) -> Window:
        return window if window.node_id is None else replace(window, node_id=issuer)


class ScopeIgnored(Merging):
    def scope(self, window: Window, issuer: str | None) -> Window:
        return replace(window, node_id=None)


BUGS: Mapping[str, Change] = {
    "scope-is-issuer": part(merging=ScopeIsIssuer),
    "scope-ignored": part(merging=ScopeIgnored),
}
