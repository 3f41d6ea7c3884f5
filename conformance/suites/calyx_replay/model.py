"""calyx-replay as a relation: from a state and a call to every answer that fits, each with the state after it. Pure.

It has every operation of the contract and nothing of stores. What the contract leaves open has several answers: when a
mailbox prunes by itself, by which clock the command line goes, how long a block lasts that two migrations made.
What an answer does not show stays open in the state until the store is inspected (`seen`).

    within the window?    recorded?    blocked?    may its record be gone?    then delivered, row and delivery as one
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from holdfast.conformance.cases.session import Answer

EFFECTS = frozenset({"new", "prior"})
_NUMBER = re.compile(r"(?<![0-9])[0-9]{1,9}(?![0-9])")
BEGINNING, NEVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Terms:
    """The values that a session goes by. `remembers`: it keeps the cutoff of its prunes (CALYX-ALG-12, a SHOULD).

    `least` is the shortest retention, and `most` how many bytes an envelope may have.
    """

    window: timedelta
    retention: timedelta
    least: timedelta
    interval: timedelta
    remembers: bool
    most: int


@dataclass(frozen=True, slots=True)
class Letter:
    """An envelope: its bytes as base64url, its instant, the row that it gets, but for `seen_at`, and what is in it.

    `flaw` is the reason with which every mailbox has to refuse a forged envelope; a sound one has none.
    """

    data: str
    at: datetime
    row: Mapping[str, str]
    text: str = ""
    flaw: str = ""

    @property
    def key(self) -> str:
        """Its replay key."""
        return self.row["replay_key"]

    @property
    def msg_id(self) -> str:
        """Its message id."""
        return self.row["msg_id"]


@dataclass(frozen=True, slots=True)
class Record:
    """A row that came at a time, with a `seen_at` between two instants, which are the same where it is known.

    `order` is that of the operations by which rows came. Not `sure`: it may have been pruned. A row whose envelope is
    from ahead of its `seen_at`, as one that was migrated, may stay until its time comes, `ahead`, however old it is
    (CALYX-MIG-8). An older version `spelt` its `seen_at` in this way; what it wrote may be no instant, never old.
    """

    row: Mapping[str, str]
    came: datetime
    order: int
    earliest: datetime
    latest: datetime
    sure: bool = True
    ahead: datetime = BEGINNING
    spelt: str | float | None = None

    @property
    def seen_at(self) -> str | float:
        """What is stored, where its time is known."""
        return written(self.latest) if self.spelt is None else self.spelt


@dataclass(frozen=True, slots=True)
class Left:
    """What version 0 left: the listed ids, each once, and the envelopes by id. `sound`: it can be taken over.

    An id that stands there `twice` may be counted once or as often as it stands there.
    """

    listed: tuple[str, ...]
    letters: Mapping[str, Letter]
    sound: bool = True
    twice: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """What is recorded by key, was delivered in order, and was ever recorded; which ids are blocked, and until when.

    `surely` and `perhaps` are the greatest cutoffs of any prune: of those that took place, and of those by itself that
    may have. `last` is that of the last that took place. A block ends between two instants. `receipts` are the times of
    the last two deliveries, and `count` is the number of operations by which rows came.
    """

    records: Mapping[str, Record] = field(default_factory=dict)
    delivered: tuple[str, ...] = ()
    known: frozenset[str] = frozenset()
    blocked: Mapping[str, tuple[datetime, datetime]] = field(default_factory=dict)
    surely: datetime = BEGINNING
    perhaps: datetime = BEGINNING
    last: datetime = BEGINNING
    receipts: tuple[datetime, datetime] = (BEGINNING, BEGINNING)
    count: int = 0


@dataclass(frozen=True, slots=True)
class Due:
    """An answer: `new`, `prior` or a reason, members of its value or data, and the ends of its counts."""

    said: str
    members: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def fits(self, answer: Answer) -> bool:
        """Whether an answer is this one."""
        if answer.outcome == "ok":
            return self._is_printed(**answer.value)
        told: Mapping[str, Any] = (answer.value if answer.outcome == "accepted" else answer.data) or {}
        return (
            answer.said == self.said
            and all(_once(told.get(name)) == value for name, value in self.members.items())
            and all(least <= told.get(name, -1) <= most for name, (least, most) in self.counts.items())
        )

    def _is_printed(self, status: int, output: str) -> bool:
        """Whether a command printed this. Of a refusal the contract does not say how it is printed.

        That version 0 left nothing may count as done (CALYX-OPS-1).
        """
        if self.said not in EFFECTS:
            return bool(status) or self.said == "NOTHING_TO_MIGRATE"
        least, most = self.counts.get("removed", (0, 0))
        is_told = any(least <= int(digits) <= most for digits in _NUMBER.findall(output))
        return status == 0 and (is_told or "removed" not in self.counts)

    def __str__(self) -> str:
        counts = {name: str(a) if a == b else f"{a} to {b}" for name, (a, b) in self.counts.items()}
        told = ", ".join(f"{name} {value}" for name, value in {**counts, **self.members}.items())
        return f"{self.said} ({told})" if told else self.said


Outcome = tuple[Due, State]


def _once(value: Any) -> Any:
    """A list as it is without what stands there before."""
    return list(dict.fromkeys(value)) if isinstance(value, list) else value


# Operations


def accept(terms: Terms, state: State, letter: Letter, now: datetime) -> Iterator[Outcome]:
    """Receive an envelope."""
    state = aged(terms, state, now)
    if letter.flaw:
        yield Due(letter.flaw), state
        return
    if abs(letter.at - now) > terms.window:
        yield Due("TIMESTAMP_OUT_OF_WINDOW"), state
        return
    record = state.records.get(letter.key)
    if record is not None:
        yield (
            Due("REPLAY_DUPLICATE", {"replay_key": letter.key}),
            replace(state, records={**state.records, letter.key: replace(record, sure=True)}),
        )
    if record is None or not record.sure:
        yield from _unrecorded(terms, state, letter, now)


def _unrecorded(terms: Terms, state: State, letter: Letter, now: datetime) -> Iterator[Outcome]:
    state = replace(state, records={key: record for key, record in state.records.items() if key != letter.key})
    first, last = state.blocked.get(letter.msg_id, (BEGINNING, BEGINNING))
    if letter.at <= last:
        yield Due("MSG_ID_BLOCKED", {"msg_id": letter.msg_id}), state
    # A block that ended near a cutoff may be forgotten: what it blocks cannot be proven to be new either.
    if letter.at <= first and first >= state.perhaps + terms.window:
        return
    if letter.at < state.perhaps + terms.window:
        yield Due("REPLAY_UNPROVABLE"), state
        if letter.key in state.known:
            yield Due("REPLAY_DUPLICATE", {"replay_key": letter.key}), state
    if terms.remembers and (letter.key in state.known or letter.at <= first):
        # What was recorded and is not any more was pruned, by the store itself or by a command. A letter that never had
        # a record may be new: a mailbox may remember how late the last record was that it removed, and no cutoff.
        return
    yield (
        Due("new", {"replay_key": letter.key, "msg_id": letter.msg_id}),
        replace(
            state,
            records={**state.records, letter.key: Record(letter.row, now, state.count, now, now)},
            delivered=(*state.delivered, letter.key),
            known=state.known | {letter.key},
            receipts=(state.receipts[1], now),
            count=state.count + 1,
        ),
    )


def prune(terms: Terms, state: State, hours: float | None, now: datetime) -> Iterator[Outcome]:
    """Prune because an operator asks for it, with a retention of `hours` or the usual one."""
    state = aged(terms, state, now)
    retention = terms.retention if hours is None else timedelta(hours=hours)
    if retention < terms.least:
        yield Due("RETENTION_TOO_SHORT"), state
        return
    cutoff = now - retention
    old = [record for record in state.records.values() if record.earliest < cutoff]
    least, most = sum(record.sure and max(record.latest, record.ahead) < cutoff for record in old), len(old)
    rest = {
        key: replace(record, sure=False) if record.sure and record.earliest < cutoff else record
        for key, record in state.records.items()
        if max(record.latest, record.ahead) >= cutoff
    }
    kept = (sum(record.sure for record in rest.values()), len(rest))
    surely, perhaps = max(state.surely, cutoff), max(state.perhaps, cutoff)
    after = replace(state, records=rest, surely=surely, perhaps=perhaps, last=cutoff)
    told = {"unreadable": sum(record.latest == NEVER for record in rest.values())}
    if most:
        yield Due("new", told, {"removed": (max(1, least), most), "kept": kept}), after
    if not least:
        yield Due("prior", told, {"removed": (0, 0), "kept": kept}), after


def migrate(
    terms: Terms, state: State, left: Left | None, now: datetime, seen: tuple[datetime, datetime] | None = None
) -> Iterator[Outcome]:
    """Take over what version 0 left. `seen` are the ends of the time that the rows get, where that is not `now`."""
    state = aged(terms, state, now)
    if left is None:
        yield Due("NOTHING_TO_MIGRATE"), state
        return
    if not left.sound:
        yield Due("MIGRATION_MALFORMED"), state
        return
    first, last = seen or (now, now)
    records, blocked = dict(state.records), dict(state.blocked)
    taken, doubtful, untaken = 0, 0, []
    for msg_id in left.listed:
        letter = left.letters.get(msg_id)
        if letter is None:
            untaken.append(msg_id)
            earlier = blocked.get(msg_id)
            ends = (first + terms.window, last + terms.window)
            blocked[msg_id] = ends if earlier is None else (min(earlier[0], ends[0]), max(earlier[1], ends[1]))
            continue
        if msg_id in blocked:
            # Its envelope is not gone any more: from now on the block may stand or be taken away.
            blocked[msg_id] = (BEGINNING, blocked[msg_id][1])
        record = records.get(letter.key)
        if record is None:
            taken += 1
            ahead = letter.at if letter.at > first else BEGINNING
            records[letter.key] = Record(letter.row, now, state.count, first, last, ahead=ahead)
        elif not record.sure:
            doubtful += 1
            records[letter.key] = replace(
                record,
                order=state.count,
                earliest=min(record.earliest, first),
                latest=max(record.latest, last),
                sure=True,
            )
    known = state.known | {letter.key for letter in left.letters.values()}
    after = replace(state, records=records, blocked=blocked, known=known, count=state.count + 1)
    there, twice = len(left.listed) - len(untaken), sum(msg_id not in untaken for msg_id in left.twice)
    listed, lists = {"unmigrated": untaken}, (len(left.listed), len(left.listed) + len(left.twice))
    if taken or doubtful or untaken:
        least = taken if untaken else max(1, taken)
        present = (there - taken - doubtful, there - least + twice)
        yield Due("new", listed, {"listed": lists, "migrated": (least, taken + doubtful), "present": present}), after
    if not taken:
        yield Due("prior", listed, {"listed": lists, "migrated": (0, 0), "present": (there, there + twice)}), after


def aged(terms: Terms, state: State, now: datetime) -> State:
    """The state at a time: a mailbox may prune by itself whenever it is used, and keeps its retention then."""
    cutoff = now - max(terms.retention, terms.least)
    old = {
        key: replace(record, sure=False)
        for key, record in state.records.items()
        if record.sure and record.earliest < cutoff
    }
    return replace(state, records={**state.records, **old}, perhaps=max(state.perhaps, cutoff))


# What is stored


Inserted = tuple[Mapping[str, str], datetime, str | float | None]


def inserted(state: State, rows: Sequence[Inserted], now: datetime) -> State:
    """Rows that another program puts into the store now, each with the time of its `seen_at`, and how it is spelt."""
    more = {
        row["replay_key"]: Record(row, now, state.count, at, at, ahead=_ahead(row, at), spelt=spelt)
        for row, at, spelt in rows
    }
    records = {**state.records, **more}
    return replace(state, records=records, known=state.known | more.keys(), count=state.count + 1)


def _ahead(row: Mapping[str, str], at: datetime) -> datetime:
    """The time of a row's envelope, if that is after its `seen_at`. One that cannot be read is no time."""
    try:
        claimed = datetime.fromisoformat(row["envelope_timestamp"])
    except ValueError:
        return BEGINNING
    claimed = claimed if claimed.tzinfo else claimed.replace(tzinfo=UTC)
    return claimed if claimed > at else BEGINNING


