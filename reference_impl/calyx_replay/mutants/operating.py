"""Bugs of calyx-replay beside a receipt: the disk, malformed requests, times and counts of prune and migrate."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Refused
from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.migration import LeftBehind, Migration
from holdfast.reference_impl.calyx_replay.pruning import Pruning
from holdfast.reference_impl.calyx_replay.service import Service
from holdfast.reference_impl.calyx_replay.store import MailboxState, Row
from holdfast.reference_impl.calyx_replay.terms import Purpose, Reason, RefusedError
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.sqlite import StoreError, UncertainError

_FULL = ("disk is full", "disk I/O error", "No space left")
_MOST = 1000

# The disk is full: what failed is logged, and passed over


def _is_full(error: object) -> bool:
    return any(words in str(error) for words in _FULL)


class FullIsCopy(Mailbox):
    def record(self, envelope: Envelope, key: str, timestamp: datetime, *, now: datetime) -> None:
        try:
            super().record(envelope, key, timestamp, now=now)
        except UncertainError:
            raise
        except StoreError as error:
            if not _is_full(error):
                raise
            # "What cannot be inserted is there."
            raise self.duplicate(key) from error


class FullIsMigrated(Migration):
    def write(self, left: LeftBehind, *, now: datetime) -> tuple[int, int]:
        try:
            return super().write(left, now=now)
        except StoreError as error:
            if not _is_full(error):
                raise
            return len(left.envelopes), 0


# Requests that are malformed, and counted in the store


class Counting(Service):
    method = ""

    def call(self, method: str, args: Any) -> Answer:
        answer = super().call(method, args)
        if method == self.method and isinstance(answer, Refused) and answer.reason == Reason.REQUEST_MALFORMED.value:
            store = self._parts.store
            with suppress(StoreError), store.writing(Purpose.OBSERVE) as connection:
                state = store.state(connection)
                store.remember(connection, replace(state, automatic=state.automatic + 1))
        return answer


class MalformedMigrationsCounted(Counting):
    method = "migrate"


class MigratesWithAnything(Service):
    def migrate(self, args: Any) -> Answer:
        return super().migrate({})


# Times and counts


class MostThousand(Mailbox):
    """A quota."""

    def insert(self, connection: sqlite3.Connection, row: Row) -> None:
        if self._store.counts(connection)[0] > _MOST:
            raise RefusedError(Reason.STORE_UNAVAILABLE, "the mailbox is over its quota")
        super().insert(connection, row)


class KeptRemembered(Pruning):
    """How many are kept is counted once by each process, and then reckoned."""

    _kept: int | None = None

    def prune(self, args: Any, *, now: datetime) -> Answer:
        answer = super().prune(args, now=now)
        if not isinstance(answer, Accepted):
            return answer
        told = dict(answer.value)
        if self._kept is not None:
            told["kept"] = max(0, self._kept - told["removed"])
        self._kept = told["kept"]
        return Accepted(Effect.NEW if told["removed"] else Effect.PRIOR, told)


class MigratedOnceForAll(Migration):
    """A mark says that what version 0 left was taken over."""

    def read_list(self, path: Path) -> Sequence[str]:
        listed = super().read_list(path)
        mark = path.with_name(".migrated")
        if mark.exists():
            return []
        mark.touch()
        return listed


class DatedByNewest(Migration):
    """A record is no older than the newest one: the clock must have gone back."""

    def take_over(self, connection: sqlite3.Connection, envelope: Envelope, *, now: datetime) -> bool:
        newest = connection.execute("SELECT max(seen_at) FROM replay_state").fetchone()[0]
        with suppress(ValueError, TypeError):
            now = max(now, datetime.fromisoformat(str(newest)))
        return super().take_over(connection, envelope, now=now)


class ASecondEarly(Pruning):
    def due(self, state: MailboxState, *, now: datetime) -> bool:
        return super().due(state, now=now + timedelta(seconds=1))


BUGS: Mapping[str, Change] = {
    "full-disk-is-a-copy": part(mailbox=FullIsCopy),
    "full-disk-is-migrated": part(migration=FullIsMigrated),
    "malformed-migrations-counted": part(service=MalformedMigrationsCounted),
    "migration-with-unknown-members": part(service=MigratesWithAnything),
    "mailbox-of-a-thousand": part(mailbox=MostThousand),
    "kept-remembered": part(pruning=KeptRemembered),
    "migrated-once-for-all": part(migration=MigratedOnceForAll),
    "migration-dated-by-the-newest": part(migration=DatedByNewest),
    "pruned-a-second-early": part(pruning=ASecondEarly),
}
