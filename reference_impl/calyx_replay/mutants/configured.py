"""Bugs of calyx-replay that show only with other settings, beside other tools, or in records of older versions."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.reference_impl.calyx_replay.codec import Codec, Envelope
from holdfast.reference_impl.calyx_replay.command_line import CommandLine
from holdfast.reference_impl.calyx_replay.location import Location
from holdfast.reference_impl.calyx_replay.migration import Migration
from holdfast.reference_impl.calyx_replay.pruning import Pruned, Pruning
from holdfast.reference_impl.calyx_replay.schema import Schema
from holdfast.reference_impl.calyx_replay.settings import load_settings
from holdfast.reference_impl.calyx_replay.store import MailboxState, Store
from holdfast.reference_impl.calyx_replay.terms import Purpose
from holdfast.reference_impl.calyx_replay.timing import SeenAt
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.sqlite import StoreError

# Settings


def without(name: str, *commands: str) -> type[CommandLine]:
    """A command line that does not hand one setting on."""

    class Without(CommandLine):
        def words(self, arguments: Sequence[str], *, now: datetime) -> list[str]:
            rest = {key: value for key, value in self._config.items() if key != name}
            line = CommandLine(self._root, rest if arguments[0] in commands else self._config, self._mutant)
            return line.words(arguments, now=now)

    return Without


class OnlyAskedIsChecked(Pruning):
    """A retention that is configured was checked by whoever configured it."""

    def retention(self, args: Any) -> timedelta:
        return super().retention(args) if args else self._settings.retention

    def automatic(self, *, now: datetime) -> None:
        least = self._settings.least_retention
        self._settings = replace(self._settings, least_retention=timedelta())
        super().automatic(now=now)
        self._settings = replace(self._settings, least_retention=least)


class UsualLength(Migration):
    """An envelope of version 0 may be as long as is usual, whatever the mailbox is configured with."""

    def check(self, msg_id: str, raw: bytes, *, now: datetime) -> Envelope:
        codec, usual = self._mailbox._codec, load_settings({}).max_envelope_bytes
        self._mailbox._codec = Codec(replace(self._settings, max_envelope_bytes=usual))
        try:
            return super().check(msg_id, raw, now=now)
        finally:
            self._mailbox._codec = codec

    def find(self, msg_id: str) -> bytes | None:
        settings = self._settings
        self._settings = replace(settings, max_envelope_bytes=load_settings({}).max_envelope_bytes)
        try:
            return super().find(msg_id)
        finally:
            self._settings = settings


class UsualInterval(Pruning):
    def due(self, state: MailboxState, *, now: datetime) -> bool:
        last, usual = state.last_automatic, load_settings({}).prune_interval
        return last is None or abs(now - datetime.fromisoformat(last)) >= usual


class UsualLeast(Pruning):
    """What is too short a retention is known from the contract, whatever is configured."""

    def long_enough(self, retention: timedelta) -> timedelta:
        settings = self._settings
        self._settings = replace(settings, least_retention=load_settings({}).least_retention)
        try:
            return super().long_enough(retention)
        finally:
            self._settings = settings


class GoesAtTheRetention(Pruning):
    """The mailbox by itself removes what is as old as the retention, too."""

    def prune_automatically(
        self, connection: sqlite3.Connection, state: MailboxState, retention: timedelta, *, now: datetime
    ) -> None:
        super().prune_automatically(connection, state, retention - timedelta(microseconds=1), now=now)


class AutomaticByLocalDays(Pruning):
    def prune_automatically(
        self, connection: sqlite3.Connection, state: MailboxState, retention: timedelta, *, now: datetime
    ) -> None:
        # Days of the local clock: one of them has 23 hours.
        earlier = now.astimezone() - retention
        same = datetime.fromtimestamp(earlier.replace(tzinfo=None).timestamp(), UTC)
        super().prune_automatically(connection, state, now - same, now=now)


class ThroughLocalTime(SeenAt):
    """A time is written by way of the local clock, which passes an hour twice."""

    def write(self, instant: datetime) -> str:
        return super().write(instant.astimezone().replace(tzinfo=None, fold=0).astimezone(UTC))


class EmptyIsGone(Migration):
    def find(self, msg_id: str) -> bytes | None:
        return super().find(msg_id) or None


# Records of older versions


class ReadsWhatIsClaimed(Pruning):
    """A prune looks for records from ahead, and reads all times that senders have claimed."""

    def remove(self, connection: sqlite3.Connection, cutoff: datetime) -> Pruned:
        for (claimed,) in connection.execute("SELECT envelope_timestamp FROM replay_state"):
            try:
                datetime.fromisoformat(claimed)
            except ValueError as error:
                raise StoreError(f"no time: {claimed!r}") from error
        return super().remove(connection, cutoff)


class InspectsInOneFormat(CommandLine):
    """An inspection shows times of one form, and writes them, without the offsets that they had."""

    def run(self, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        path = Location(self._root, load_settings(self._config)).database
        if arguments[0] == "inspect":
            with contextlib.closing(sqlite3.connect(path)) as connection, connection:
                connection.execute(
                    "UPDATE replay_state SET seen_at = substr(replace(seen_at, ' ', 'T'), 1, 19) || '.000000Z' "
                    "WHERE typeof(seen_at) = 'text' AND seen_at NOT LIKE '____-__-__T__:__:__.______Z'"
                )
        return super().run(arguments, now=now)


# Other tools


class BusyIsDone(CommandLine):
    """Another one is at it: that is as good as done."""

    def run(self, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        done = super().run(arguments, now=now)
        if "locked" in done["output"]:
            return {"status": 0, "output": "removed 0, kept 0, unreadable 0; another process is at it\n"}
        return done


class ModeCheckedOnce(Store):
    """A connection is opened for each transaction. The first one of a process is asked for its mode."""

    _is_asked = False

    def connection(self, purpose: Purpose) -> sqlite3.Connection:
        self.drop(purpose)
        return super().connection(purpose)

    def verify_pragmas(self, found: Mapping[str, int | str]) -> None:
        super().verify_pragmas({**found, "journal_mode": "wal"} if self._is_asked else found)
        self._is_asked = True

    def _settle(self, purpose: Purpose) -> None:
        self.drop(purpose)

    def roll_back(self, connection: sqlite3.Connection) -> None:
        super().roll_back(connection)
        for purpose, held in tuple(self._held.items()):
            if held.connection is connection:
                self.drop(purpose)


class CheckedOnInsert(Schema):
    """The form of a key is held by a trigger."""

    def key_check(self) -> str:
        return "TRUE"

    def indexes(self) -> tuple[str, ...]:
        check = Schema().key_check().replace("replay_key", "NEW.replay_key")
        trigger = (
            f"CREATE TRIGGER key_form BEFORE INSERT ON replay_state WHEN NOT ({check}) "
            "BEGIN SELECT RAISE(ABORT, 'no key'); END"
        )
        return (*super().indexes(), trigger)


BUGS: Mapping[str, Change] = {
    "command-line-usual-window": part(command_line=without("window_seconds", "migrate")),
    "command-line-usual-places": part(command_line=without("seen_cache_path", "migrate")),
    "configured-retention-unchecked": part(pruning=OnlyAskedIsChecked),
    "usual-length-migrated": part(migration=UsualLength),
    "automatic-prune-at-the-retention": part(pruning=GoesAtTheRetention),
    "automatic-prune-by-local-days": part(pruning=AutomaticByLocalDays),
    "seen-at-through-local-time": part(seen_at=ThroughLocalTime),
    "empty-envelope-is-gone": part(migration=EmptyIsGone),
    "prune-reads-what-is-claimed": part(pruning=ReadsWhatIsClaimed),
    "usual-interval": part(pruning=UsualInterval),
    "usual-least-retention": part(pruning=UsualLeast),
    "inspection-in-one-format": part(command_line=InspectsInOneFormat),
    "command-line-busy-is-done": part(command_line=BusyIsDone),
    "journal-mode-checked-once": part(store=ModeCheckedOnce),
    "key-form-checked-on-insert": part(schema=CheckedOnInsert),
}
