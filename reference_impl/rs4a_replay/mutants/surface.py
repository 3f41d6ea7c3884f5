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
from holdfast.reference_impl.mutants.planting import also, part
from holdfast.reference_impl.rs4a_replay.admission import Attempt, Refusal
from holdfast.reference_impl.rs4a_replay.ddl import SqliteDialect
from holdfast.reference_impl.rs4a_replay.mutants.planting import mutant
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
        # Everything passed, so what could be wrong?
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
            # An exception handler that says fit.
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


_SURFACE_GONE = "its case takes the surface away, or a relation of it, and awaits the same refusal"
_NONCE_AGAIN = "one process of its cases is shown a nonce more than once"

MUTANTS = (
    mutant(
        "memory-fallback",
        "Without a surface, a dictionary has to do",
        part(registrar=FallsBackToMemory),
        {"GATE-1": "fail_open"},
        also(_SURFACE_GONE, "GATE-2"),
    ),
    mutant(
        "absent-looks-unaudited",
        "A missing surface is refused for another reason",
        part(registrar=AbsentLooksMalformed),
        {"GATE-1": "wrong_reason", "GATE-3": "wrong_reason"},
        also(_SURFACE_GONE, "GATE-2"),
    ),
    mutant(
        "gate-open",
        "The registrar opens the gate because everything works",
        part(service=GateOpen),
        {"GATE-4": "fail_open", "GATE-1": "fail_open", "GATE-3": "fail_open"},
    ),
    mutant(
        "migrates-on-first-use",
        "The registrar makes the surface that it misses",
        part(service=MigratesOnFirstUse),
        {"GATE-2": "fail_open"},
    ),
    mutant(
        "keeps-cache-table",
        "The registrar adds a table of its own to the database",
        part(sqlite_store=KeepsCacheTable),
        {"GATE-2": "fail_open"},
    ),
    mutant(
        "unknown-is-fit",
        "A surface that cannot be read is treated as there, and empty",
        part(registrar=UnknownIsFit),
        {"GATE-3": "wrong_reason"},
        also(_SURFACE_GONE, "GATE-2"),
    ),
    mutant(
        "errors-mean-present",
        "Whatever goes wrong while looking at the surface counts as a good look",
        part(registrar=UnknownIsAbsent),
        {"GATE-3": "wrong_reason"},
        also(_SURFACE_GONE, "GATE-2"),
    ),
    mutant(
        "missing-unnoticed",
        "A surface without one of its relations counts as complete",
        part(judge=MissingUnnoticed),
        {"GATE-3": "fail_open"},
        also(_SURFACE_GONE, "GATE-2"),
    ),
    mutant(
        "validator-remembers",
        "The validator keeps the nonces it has seen",
        part(validator=ValidatorRemembers),
        {"LAYER-1": "wrong_reason"},
        {
            **also(_NONCE_AGAIN, "AUD-1 AUD-2 GATE-2 GATE-4 ID-2 ID-3 ID-4 ID-6 ID-7 ID-9 ID-10 ID-13 ID-15 RP-01"),
            **also(_NONCE_AGAIN, "RP-03 RP-03b RP-04 RP-05 RP-06 RP-07 RP-08 S0-2 S1-1 S1-2 S2-2 S3-2 S3-3 S4-1 S4-2"),
            **also(_NONCE_AGAIN, "RP-09 S0-1 S4-4 S4-5 TTL-1 TTL-2 TTL-3 TTL-4 TTL-5"),
        },
    ),
    mutant(
        "validator-opens-store",
        "The validator opens a database",
        part(validator=ValidatorOpensStore),
        {"LAYER-1": "wrong_reason"},
    ),
    mutant(
        "validator-reads-clock",
        "The validator looks at the machine's clock",
        part(validator=ValidatorReadsClock),
        {"LAYER-1": "wrong_reason"},
    ),
    mutant(
        "active-admitted",
        "The store admits a registration that is not inert",
        part(sqlite_dialect=ActiveAdmitted),
        {"S2-1": "fail_open"},
    ),
    mutant(
        "key-unchecked",
        "The store admits what is no key, so that one key can be written in two ways",
        part(sqlite_dialect=KeyUnchecked),
        {"ID-11": "fail_open"},
    ),
)
