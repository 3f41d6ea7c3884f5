"""Bugs of calyx-replay: which records a prune removes, and when (CALYX-PRN-*)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from holdfast.reference_impl.calyx_replay.pruning import Pruning
from holdfast.reference_impl.calyx_replay.store import MailboxState, Store
from holdfast.reference_impl.calyx_replay.timing import written
from holdfast.reference_impl.planting import Change, part

# What goes


class OneRow(Store):
    def delete_before(self, connection: sqlite3.Connection, cutoff: int) -> int:
        return connection.execute(
            "DELETE FROM replay_state WHERE rowid IN "
            "(SELECT rowid FROM replay_state WHERE instant(seen_at) < ? ORDER BY seen_at LIMIT 1)",
            (cutoff,),
        ).rowcount


# In one transaction


# How long it is kept


# By itself


# On the command line


class EachForItself(Pruning):
    """A process reads once when the mailbox was pruned, and remembers its own prunes from then on."""

    def due(self, state: MailboxState, *, now: datetime) -> bool:
        own: str | None = self.__dict__.setdefault("_own", state.last_automatic)
        return super().due(replace(state, last_automatic=own), now=now)

    def prune_automatically(
        self, connection: sqlite3.Connection, state: MailboxState, retention: timedelta, *, now: datetime
    ) -> None:
        self.__dict__["_own"] = written(now)
        super().prune_automatically(connection, state, retention, now=now)


BUGS: Mapping[str, Change] = {
    "prune-by-each-process": part(pruning=EachForItself),
    "prune-one-row": part(store=OneRow),
}