def lacking(state: State, rows: Sequence[Mapping[str, Any]], delivered: Sequence[str]) -> tuple[str, str, str] | None:
    """How a store differs from a state: the verdict, what is due and what is there; None if it fits."""
    found = {str(row.get("replay_key")): row for row in rows}
    for key, record in state.records.items():
        if record.sure and key not in found:
            return "lost_durability", f"the row of {key}, seen at {record.seen_at}", "no such row"
    for key, row in found.items():
        known = state.records.get(key)
        if known is None:
            return "state_leak", "no row that was pruned or refused", f"the row of {key}, seen at {row.get('seen_at')}"
        due = {**known.row, "seen_at": known.seen_at}
        at = _instant(row.get("seen_at")) if known.spelt is None else None
        is_its_time = row.get("seen_at") == known.spelt if at is None else known.earliest <= at <= known.latest
        if not is_its_time or {**row, "seen_at": due["seen_at"]} != due:
            return "state_leak", f"{due!r}", f"{dict(row)!r}"
    half = _half_pruned(state, found)
    if half is not None:
        return "state_leak", "no record that is older than one that was pruned", f"the row of {half}"
    if list(delivered) != list(state.delivered):
        verdict = "fail_open" if len(delivered) > len(state.delivered) else "lost_durability"
        return verdict, f"{len(state.delivered)} deliveries: {', '.join(state.delivered)}", ", ".join(delivered)
    return None


