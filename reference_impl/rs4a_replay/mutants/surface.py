"""Bugs about the surface, the gate, and the border between validator and registrar."""

from __future__ import annotations

import contextlib
import sqlite3
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from msgspec import structs

from holdfast.reference_impl.answers import Accepted, Answer, Effect
from holdfast.reference_impl.instants import format_instant
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.admission import Attempt, Refusal
from holdfast.reference_impl.rs4a_replay.ddl import SqliteDialect
from holdfast.reference_impl.rs4a_replay.provision import ProvisionError, provision_sqlite
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.service import Service
from holdfast.reference_impl.rs4a_replay.sqlite_operator import SqliteOperator
from holdfast.reference_impl.rs4a_replay.sqlite_store import SqliteStore
from holdfast.reference_impl.rs4a_replay.store import Sight
from holdfast.reference_impl.rs4a_replay.surface import SeenRelation, SurfaceJudge, SurfaceReport
from holdfast.reference_impl.rs4a_replay.terms import DecisionState, Reason, SurfaceState
from holdfast.reference_impl.rs4a_replay.validator import Validator, Verdict
from holdfast.specs import Column


class FallsBackToMemory(Registrar):
    def register(self, attempt: Attempt) -> Answer:
        keys = attempt.verdict.keys
        if self._ports.store is not None or keys is None:
            return super().register(attempt)
        decision = {
            "decision_id": f"decision-{uuid.uuid4().hex}",
            "logical_request_key": keys.logical_request_key,
            "replay_key": keys.replay_key,
            "state": DecisionState.COMMITTED.value,
            "inert": True,
            "committed_at": format_instant(attempt.now),
        }
        return Accepted(Effect.NEW, {"decision": decision, "replayed": False})


class AbsentLooksMalformed(Registrar):
    def guard_surface(self, attempt: Attempt) -> Refusal | None:
        return None if super().guard_surface(attempt) is None else Refusal(Reason.AUDIT_UNAVAILABLE)


class GateOpen(Service):
    def gate(self) -> dict[str, Any]:
        # It takes a passed verdict as the proof of a fit surface.
        return {**super().gate(), "can_proceed": "YES", "gate": "REGISTRATION_OPEN"}


class MigratesOnFirstUse(Service):
    def register(self, args: Any) -> Answer:
        operator = self._parts.operator
        assert isinstance(operator, SqliteOperator)
        with contextlib.suppress(ProvisionError):
            provision_sqlite(operator._surface.parent.parent, self._parts.settings.relations)
        return super().register(args)


class KeepsCacheTable(SqliteStore):
    def look(self, *, logical_request_key: str | None, nonce: str | None) -> Sight:
        with contextlib.suppress(sqlite3.Error):
            self._database.connection().execute("CREATE TABLE IF NOT EXISTS seen_cache (nonce TEXT PRIMARY KEY)")
        return super().look(logical_request_key=logical_request_key, nonce=nonce)


class UnknownIsFit(Registrar):
    def guard_surface(self, attempt: Attempt) -> Refusal | None:
        return None if attempt.sight.surface.state is SurfaceState.UNKNOWN else super().guard_surface(attempt)


class UnknownIsAbsent(Registrar):
    def look(self, key: str | None, nonce: str | None) -> Sight:
        sight = super().look(key, nonce)
        if sight.surface.state is SurfaceState.UNKNOWN:
            # An exception handler that reports a fit surface.
            return replace(sight, surface=SurfaceReport(SurfaceState.PRESENT_UNPROVEN))
        return sight


class MissingUnnoticed(SurfaceJudge):
    def missing(self, seen: Mapping[str, SeenRelation]) -> SurfaceReport | None:
        return SurfaceReport(SurfaceState.PRESENT_UNPROVEN) if super().missing(seen) is not None else None


class ValidatorRemembers(Validator):
    def judge(self, args: Any, *, now: datetime) -> Verdict:
        verdict = super().judge(args, now=now)
        seen: set[str] = self.__dict__.setdefault("seen", set())
        nonce = None if verdict.submission is None else verdict.submission.authorization_nonce
        if verdict.reason is None and nonce in seen:
            return replace(verdict, reason=Reason.REQUEST_STALE)
        if nonce is not None:
            seen.add(nonce)
        return verdict


class ValidatorOpensStore(Validator):
    def judge(self, args: Any, *, now: datetime) -> Verdict:
        with contextlib.suppress(sqlite3.Error):
            sqlite3.connect(":memory:").close()
        return super().judge(args, now=now)


class ValidatorReadsClock(Validator):
    def judge(self, args: Any, *, now: datetime) -> Verdict:
        verdict = super().judge(args, now=now)
        return replace(verdict, detail=f"judged at {datetime.now().timestamp()}")


class ActiveAdmitted(SqliteDialect):
    def column(self, column: Column) -> str:
        return super().column(structs.replace(column, only=() if column.type == "boolean" else column.only))


class KeyUnchecked(SqliteDialect):
    def column(self, column: Column) -> str:
        return super().column(structs.replace(column, type="text") if column.type == "key" else column)


BUGS: Mapping[str, Change] = {
    "memory-fallback": part(registrar=FallsBackToMemory),
    "absent-looks-unaudited": part(registrar=AbsentLooksMalformed),
    "gate-open": part(service=GateOpen),
    "migrates-on-first-use": part(service=MigratesOnFirstUse),
    "keeps-cache-table": part(sqlite_store=KeepsCacheTable),
    "unknown-is-fit": part(registrar=UnknownIsFit),
    "errors-mean-present": part(registrar=UnknownIsAbsent),
    "missing-unnoticed": part(judge=MissingUnnoticed),
    "validator-remembers": part(validator=ValidatorRemembers),
    "validator-opens-store": part(validator=ValidatorOpensStore),
    "validator-reads-clock": part(validator=ValidatorReadsClock),
    "active-admitted": part(sqlite_dialect=ActiveAdmitted),
    "key-unchecked": part(sqlite_dialect=KeyUnchecked),
}
