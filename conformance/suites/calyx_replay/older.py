"""calyx-replay: the times that older versions left in `seen_at`, a last digit before a cutoff and behind it.

The seed decides the day, the cutoff to the microsecond, and which format each time has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from random import Random

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.suites.calyx_replay.envelopes import Envelopes
from holdfast.conformance.suites.calyx_replay.generate import Step
from holdfast.conformance.suites.calyx_replay.model import NEVER, Inserted, written

# Records that another program puts into the store: of this version, and of older ones, which wrote other times

# The command line prunes what is older than the clock of any machine; the session goes on long after that (`leap`).
_ANCIENT = datetime(2020, 1, 1, tzinfo=UTC)
# Digits of a fraction: as an older version wrote a time, so it is known to this unit.
_KNOWN_DIGITS = (0, 3, 6)
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
        for digits in dice.sample(_KNOWN_DIGITS, 2):
            at = self._within(dice, step.seconds, timedelta(microseconds=10 ** (6 - digits)))
            made.append((self._letters.make(0).row, at, spelt(dice, at, digits)))
        at = self._within(dice, step.seconds, QUARTER)
        seconds = number(at)
        # No version promised a form of what the sender claimed.
        row = {**self._letters.make(0).row, "envelope_timestamp": dice.choice(_CLAIMED)}
        made.append((row, at, int(seconds) if seconds.is_integer() else seconds))
        made.append((self._letters.make(0).row, NEVER, dice.choice(NONE)))
        return [one for each in made for one in self._insert([each])]

    def _within(self, dice: Random, seconds: float, unit: timedelta) -> datetime:
        at = self._letters.now - timedelta(seconds=dice.uniform(0, seconds))
        return at - (at - EPOCH) % unit

    def _insert(self, rows: Sequence[Inserted]) -> Sequence[Inserted]:
        """Those that the store holds: all or none."""
        stored = [{**row, "seen_at": written(at) if spelt is None else spelt} for row, at, spelt in rows]
        return rows if self._session.insert("replay_state", *stored)["inserted"] else ()


# Digits of a fraction, and how many times are tried with each. Nanoseconds are less than half a microsecond, so that it
# makes no difference whether they are read, cut or rounded.
_DIGITS, _EACH, _MICROSECONDS = range(10), 8, 6
_OFFSETS = (0, 60, -60, 330, 345, -210, 765, -720, 840, 30, -30, -1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Fractions of a second that a number holds exactly.
QUARTER = timedelta(seconds=0.25)

# No instants, though a calendar without its rules reads them. The first three are days in every fourth year.
NONE = (
    "1900-02-29T00:00:00Z",
    "2100-02-29T00:00:00Z",
    "2023-02-29 00:00:00",
    "2021-04-31T12:00:00Z",
    "2021-13-01T12:00:00Z",
    "2021-00-10T12:00:00Z",
    "2021-06-00T12:00:00Z",
    "2021-06-10T25:00:00Z",
    "2021-06-10T12:60:00Z",
    "2021-06-10T12:00:00Z and more",
)


# A command may go by the clock of a machine or by that of the session. A record from before the first of these is too
# old by both clocks, and a record from after the second is too old by neither.
_OLD, _YOUNG = datetime(2020, 1, 1, tzinfo=UTC), datetime(2110, 1, 1, tzinfo=UTC)

_Time = tuple[datetime | None, str | float]


@clause("CALYX-PRN-8", "CALYX-PRN-2")
def test_the_time_of_an_old_record_is_read_to_its_last_digit(bench: Bench) -> None:
    """Beside a cutoff times that are just too old and some that are not, in formats that are drawn."""
    dice = bench.dice()
    retention = timedelta(hours=float(bench.contract.parameters["retention_hours"].value or 0))
    with bench.session() as session:
        session.clock(f"+{dice.randrange(4000) * 86_400 + dice.randrange(86_400)}.{dice.randrange(1, 10**6):06d}s")
        cutoff = datetime.fromisoformat(session.now) - retention
        times = _stored(session, _times(dice, cutoff))
        answer = session.call("prune")
        left = _judged(bench, session, times, cutoff)
        counts = {"removed": len(times) - left, "kept": left, "unreadable": len(NONE)}
        told = answer.value or {}
        if {name: told.get(name) for name in counts} != counts:
            bench.report(
                "wrong_reason", "what a prune tells of old records", expected=str(counts), received=str(answer)
            )
    if "command_line" not in bench.not_claimed:
        _commanded(bench, dice)


def _commanded(bench: Bench, dice: Random) -> None:
    """A command removes the records that are too old by any clock, and no others."""
    times = [*_times(dice, _OLD), *_times(dice, _YOUNG)]
    with bench.session() as session:
        session.clock(f"{_YOUNG + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}")
        stored = _stored(session, (each for each in times if each[0] is None or not _OLD <= each[0] < _YOUNG))
        session.provoke("command_line", {"arguments": ["prune"]})
        _judged(bench, session, stored, _YOUNG)


def _stored(session: SuiteSession, times: Iterable[_Time]) -> Mapping[str, _Time]:
    """Records with these times, by their keys."""
    # The time of its envelope is over: until then a prune may keep what may have been migrated (CALYX-MIG-8).
    row = Envelopes(session).make(-600).row
    found = {session.hex64(f"old {number}"): each for number, each in enumerate(times)}
    session.insert("replay_state", *({**row, "replay_key": key, "seen_at": at} for key, (_, at) in found.items()))
    return found


def _judged(bench: Bench, session: SuiteSession, times: Mapping[str, _Time], cutoff: datetime) -> int:
    """How many records a prune has left. Raises NonConformance where one before the cutoff stays, or another goes."""
    left = {each["replay_key"] for each in session.inspect()["rows"]["replay_state"]}
    for key, (at, seen_at) in times.items():
        goes = at is not None and at < cutoff
        if (key in left) == goes:
            due, found = ("removed", "kept") if goes else ("kept", "removed")
            verdict = "lost_durability" if due == "kept" else "state_leak"
            message = f"a record of {seen_at!r} when everything before {cutoff.isoformat()} is to go"
            bench.fail(verdict, message, expected=due, received=found)
    return len(left)


def _times(dice: Random, cutoff: datetime) -> Iterator[_Time]:
    """Instants, each as it is stored: the last before the cutoff and the first from it on that its digits can say."""
    for digits in _DIGITS:
        unit = timedelta(microseconds=10 ** max(0, _MICROSECONDS - digits))
        for _ in range(_EACH):
            last = cutoff - ((cutoff - EPOCH) % unit or unit)
            for at in (last, last + unit):
                yield at, spelt(dice, at, digits)
    last = cutoff - ((cutoff - EPOCH) % QUARTER or QUARTER)
    for at in (last, last + QUARTER):
        yield at, number(at)

    yield from ((None, text) for text in NONE)


def number(at: datetime) -> float:
    """An instant as seconds since 1970."""
    return (at - EPOCH).total_seconds()


def spelt(dice: Random, at: datetime, digits: int) -> str:
    """An instant as a text, with a T or a blank, and with Z, an offset or nothing behind it."""
    minutes = dice.choice(_OFFSETS)
    zone = dice.choice(("", "Z", "offset", "offset"))
    local = at.astimezone(timezone(timedelta(minutes=minutes if zone == "offset" else 0)))
    whole = local.strftime(f"%Y-%m-%d{dice.choice('T ')}%H:%M:%S")
    more = str(dice.randrange(5 * 10 ** (digits - 7))).zfill(digits - 6) if digits > _MICROSECONDS else ""
    fraction = f".{local.microsecond:06d}{more}"[: digits + 1] if digits else ""
    hours, rest = divmod(abs(minutes), 60)
    sign = "-" if minutes < 0 else "+"
    return whole + fraction + (f"{sign}{hours:02d}:{rest:02d}" if zone == "offset" else zone)
