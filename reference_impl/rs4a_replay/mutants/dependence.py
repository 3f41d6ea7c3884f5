"""Bugs that appear when the store is lost: no sync, a new empty store, a guess, or a wait without end."""

from __future__ import annotations

import contextlib
import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Fault, Indeterminate, Ok, Refused
from holdfast.reference_impl.instants import format_instant
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.ddl import SqliteDialect
from holdfast.reference_impl.rs4a_replay.service import Service
from holdfast.reference_impl.rs4a_replay.sqlite_store import Database, SqliteAudit, SqliteStore
from holdfast.reference_impl.rs4a_replay.store import Consumption, Insert, Sight
from holdfast.reference_impl.rs4a_replay.terms import CommitStatus, DecisionState, NonceState, SurfaceState

_OFTEN = 64
# Longer than anything waits for an answer.
_ENDLESS_S = 86_400.0


class _Unsynced(Database):
    synchronous = "OFF"


class SyncLeftOut(SqliteStore):
    database = _Unsynced


class CompensationUnsynced(SqliteStore):
    def consume(self, inserts: Sequence[Insert]) -> Consumption:
        # A second connection whose author did not know of the setting.
        with contextlib.suppress(sqlite3.Error):
            is_registration = inserts[-1].relation == "registration"
            self._database.connection().execute(f"PRAGMA synchronous = {'FULL' if is_registration else 'OFF'}")
        return super().consume(inserts)


class LaterUnsynced(SqliteStore):
    _consumed = 0

    def consume(self, inserts: Sequence[Insert]) -> Consumption:
        # "Where so much comes in, it has to be fast."
        self._consumed += 1
        if self._consumed > _OFTEN:
            with contextlib.suppress(sqlite3.Error):
                self._database.connection().execute("PRAGMA synchronous = OFF")
        return super().consume(inserts)


class AuditUnsynced(SqliteAudit):
    database = _Unsynced


def made_anew(store: SqliteStore) -> None:
    """Make a store that is gone, as CREATE TABLE IF NOT EXISTS does each time one is opened."""
    path = store._database.path
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as made:
        made.execute("PRAGMA journal_mode = WAL").fetchone()
        surface = {name: relation for name, relation in store._relations.items() if not relation.audit}
        for statement in SqliteDialect().statements(surface):
            made.execute(statement)


class StoreMadeAnew(SqliteStore):
    def look(self, *, logical_request_key: str | None, nonce: str | None) -> Sight:
        made_anew(self)
        return super().look(logical_request_key=logical_request_key, nonce=nonce)


class DownIsUnseen(Service):
    def call(self, method: str, args: Any) -> Answer:
        answer = super().call(method, args)
        asked = not isinstance(answer, Refused | Indeterminate | Fault)
        if asked or self._parts.registrar.look(None, None).surface.state is not SurfaceState.UNKNOWN:
            return answer
        # It takes every error for "no row found".
        keys = self._judge(args).keys if method == "register" else None
        if method == "resolve_status":
            return Accepted(Effect.PRIOR, {"status": CommitStatus.NOT_COMMITTED.value})
        if method == "nonce_state":
            return Ok({"state": NonceState.ISSUED.value})
        if keys is None:
            return answer
        decision = {
            "decision_id": f"decision-{uuid.uuid4().hex}",
            "logical_request_key": keys.logical_request_key,
            "replay_key": keys.replay_key,
            "state": DecisionState.COMMITTED.value,
            "inert": True,
            "committed_at": format_instant(self._now),
        }
        return Accepted(Effect.NEW, {"decision": decision, "replayed": False})


class PatienceEndless(Patience):
    def left(self) -> float:
        return _ENDLESS_S


BUGS: Mapping[str, Change] = {
    "sync-left-out": part(sqlite_store=SyncLeftOut),
    "later-registrations-unsynced": part(sqlite_store=LaterUnsynced),
    "compensation-unsynced": part(sqlite_store=CompensationUnsynced),
    "audit-unsynced": part(sqlite_audit=AuditUnsynced),
    "store-made-anew": part(sqlite_store=StoreMadeAnew),
    "down-is-unseen": part(service=DownIsUnseen),
    "patience-endless": part(patience=PatienceEndless),
}
