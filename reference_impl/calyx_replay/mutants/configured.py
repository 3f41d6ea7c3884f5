"""Bugs of calyx-replay that show only with other settings, beside other tools, or in records of older versions."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.reference_impl.calyx_replay.command_line import CommandLine
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


class BusyIsDone(CommandLine):
    """Another one is at it: that is as good as done."""

    def run(self, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        done = super().run(arguments, now=now)
        if "locked" in done["output"]:
            return {"status": 0, "output": "removed 0, kept 0, unreadable 0; another process is at it\n"}
        return done


BUGS: Mapping[str, Change] = {
    "automatic-prune-by-local-days": part(pruning=AutomaticByLocalDays),
    "command-line-busy-is-done": part(command_line=BusyIsDone),
}
