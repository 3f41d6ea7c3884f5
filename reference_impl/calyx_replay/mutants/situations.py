"""Bugs of calyx-replay that show only where rare situations meet: who pruned, what came first, where the clock was."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from holdfast.reference_impl.answers import Answer
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.migration import LeftBehind, Migration
from holdfast.reference_impl.calyx_replay.pruning import Pruning
from holdfast.reference_impl.calyx_replay.store import MailboxState
from holdfast.reference_impl.calyx_replay.terms import Purpose, Reason, RefusedError
from holdfast.reference_impl.calyx_replay.timing import written
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.sqlite import StoreError

# Who pruned


class AutomaticForgets(Pruning):
    def prune_automatically(
        self, connection: sqlite3.Connection, state: MailboxState, retention: timedelta, *, now: datetime
    ) -> None:
        super().prune_automatically(connection, state, retention, now=now)
        # The row that is remembered is written anew, with the cutoff that was read before.
        kept = replace(self._store.state(connection), pruned_before=state.pruned_before)
        self._store.remember(connection, kept)


class CutoffWithoutWindow(Mailbox):
    def guard_provable(self, connection: sqlite3.Connection, timestamp: datetime) -> None:
        cutoff = self._store.state(connection).pruned_before
        if cutoff is not None and written(timestamp) < cutoff:
            raise RefusedError(Reason.REPLAY_UNPROVABLE, f"records first seen before {cutoff} are pruned")


class ByHandCounts(Pruning):
    def prune(self, args: Any, *, now: datetime) -> Answer:
        answer = super().prune(args, now=now)
        # "It has just been pruned."
        with contextlib.suppress(StoreError), self._store.writing(Purpose.PRUNE) as connection:
            self._store.remember(connection, replace(self._store.state(connection), last_automatic=written(now)))
        return answer


# A second migration


class BlocksCleared(Migration):
    def take_over_all(self, connection: sqlite3.Connection, left: LeftBehind, *, now: datetime) -> tuple[int, int]:
        connection.execute("DELETE FROM blocked_msg_id")
        return super().take_over_all(connection, left, now=now)


# The clock


BUGS: Mapping[str, Change] = {
    "automatic-prune-forgets-cutoff": part(pruning=AutomaticForgets),
    "cutoff-without-window": part(mailbox=CutoffWithoutWindow),
    "prune-by-hand-counts": part(pruning=ByHandCounts),
    "migration-clears-blocks": part(migration=BlocksCleared),
}
