"""Bugs of rs4a-replay behind thousands of rows, under other settings, beside a false proof, and first after a crash."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.mutants.operating import _mark_of
from holdfast.reference_impl.rs4a_replay.service import Service
from holdfast.reference_impl.rs4a_replay.sqlite_store import SqliteAudit, SqliteStore, plain
from holdfast.reference_impl.rs4a_replay.store import Row, Sight, SurfaceUnreadableError
from holdfast.reference_impl.rs4a_replay.surface import SeenRelation, SurfaceJudge, SurfaceReport

_NEWEST, _AUDITED = 4096, 3000

# Thousands of rows


class LooksAmongTheNewest(SqliteStore):
    """A key is looked for in the newest registrations."""

    def _row(self, connection: sqlite3.Connection, relation: str, column: str, value: str | None) -> Row | None:
        found = super()._row(connection, relation, column, value)
        if found is None or (relation, column) != ("registration", "logical_request_key"):
            return found
        newer = "SELECT count(*) FROM registration WHERE rowid > (SELECT rowid FROM registration WHERE {} = ?)"
        (count,) = connection.execute(newer.format(column), (value,)).fetchone()
        return found if count < _NEWEST else None


class TombstonesInPart(Custody):
    """One retention writes no more than so many tombstones."""

    def due_tombstones(self, *, now: datetime) -> list[Row]:
        return list(super().due_tombstones(now=now))[:_NEWEST]


class AuditFull(SqliteAudit):
    """The audit takes so many records and no more."""

    def write(self, record: Row) -> None:
        with contextlib.suppress(sqlite3.Error):
            if self._database.connection().execute("SELECT count(*) FROM audit").fetchone()[0] >= _AUDITED:
                return
        super().write(record)


# Settings


class HorizonOfTheFirstRun(Custody):
    """The horizon of the first retention is kept beside the store, and is that of every later one."""

    def maintain(self, *, now: datetime) -> Answer:
        with contextlib.suppress(sqlite3.Error, AssertionError):
            mark, horizon = _mark_of(self.store, ".horizon"), self._settings.horizon
            kept = mark.read_text() if mark.exists() else "" if horizon is None else str(horizon.total_seconds())
            mark.write_text(kept)
            self._settings = replace(self._settings, horizon=timedelta(seconds=float(kept)) if kept else None)
        return super().maintain(now=now)


# Proofs


class TrustsAnyProof(Service):
    """A proof that says FIT opens the gate, of whichever surface it is."""

    def gate(self) -> dict[str, Any]:
        told = super().gate()
        store = self._parts.ports.store
        with contextlib.suppress(OSError, ValueError, sqlite3.Error):
            proof = json.loads((_mark_of(store, ".x").parents[2] / "fitness.json").read_bytes())
            if proof.get("status") == "FIT":
                return {**told, "can_proceed": "YES", "surface": "FIT"}
        return told


# Constraints


class NamesAreFitness(SurfaceJudge):
    """A surface is good if its relations and their columns are there."""

    def unfit(self, seen: Mapping[str, SeenRelation]) -> SurfaceReport | None:
        return None


# First after a crash


class StatusBeforeRecovery(Custody):
    """The status is read as the file stands, with the journal of a killed process beside it."""

    def resolve_status(self, args: Any, *, now: datetime) -> Answer:
        key, found = args.get("logical_request_key") if isinstance(args, dict) else None, None
        with contextlib.suppress(sqlite3.Error, SurfaceUnreadableError, AssertionError):
            assert isinstance(self.store, SqliteStore)
            name = f"{self.store._database.path.as_uri()}?mode=ro&immutable=1"
            with contextlib.closing(sqlite3.connect(name, uri=True)) as asked:
                asked.row_factory = sqlite3.Row
                statement = "SELECT * FROM registration WHERE logical_request_key = ?"
                row = asked.execute(statement, (key,)).fetchone()
                found = None if row is None else plain(self._settings.relations["registration"], row)
        answer = super().resolve_status(args, now=now)
        if found is None or not isinstance(answer, Accepted) or answer.value["status"] == "COMMITTED":
            return answer
        names = ("decision_id", "logical_request_key", "replay_key", "inert", "committed_at")
        decision = {"state": "COMMITTED", **{name: found[name] for name in names}}
        return replace(answer, value={"status": "COMMITTED", "decision": decision})


class JournalsItsCommits(SqliteStore):
    """The store has a rollback journal, as stores of many have."""

    def look(self, *, logical_request_key: str | None, nonce: str | None) -> Sight:
        with contextlib.suppress(sqlite3.Error):
            self._database.connection().execute("PRAGMA journal_mode = DELETE")
        return super().look(logical_request_key=logical_request_key, nonce=nonce)


class KeepsItsLocks(SqliteStore):
    """What a transaction has locked that was given up is free only when the next one of its process begins."""

    def _roll_back(self) -> None:
        """Later."""

    def _begin(self) -> sqlite3.Connection:
        super()._roll_back()
        return super()._begin()


BUGS: Mapping[str, Change] = {
    "loser-keeps-its-locks": part(sqlite_store=KeepsItsLocks),
    "looks-among-the-newest": part(sqlite_store=LooksAmongTheNewest),
    "tombstones-in-part": part(custody=TombstonesInPart),
    "audit-full-at-3000": part(sqlite_audit=AuditFull),
    "horizon-of-the-first-run": part(custody=HorizonOfTheFirstRun),
    "trusts-any-proof": part(service=TrustsAnyProof),
    "names-are-fitness": part(judge=NamesAreFitness),
    "status-before-recovery": part(custody=StatusBeforeRecovery, sqlite_store=JournalsItsCommits),
}
