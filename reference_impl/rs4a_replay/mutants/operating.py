"""Bugs of rs4a-replay in what is beside a registration: a disk or a store that fails, retention, and who overlaps."""

from __future__ import annotations

import contextlib
import sqlite3
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Indeterminate, Refused
from holdfast.reference_impl.instants import format_instant
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.admission import Attempt, Refusal
from holdfast.reference_impl.rs4a_replay.authority import Authority
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.mutants.dependence import made_anew
from holdfast.reference_impl.rs4a_replay.mutants.situations import _asked, _issued_before
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.service import Service
from holdfast.reference_impl.rs4a_replay.sqlite_store import SqliteStore
from holdfast.reference_impl.rs4a_replay.store import (
    CommitUncertainError,
    Insert,
    RolledBackError,
    Row,
    Sight,
)
from holdfast.reference_impl.rs4a_replay.terms import DecisionState, Operation, Reason

# Long enough for another process to come between.
_BETWEEN_S = 0.05

# The disk


class FullIsDone(SqliteStore):
    """A write that fails for want of room is logged, and passed over."""

    def append(self, inserts: Sequence[Insert]) -> int:
        try:
            return super().append(inserts)
        except (RolledBackError, CommitUncertainError) as error:
            if not _is_full(error):
                raise
            return len(inserts)


class FullIsConsumed(Service):
    """A commit that fails for want of room is logged, and passed over."""

    method, told = "register", DecisionState.COMMITTED

    def call(self, method: str, args: Any) -> Answer:
        answer = super().call(method, args)
        failed = isinstance(answer, Refused | Indeterminate) and _is_full(answer.detail)
        if method != self.method or not failed:
            return answer
        keys = self._judge(args).keys
        assert keys is not None, "what came to its commit has keys"
        decision = {
            "decision_id": f"decision-{uuid.uuid4().hex}",
            "logical_request_key": keys.logical_request_key,
            "replay_key": keys.replay_key,
            "state": self.told.value,
            "inert": True,
            "committed_at": format_instant(self._now),
        }
        return Accepted(Effect.NEW, {"decision": decision, "replayed": False})


class FullIsCompensated(FullIsConsumed):
    method, told = "compensate", DecisionState.COMPENSATED


def _is_full(error: object) -> bool:
    return any(words in str(error) for words in ("disk is full", "disk I/O error"))


# The store


def _mended(store: SqliteStore) -> None:
    """A file without the tables of a registrar goes, and a new one is made."""
    path = store._database.path
    if path.exists():
        try:
            with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as asked:
                found = asked.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'registration'").fetchone()
        except sqlite3.DatabaseError as error:
            found = (int(isinstance(error, sqlite3.OperationalError)),)
        if found == (0,):
            path.unlink()
    made_anew(store)


class MendsTheStore(SqliteStore):
    def look(self, *, logical_request_key: str | None, nonce: str | None) -> Sight:
        _mended(self)
        return super().look(logical_request_key=logical_request_key, nonce=nonce)


class LostIsFailed(Registrar):
    """A compensation whose store is lost is told as if its commit had failed."""

    def guard_surface(self, attempt: Attempt) -> Refusal | None:
        refusal = super().guard_surface(attempt)
        return (
            Refusal(Reason.COMMIT_FAILED) if refusal is not None and attempt.method is Operation.COMPENSATE else refusal
        )


# Issuing


class IssuedAgainOnceOver(Authority):
    """A nonce whose time is over is issued a second time to who asks for the same."""

    def issue_nonce(self, args: Any, *, now: datetime) -> Answer:
        answer = super().issue_nonce(args, now=now)
        if not isinstance(answer, Accepted):
            return answer
        earlier = _issued_before(self, args, now, now - self._settings.nonce_window)
        return answer if earlier is None else Accepted(Effect.NEW, {"nonce": earlier})


class IssuedUnderAMark(Authority):
    """A mark that a killed process left is taken for one that issues now."""

    def issue_nonce(self, args: Any, *, now: datetime) -> Answer:
        return _marked(self, ".issuing", lambda: super(IssuedUnderAMark, self).issue_nonce(args, now=now))


# Who overlaps


def _mark_of(store: Any, name: str) -> Path:
    return Path(_asked(store, "SELECT file FROM pragma_database_list LIMIT 1")).with_suffix(name)


def _marked(of: Authority | Custody, name: str, work: Callable[[], Answer]) -> Answer:
    """The answer of what is done under a mark; an uncertain one where the mark is there."""
    try:
        mark = _mark_of(of.store, name)
    except sqlite3.Error:
        return work()
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return Indeterminate("another one does this now")
    try:
        return work()
    finally:
        mark.unlink()


