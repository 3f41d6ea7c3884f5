"""The source of a daemon as a pure model: what is in its outbox, and what may become of it (sections 4.1 to 4.9).

Where the source leaves open what happens, an id has every row that may be there; what is observed next narrows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto, unique
from typing import Any

from holdfast.vectors.derive import derive

Args = Mapping[str, Any]
NEW, PRIOR = "new", "prior"
REUSED, NOT_DEAD, IN_USE = "IDEMPOTENCY_KEY_REUSED", "NOT_DEAD", "ID_IN_USE"
# The title of `deliver`: a row without an answer is due again after ten minutes at the latest, later after five hours.
_SOON, _LATEST, _FIRST_ATTEMPTS = timedelta(minutes=10), timedelta(hours=5), 1
# Times are stored in whole numbers, and a daemon may cut its seconds.
_UNIT = timedelta(seconds=1)
# The source says nothing of the unit: seconds, or thousandths, millionths or billionths of them.
_UNITS = (1, 10**3, 10**6, 10**9)


@unique
class Fate(Enum):
    """What an answer makes of a row (docs/contracts/mesh-delivery.md)."""

    DONE = auto()
    DEAD = auto()
    AGAIN = auto()
    # Tried again or dead, as the daemon likes.
    UNDONE = auto()


@dataclass(frozen=True, slots=True)
class Row:
    """One send. `born` is the moment that its age is counted from.

    No attempt is made at `after` or before it, and one is made from `due` on. `failed`: an attempt of it has failed.
    `taken` and `delivered` are when it came in and when it was delivered; None where that is open.
    """

    mesh_id: str
    fingerprint: str
    born: datetime
    due: datetime
    after: datetime | None = None
    status: str = "pending"
    attempts: int = 0
    message_id: str | None = None
    failed: bool = False
    taken: datetime | None = None
    delivered: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is still to be delivered."""
        return self.status in ("pending", "inflight")

    def is_too_old(self, now: datetime, limit: timedelta) -> bool:
        """Whether every daemon has to find it so."""
        return now - self.born >= limit + (_UNIT if self.born.microsecond else timedelta())

    def may_be_sent(self, now: datetime, limit: timedelta) -> bool:
        """Whether an attempt is right at this time."""
        return self.is_open and not self.is_too_old(now, limit) and (self.after is None or now > self.after)

    def must_be_sent(self, now: datetime, limit: timedelta) -> bool:
        """Whether a round without an attempt of it is wrong."""
        return self.may_be_sent(now, limit) and now >= self.due and now - self.born <= limit - _UNIT

    def may_die(self, now: datetime, limit: timedelta) -> bool:
        """Whether it may be too old."""
        return self.is_open and now - self.born > limit - _UNIT

    def must_die(self, now: datetime, limit: timedelta) -> bool:
        """Whether a round that finds it due has to bury it."""
        return self.is_open and now >= self.due and self.is_too_old(now, limit)

    def answered(self, fate: Fate, now: datetime, message_id: str) -> tuple[Row, ...]:
        """What it may be behind an attempt."""
        counted = replace(self, attempts=self.attempts + 1)
        if fate is Fate.DONE:
            return (replace(counted, status="done", message_id=message_id, delivered=now),)
        dead = replace(counted, status="dead", failed=True)
        again = replace(counted, status="pending", failed=True, after=now, due=now + counted.pause)
        return {Fate.DEAD: (dead,), Fate.AGAIN: (again,), Fate.UNDONE: (again, dead)}[fate]

    @property
    def pause(self) -> timedelta:
        """How long it may wait at most for its next attempt."""
        return _SOON if self.attempts <= _FIRST_ATTEMPTS else _LATEST

    def cut_short(self, now: datetime) -> tuple[Row, ...]:
        """What it may be when the daemon has died in an attempt, whether or not that counts."""
        counted = replace(self, attempts=self.attempts + 1, after=None)
        counted = replace(counted, due=now + counted.pause)
        left = replace(counted, attempts=self.attempts)
        return tuple(replace(one, status=status) for one in (left, counted) for status in ("inflight", "pending"))


