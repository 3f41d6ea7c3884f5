"""Bugs of rs4a-replay behind thousands of rows, under other settings, beside a false proof, and first after a crash."""

from __future__ import annotations

import contextlib
import json
import secrets
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer
from holdfast.reference_impl.planting import Change, part, value
from holdfast.reference_impl.rs4a_replay.authority import Authority
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.mutants.operating import _mark_of
from holdfast.reference_impl.rs4a_replay.service import Service
from holdfast.reference_impl.rs4a_replay.settings import Settings, load_settings
from holdfast.reference_impl.rs4a_replay.sqlite_store import SqliteAudit, SqliteStore, plain
from holdfast.reference_impl.rs4a_replay.store import Row, SurfaceUnreadableError
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
            counted = f"SELECT count(*) FROM {self._relation.name}"
            if self._database.connection().execute(counted).fetchone()[0] >= _AUDITED:
                return
        super().write(record)


class NonceOfFewBits(Authority):
    def new_nonce(self, binding: dict[str, str]) -> str:
        return f"nonce-{secrets.randbits(40):032x}"


# Settings


def _usual_tags(settings: Settings) -> Settings:
    return replace(settings, keys=load_settings({}).keys)


class CompensatesByTheUsualTime(Service):
    """The age of a compensation is judged by the time to live that the contract names."""

    def compensate(self, args: Any) -> Answer:
        validator, usual = self._parts.validator, load_settings({})
        own = validator._settings
        validator._settings = replace(own, ttl=usual.ttl, clock_skew=usual.clock_skew)
        try:
            return super().compensate(args)
        finally:
            validator._settings = own


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
                found = plain(self._settings.relations["registration"], asked.execute(statement, (key,)).fetchone())
        answer = super().resolve_status(args, now=now)
        if found is None or not isinstance(answer, Accepted) or answer.value["status"] == "COMMITTED":
            return answer
        names = ("decision_id", "logical_request_key", "replay_key", "inert", "committed_at")
        decision = {"state": "COMMITTED", **{name: found[name] for name in names}}
        return replace(answer, value={"status": "COMMITTED", "decision": decision})


BUGS: Mapping[str, Change] = {
    "looks-among-the-newest": part(sqlite_store=LooksAmongTheNewest),
    "tombstones-in-part": part(custody=TombstonesInPart),
    "audit-full-at-3000": part(sqlite_audit=AuditFull),
    "nonce-of-few-bits": part(authority=NonceOfFewBits),
    "usual-tags": value(_usual_tags),
    "compensates-by-the-usual-time": part(service=CompensatesByTheUsualTime),
    "trusts-any-proof": part(service=TrustsAnyProof),
    "names-are-fitness": part(judge=NamesAreFitness),
    "status-before-recovery": part(custody=StatusBeforeRecovery),
}
