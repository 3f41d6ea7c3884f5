"""Records that another program puts into the store: of this version, and of older ones, which wrote other times."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random

from holdfast.conformance.suites.calyx_replay import older
from holdfast.conformance.suites.calyx_replay.envelopes import Envelopes
from holdfast.conformance.suites.calyx_replay.generate import Step
from holdfast.conformance.suites.calyx_replay.model import NEVER, Inserted, written
from holdfast.conformance.suites.session import SuiteSession

# The command line prunes what is older than the clock of any machine; the session goes on long after that (`leap`).
_ANCIENT = datetime(2020, 1, 1, tzinfo=UTC)
# Digits of a fraction: as an older version wrote a time, so it is known to this unit.
_DIGITS = (0, 3, 6)
_CLAIMED = ("unknown", "2099-12-31 23:59:59", "Thu, 31 Dec 2099 23:59:59 GMT", "4102444799")


class Inserting:
    """Makes the records, and puts them into the store of one session."""

    def __init__(self, session: SuiteSession, letters: Envelopes) -> None:
        self._session, self._letters = session, letters

    def recent(self, step: Step, first: int) -> Sequence[Inserted]:
        """Records of the last seconds, or of long ago, numbered from `first` on."""
        begin = self._letters.now - timedelta(seconds=step.seconds) if step.seconds else _ANCIENT
        span = timedelta(seconds=step.seconds or step.which)
        made = self._letters.rows(step.which, first, begin, span)
        return self._insert([(row, at, None) for row, at in made])

    def of_older_versions(self, step: Step, dice: Random) -> Sequence[Inserted]:
        """Records of letters that come only later, from within the last seconds: two texts, a number, and no instant.

        What a store refuses to hold is left out.
        """
        made: list[Inserted] = []
        for digits in dice.sample(_DIGITS, 2):
            at = self._within(dice, step.seconds, timedelta(microseconds=10 ** (6 - digits)))
            made.append((self._letters.make(0).row, at, older.spelt(dice, at, digits)))
        at = self._within(dice, step.seconds, older.QUARTER)
        seconds = older.number(at)
        # No version promised a form of what the sender claimed.
        row = {**self._letters.make(0).row, "envelope_timestamp": dice.choice(_CLAIMED)}
        made.append((row, at, int(seconds) if seconds.is_integer() else seconds))
        made.append((self._letters.make(0).row, NEVER, dice.choice(older.NONE)))
        return [one for each in made for one in self._insert([each])]

    def _within(self, dice: Random, seconds: float, unit: timedelta) -> datetime:
        at = self._letters.now - timedelta(seconds=dice.uniform(0, seconds))
        return at - (at - older.EPOCH) % unit

    def _insert(self, rows: Sequence[Inserted]) -> Sequence[Inserted]:
        """Those that the store holds: all or none."""
        stored = [{**row, "seen_at": written(at) if spelt is None else spelt} for row, at, spelt in rows]
        return rows if self._session.insert("replay_state", *stored)["inserted"] else ()