class Outbox:
    """The rows by their ids."""

    def __init__(self, max_age_hours: int, rows: Mapping[str, tuple[Row, ...]] | None = None) -> None:
        self.limit = timedelta(hours=max_age_hours)
        self.rows: dict[str, tuple[Row, ...]] = dict(rows or {})

    def copy(self) -> Outbox:
        """Another one with the same rows."""
        return Outbox(self.limit // timedelta(hours=1), self.rows)

    def is_dead(self, name: str) -> bool:
        """Whether an id has a dead row. What was observed since the last step leaves no doubt of it."""
        return any(row.status == "dead" for row in self.rows.get(name, ()))

    # Callers and operators

    def sent(self, name: str, args: Args) -> str:
        """The effect of a send, or the reason of its refusal."""
        known = self.rows.get(name)
        if known is None:
            return NEW
        same = (known[0].mesh_id, known[0].fingerprint) == (args["mesh_id"], fingerprint_of(args))
        return PRIOR if same else REUSED

    def add(self, name: str, args: Args, now: datetime) -> None:
        """A send was taken in."""
        due = now + (_UNIT if now.microsecond else timedelta())
        self.rows[name] = (Row(args["mesh_id"], fingerprint_of(args), now, due, taken=now),)

    def requeued(self, name: str, new: str) -> set[str]:
        """The effect of a requeue, or the reasons that are right: of two no clause says which is looked at first."""
        states = {row.status for row in self.rows.get(name, ())}
        used = {IN_USE} if new in self.rows else set()
        return ({NOT_DEAD, *used} if states != {"dead"} else set()) | ((used or {NEW}) if "dead" in states else set())

    def requeue(self, name: str, new: str, now: datetime) -> None:
        """A row has its new id, and its age begins anew."""
        rows = [row for row in self.rows.pop(name) if row.status == "dead"]
        fresh = [
            replace(row, status="pending", attempts=0, after=None, due=now, failed=False, taken=None, born=now)
            for row in rows
        ]
        self.rows[new] = tuple(dict.fromkeys(fresh))

    # Rounds of delivery

    def due(self, now: datetime) -> set[str]:
        """The ids that a round has to send."""
        return {name for name, rows in self.rows.items() if all(row.must_be_sent(now, self.limit) for row in rows)}

    def attempted(self, name: str, fates: Iterable[Fate], now: datetime, message_id: str) -> bool:
        """An attempt was made and answered; False where none was right."""
        rows = [row for row in self.rows.get(name, ()) if row.may_be_sent(now, self.limit)]
        if rows:
            self.rows[name] = tuple(
                {one: None for fate in fates for row in rows for one in row.answered(fate, now, message_id)}
            )
        return bool(rows)

    def taken(self, name: str, message_ids: Sequence[str], now: datetime) -> bool:
        """Rounds at once have sent a row, each as a first send; two of them may send one row. False where none may."""
        rows = [row for row in self.rows.get(name, ()) if row.may_be_sent(now, self.limit)]
        if rows:
            tries = [row.attempts + more for row in rows for more in range(1, len(message_ids) + 1)]
            done = [replace(row, status="done", message_id=each, delivered=now) for row in rows for each in message_ids]
            self.rows[name] = tuple({replace(row, attempts=count): None for row in done for count in tries})
        return bool(rows)

    def passed_over(self, names: Iterable[str], now: datetime, *, whole: bool) -> bool:
        """A round made no attempt of these; whether one may be too old. `whole`: it had to bury what is."""
        dying = False
        for name in names:
            dying = dying or any(row.may_die(now, self.limit) for row in self.rows[name])
            self.rows[name] = tuple(one for row in self.rows[name] for one in self._passed_over(row, now, whole=whole))
        return dying

    def _passed_over(self, row: Row, now: datetime, *, whole: bool) -> tuple[Row, ...]:
        dead = replace(row, status="dead", failed=True)
        if whole and row.must_die(now, self.limit):
            return (dead,)
        # A clock that was put back may bring the time of a row nearer, and never to this moment.
        left = row if row.after is None or row.after < now else replace(row, after=now)
        return (left, dead) if row.may_die(now, self.limit) else (left,)

    def died(self, now: datetime, answers: Mapping[str, tuple[Sequence[Fate], str]]) -> None:
        """The daemon died in a round; `answers` are those to the attempts that it had made.

        It may have marked other rows as well, and acted on some of the answers.
        """
        for name, rows in self.rows.items():
            fates, message_id = answers.get(name, ((), ""))
            found: list[Row] = []
            for row in rows:
                found += (row, *self._passed_over(row, now, whole=False))
                if row.may_die(now, self.limit):
                    found.append(replace(row, status="inflight"))
                if row.may_be_sent(now, self.limit):
                    found += row.cut_short(now)
                    found += [one for fate in fates for one in row.answered(fate, now, message_id)]
            self.rows[name] = tuple(dict.fromkeys(found))

    # What is there

    def narrow(self, stored: Mapping[str, Mapping[str, Any]]) -> str | None:
        """Keep the rows that agree with those of the store, by their ids. The first difference, if there is one."""
        for name, rows in sorted(self.rows.items()):
            if name not in stored:
                return f"{name}: it is gone"
            fits = tuple(row for row in rows if _agrees(row, stored[name]))
            if not fits:
                told = ", ".join(f"{part} {stored[name][part]!r}" for part in _TOLD)
                return f"{name}: {told}, {' or '.join(dict.fromkeys(map(_due, rows)))} is due"
            self.rows[name] = tuple({replace(row, status=stored[name]["status"]): None for row in fits})
        more = sorted(stored.keys() - self.rows.keys())
        return f"{more[0]}: it is there, and was never taken in" if more else None


def longest(row: Row) -> datetime:
    """When a row is due at the latest, however many attempts it had."""
    return row.due if row.after is None else max(row.due, row.after + _LATEST)


def fingerprint_of(args: Args) -> str:
    """What is stored of a send."""
    found: str = derive("mesh.fingerprint", args["request"])
    return found


def _agrees(row: Row, stored: Mapping[str, Any]) -> bool:
    told, status = stored["last_error"], stored["status"]
    return (
        # What was left in flight may be found at any time.
        (status == row.status or (status, row.status) == ("pending", "inflight"))
        and stored["attempts"] == row.attempts
        and stored["request_fingerprint"] == {"blob": row.fingerprint}
        and stored["broker_message_id"] == row.message_id
        and (stored["delivered_at"] is not None or row.status != "done")
        and _is_about(stored["delivered_at"], row.delivered)
        and _is_about(stored["enqueued_at"], row.taken)
        and (bool(told) or not row.failed or row.status == "done")
    )


def _is_about(stored: Any, moment: datetime | None) -> bool:
    """Whether a time of a row is this moment, in the unit of the daemon and however its seconds were cut."""
    if moment is None or not isinstance(stored, int):
        return True
    return any(abs(stored / unit - moment.timestamp()) <= _UNIT.total_seconds() for unit in _UNITS)


_TOLD: Sequence[str] = ("status", "attempts", "broker_message_id", "enqueued_at", "delivered_at", "last_error")


def _due(row: Row) -> str:
    reason = " with its last_error" if row.failed and row.status != "done" else ""
    return f"{row.status} with {row.attempts} attempts{f' as {row.message_id}' if row.message_id else ''}{reason}"
