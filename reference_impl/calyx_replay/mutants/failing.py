"""Bugs of calyx-replay that a failure begins: after a forgery, and after a connection was opened again."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.mutants.durability import AnyLevel
from holdfast.reference_impl.calyx_replay.store import Store
from holdfast.reference_impl.calyx_replay.terms import Purpose, Reason, RefusedError
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.sqlite import StoreError

_MOST_FORGERIES = 16


# After a full disk


class SeenThoughItFailed(Mailbox):
    def record(self, envelope: Envelope, key: str, timestamp: datetime, *, now: datetime) -> None:
        seen = self.__dict__.setdefault("_seen", set())
        if key in seen:
            raise self.duplicate(key)
        try:
            super().record(envelope, key, timestamp, now=now)
        except StoreError as error:
            # It was in memory before the disk was full.
            if "full" in str(error):
                seen.add(key)
            raise


# After a forgery


class ForgeriesKept(Mailbox):
    def guard_signature(self, envelope: Envelope) -> None:
        try:
            super().guard_signature(envelope)
        except RefusedError:
            # "An operator may want to inspect it."
            path = self._store.location.database.with_name("quarantine")
            with path.open("ab") as kept:
                kept.write(envelope.raw)
            path.chmod(0o600)
            raise


class SenderBarred(Mailbox):
    _forgeries: Counter[str] | None = None

    def guard_signature(self, envelope: Envelope) -> None:
        forgeries = self._forgeries = Counter() if self._forgeries is None else self._forgeries
        if forgeries[envelope.sender_fp] > _MOST_FORGERIES:
            raise RefusedError(Reason.SIGNATURE_INVALID, "too many forgeries of this sender")
        try:
            super().guard_signature(envelope)
        except RefusedError:
            forgeries[envelope.sender_fp] += 1
            raise


# After a connection was opened again


class OpenedInHaste(AnyLevel):
    _failed = False

    def prepare(self, connection: sqlite3.Connection, purpose: Purpose) -> None:
        super().prepare(connection, purpose)
        if self._failed:
            connection.execute("PRAGMA synchronous = NORMAL")

    def roll_back(self, connection: sqlite3.Connection) -> None:
        self._failed = self._failed or connection.in_transaction
        super().roll_back(connection)


class OpenedBarely(Store):
    """The settings of a connection are made for the first of each purpose."""

    _prepared: frozenset[Purpose] = frozenset()

    def prepare(self, connection: sqlite3.Connection, purpose: Purpose) -> None:
        super().prepare(connection, purpose)
        if purpose in self._prepared:
            connection.execute("PRAGMA foreign_keys = OFF")
        self._prepared |= {purpose}

    def verify_pragmas(self, found: Mapping[str, int | str]) -> None:
        super().verify_pragmas({**found, "foreign_keys": 1})


BUGS: Mapping[str, Change] = {
    "seen-though-it-failed": part(mailbox=SeenThoughItFailed),
    "forgeries-kept": part(mailbox=ForgeriesKept),
    "sender-barred-after-forgeries": part(mailbox=SenderBarred),
    "opened-again-in-haste": part(store=OpenedInHaste),
    "opened-again-barely": part(store=OpenedBarely),
}