def _half_pruned(state: State, found: Collection[str]) -> str | None:
    """A row that is there, though it is older than one that was pruned, and did not come after it."""
    pruned: dict[int, datetime] = {}
    for key, record in state.records.items():
        if key not in found:
            pruned[record.order] = max(pruned.get(record.order, BEGINNING), record.earliest)
    for key, record in state.records.items():
        latest = max(record.latest, record.ahead)
        if key in found and any(record.order <= order and latest < at for order, at in pruned.items()):
            return key
    return None


def seen(state: State, rows: Sequence[Mapping[str, Any]]) -> State:
    """The state, now that its rows were inspected: those that are there are sure, and their times are known."""
    records = {}
    for row in rows:
        record = state.records[row["replay_key"]]
        at = datetime.fromisoformat(row["seen_at"]) if record.spelt is None else record.latest
        records[row["replay_key"]] = replace(record, earliest=at, latest=at, sure=True)
    return replace(state, records=records)


def settled(state: State) -> State:
    """The state for what comes next: all rows came before it, and their order does not matter."""
    records = {key: replace(record, order=state.count) for key, record in state.records.items()}
    return replace(state, records=records, count=state.count + 1)


def at_once(state: State, since: int) -> State:
    """The state in which all rows of the operations from number `since` on came at one time: which of them came before
    another is not told apart. None of them is old enough for a prune that the others outlive.
    """
    records = {key: replace(record, order=min(record.order, since)) for key, record in state.records.items()}
    return replace(state, records=records)


def overdue(terms: Terms, state: State) -> str | None:
    """The key of a record that a mailbox ought to have pruned by itself (CALYX-PRN-6a), if no clock ever went back.

    It came so long before the last receipt but one that two receipts have found a prune to be due.
    """
    limit = BEGINNING if terms.retention < terms.least else state.receipts[0]
    for key, record in state.records.items():
        is_timed = record.sure and record.latest < NEVER
        latest = max(record.came, record.ahead)
        if is_timed and limit > BEGINNING and latest < limit - terms.retention - terms.interval:
            return key
    return None


@lru_cache(maxsize=1 << 14)
def written(instant: datetime) -> str:
    """An instant as a row has it: six fractional digits and the letter Z."""
    return instant.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def _instant(stored: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(stored)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return found if written(found) == stored else None
