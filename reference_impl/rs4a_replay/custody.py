"""Consumed records afterwards: the resolution of an uncertain commit, and retention (source sections 3, 4)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect
from holdfast.reference_impl.instants import format_instant, parse_instant
from holdfast.reference_impl.rs4a_replay.admission import Admission, Attempt, Ports, Refusal, decision_of, uncertain
from holdfast.reference_impl.rs4a_replay.settings import Settings
from holdfast.reference_impl.rs4a_replay.store import CommitUncertainError, Insert, Row, StoreError
from holdfast.reference_impl.rs4a_replay.terms import CommitStatus, Identities, Reason
from holdfast.reference_impl.rs4a_replay.validator import Verdict
from holdfast.specs.schema import Validator as SchemaValidator
from holdfast.specs.schema import explain


class Custody(Admission):
    """Keeps consumed records and reports on them. No method here removes one."""

    def __init__(self, settings: Settings, ports: Ports, schema: SchemaValidator) -> None:
        super().__init__(settings, ports)
        self._schema = schema

    def resolve_status(self, args: Any, *, now: datetime) -> Answer:
        """After an uncertain commit, report the outcome of a logical request, and audit it."""
        fits = self._schema.is_valid(args)
        key = args["logical_request_key"] if fits else None
        verdict = Verdict(
            None if fits else Reason.REQUEST_MALFORMED, None, None, "" if fits else str(explain(self._schema, args))
        )
        attempt = self.arrive("resolve_status", verdict, Identities(logical_request_key=key), now=now)
        refusal = self.refusal(attempt)
        if refusal is not None or key is None:
            return self.refuse(attempt, refusal or Refusal(Reason.REQUEST_MALFORMED))
        try:
            value = self.status_of(attempt, key)
        except CommitUncertainError as error:
            return uncertain(error)
        refusal = self.note_status(attempt, CommitStatus(value["status"]))
        return Accepted(Effect.PRIOR, value) if refusal is None else self.refuse(attempt, refusal)

    def status_of(self, attempt: Attempt, key: str) -> dict[str, Any]:
        """COMMITTED with the decision, or NOT_COMMITTED. Raises CommitUncertainError rather than guess."""
        sight = attempt.sight
        if sight.registration is None:
            # A row that is absent may still come: the transaction of a crashed client holds the key until it ends.
            if self.store.settles(self.probe(attempt, key)):
                return {"status": CommitStatus.NOT_COMMITTED.value}
            sight = self.look(key, None)
            if sight.registration is None:
                raise CommitUncertainError("another transaction holds the key, and has not committed")
        return {"status": CommitStatus.COMMITTED.value, "decision": decision_of(sight)}

    def probe(self, attempt: Attempt, key: str) -> Insert:
        """A row that would take the key. It is always rolled back."""
        kinds: dict[str, str | bool] = {
            "key": uuid.uuid4().hex * 2,
            "text": f"probe-{uuid.uuid4().hex}",
            "instant": format_instant(attempt.now),
            "boolean": True,
        }
        columns = self._settings.relations["registration"].columns.values()
        row: dict[str, str | bool | None] = {
            column.name: column.only[0] if column.only else kinds[column.type] for column in columns
        }
        return Insert("registration", {**row, "logical_request_key": key}, "logical_request_key_unique")

    def maintain(self, *, now: datetime) -> Answer:
        """Run every retention job that is due: after a finite horizon a key gets a tombstone, which still blocks it."""
        attempt = self.arrive("maintain", Verdict(None, None, None), Identities(), now=now)
        refusal = self.refusal(attempt)
        if refusal is not None:
            return self.refuse(attempt, refusal)
        try:
            made = self.store.append("tombstone", self.due_tombstones(now=now))
        except StoreError as error:
            return uncertain(error)
        return Accepted(Effect.NEW if made else Effect.PRIOR, {"tombstoned": made})

    def due_tombstones(self, *, now: datetime) -> Sequence[Row]:
        """Tombstones for every key whose horizon has passed; none without a horizon, which means for ever."""
        horizon = self._settings.horizon
        if horizon is None:
            return []
        return [
            {
                "logical_request_key": row["logical_request_key"],
                "decision_id": row["decision_id"],
                "recorded_at": format_instant(now),
            }
            for row in self.store.untombstoned()
            if parse_instant(str(row["committed_at"])) + horizon <= now
        ]
