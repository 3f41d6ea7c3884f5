"""Consumed records afterwards: the resolution of an uncertain commit, and retention (source sections 3, 4)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect
from holdfast.reference_impl.instants import format_instant, parse_instant
from holdfast.reference_impl.rs4a_replay.admission import Admission, Attempt, decision_of, uncertain
from holdfast.reference_impl.rs4a_replay.store import CommitUncertainError, Insert, Row, StoreError
from holdfast.reference_impl.rs4a_replay.terms import CONTRACT, CommitStatus, Identities, Operation, Reason
from holdfast.reference_impl.rs4a_replay.validator import Verdict
from holdfast.specs import kept_terms
from holdfast.specs.schema import explain


class Custody(Admission):
    """Keeps consumed records and reports on them. No method here removes one."""

    _schema = kept_terms(CONTRACT).methods["resolve_status"].args

    def resolve_status(self, args: Any, *, now: datetime) -> Answer:
        """After an uncertain commit, report the outcome of a logical request, and audit it."""
        problem = explain(self._schema, args)
        verdict = Verdict() if problem is None else Verdict(Reason.REQUEST_MALFORMED, detail=problem)
        identities = Identities(args["logical_request_key"]) if problem is None else Identities()
        attempt = self.arrive(Operation.RESOLVE_STATUS, verdict, identities, now=now)
        refusal = self.refusal(attempt)
        if refusal is not None:
            return self.refuse(attempt, refusal)
        try:
            value = self.status_of(attempt, args["logical_request_key"])
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
        kinds = {
            "key": uuid.uuid4().hex * 2,
            "text": f"probe-{uuid.uuid4().hex}",
            "instant": format_instant(attempt.now),
        }
        columns = self._settings.relations["registration"].columns
        row = {name: column.only[0] if column.only else kinds[column.type] for name, column in columns.items()}
        return Insert("registration", {**row, "logical_request_key": key})

    def maintain(self, *, now: datetime) -> Answer:
        """Run every retention job that is due: after a finite horizon a key gets a tombstone, which still blocks it."""
        attempt = self.arrive(Operation.MAINTAIN, Verdict(), Identities(), now=now)
        refusal = self.refusal(attempt)
        if refusal is not None:
            return self.refuse(attempt, refusal)
        try:
            made = self.store.append([Insert("tombstone", row) for row in self.due_tombstones(now=now)])
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
