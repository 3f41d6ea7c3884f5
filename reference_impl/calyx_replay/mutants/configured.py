"""Bugs of calyx-replay that show only with other settings, beside other tools, or in records of older versions."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from holdfast.reference_impl.calyx_replay.pruning import Pruning
from holdfast.reference_impl.calyx_replay.store import MailboxState
from holdfast.reference_impl.planting import Change, part

# Settings


class AutomaticByLocalDays(Pruning):
    def prune_automatically(
        self, connection: sqlite3.Connection, state: MailboxState, retention: timedelta, *, now: datetime
    ) -> None:
        # Days of the local clock: one of them has 23 hours.
        earlier = now.astimezone() - retention
        same = datetime.fromtimestamp(earlier.replace(tzinfo=None).timestamp(), UTC)
        super().prune_automatically(connection, state, now - same, now=now)


# Records of older versions


# Other tools


BUGS: Mapping[str, Change] = {
    "automatic-prune-by-local-days": part(pruning=AutomaticByLocalDays),
}