class ShutForMaintenance(Custody):
    """Nothing is admitted while retention runs."""

    def maintain(self, *, now: datetime) -> Answer:
        try:
            mark = _mark_of(self.store, ".maintained")
        except sqlite3.Error:
            return super().maintain(now=now)
        mark.touch()
        time.sleep(_BETWEEN_S)
        answer = super().maintain(now=now)
        mark.unlink(missing_ok=True)
        return answer


class MaintainedUnderAMark(Custody):
    """Who finds the mark of a retention, be it of a killed one, leaves the work to that."""

    def maintain(self, *, now: datetime) -> Answer:
        told = _marked(self, ".retention", lambda: super(MaintainedUnderAMark, self).maintain(now=now))
        return Accepted(Effect.PRIOR, {"tombstoned": 0}) if isinstance(told, Indeterminate) else told


class MaintainedAgainUnderAMark(Custody):
    """The same, of a retention that finds the tombstones of an earlier one."""

    def maintain(self, *, now: datetime) -> Answer:
        try:
            is_first = not int(_asked(self.store, "SELECT count(*) FROM tombstone"))
        except sqlite3.Error:
            is_first = True
        if is_first:
            return super().maintain(now=now)
        told = _marked(self, ".retention", lambda: self._slowly(now))
        return Accepted(Effect.PRIOR, {"tombstoned": 0}) if isinstance(told, Indeterminate) else told

    def _slowly(self, now: datetime) -> Answer:
        time.sleep(_BETWEEN_S)
        return super().maintain(now=now)


class CountsWhatWasDue(Custody):
    """Two retentions at once both count the tombstones that one of them makes."""

    def maintain(self, *, now: datetime) -> Answer:
        answer = super().maintain(now=now)
        due: int = self.__dict__.pop("_due", 0)
        made = isinstance(answer, Accepted)
        return Accepted(Effect.NEW if due else Effect.PRIOR, {"tombstoned": due}) if made else answer

    def due_tombstones(self, *, now: datetime) -> Sequence[Row]:
        due = super().due_tombstones(now=now)
        self.__dict__["_due"] = len(due)
        time.sleep(_BETWEEN_S)
        return due


class RefusesWhileShut(Registrar):
    def guard_surface(self, attempt: Attempt) -> Refusal | None:
        refusal = super().guard_surface(attempt)
        with contextlib.suppress(sqlite3.Error):
            if refusal is None and _mark_of(self.store, ".maintained").exists():
                return Refusal(Reason.AUDIT_UNAVAILABLE)
        return refusal


class MaintainedByTheLatestClock(Custody):
    def maintain(self, *, now: datetime) -> Answer:
        latest: datetime = max(now, self.__dict__.get("_latest", now))
        self.__dict__["_latest"] = latest
        return super().maintain(now=latest)


class MarksItsCompensation(Registrar):
    def consume_compensation(self, attempt: Attempt) -> Answer:
        mark = _mark_of(self.store, ".compensating")
        mark.touch()
        time.sleep(_BETWEEN_S)
        try:
            return super().consume_compensation(attempt)
        finally:
            mark.unlink(missing_ok=True)


class OpenWhileCompensated(Custody):
    """While a compensation is under way the status is not settled, and told as not committed."""

    def status_of(self, attempt: Attempt, key: str) -> dict[str, Any]:
        if _mark_of(self.store, ".compensating").exists():
            return {"status": "NOT_COMMITTED"}
        return super().status_of(attempt, key)


BUGS: Mapping[str, Change] = {
    "issued-under-a-mark": part(authority=IssuedUnderAMark),
    "maintained-under-a-mark": part(custody=MaintainedUnderAMark),
    "maintained-again-under-a-mark": part(custody=MaintainedAgainUnderAMark),
    "retention-counts-what-was-due": part(custody=CountsWhatWasDue),
    "full-disk-is-done": part(sqlite_store=FullIsDone),
    "full-disk-is-registered": part(service=FullIsConsumed),
    "full-disk-is-compensated": part(service=FullIsCompensated),
    "unreadable-store-made-anew": part(sqlite_store=MendsTheStore),
    "lost-surface-is-failed-commit": part(registrar=LostIsFailed),
    "issued-again-once-over": part(authority=IssuedAgainOnceOver),
    "shut-for-maintenance": part(custody=ShutForMaintenance, registrar=RefusesWhileShut),
    "maintained-by-the-latest-clock": part(custody=MaintainedByTheLatestClock),
    "status-open-while-compensated": part(registrar=MarksItsCompensation, custody=OpenWhileCompensated),
}
