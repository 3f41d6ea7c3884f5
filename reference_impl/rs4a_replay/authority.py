"""The authority's side: issuing nonces, bound and windowed. Single use starts here (source section 1)."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect
from holdfast.reference_impl.instants import InstantError, format_instant, normal_instant, parse_any_year, since_1970
from holdfast.reference_impl.rs4a_replay.admission import Admission, Refusal, uncertain
from holdfast.reference_impl.rs4a_replay.keys import TargetError, normal_hash, normal_target
from holdfast.reference_impl.rs4a_replay.store import CommitUncertainError, Insert, RolledBackError, Row
from holdfast.reference_impl.rs4a_replay.terms import CONTRACT, Identities, Operation, Reason
from holdfast.reference_impl.rs4a_replay.validator import MalformedError, Verdict
from holdfast.specs import kept_terms
from holdfast.specs.schema import explain
from holdfast.specs.strictjson import canonical

_WINDOW = ("not_before", "not_after")


class Authority(Admission):
    """Issues nonces. The binding of a nonce is stored, not encoded in it."""

    _schema = kept_terms(CONTRACT).methods["issue_nonce"].args

    def issue_nonce(self, args: Any, *, now: datetime) -> Answer:
        """Issue one nonce for a binding and a window."""
        row, verdict = None, Verdict()
        try:
            row = self.issue_row(args, now=now)
        except MalformedError as error:
            verdict = Verdict(Reason.REQUEST_MALFORMED, detail=str(error))
        attempt = self.arrive(Operation.ISSUE_NONCE, verdict, Identities(), now=now)
        refusal = self.refusal(attempt)
        if refusal is not None:
            return self.refuse(attempt, refusal)
        assert row is not None, "what is malformed is refused"
        try:
            issued = self.store.append([Insert("nonce_issue", row)])
        except RolledBackError as error:
            return self.refuse(attempt, Refusal(Reason.COMMIT_FAILED, detail=str(error)))
        except CommitUncertainError as error:
            return uncertain(error)
        if not issued:
            return self.refuse(attempt, Refusal(Reason.COMMIT_FAILED, detail="the nonce exists already"))
        return Accepted(Effect.NEW, {"nonce": row["authorization_nonce"]})

    def issue_row(self, args: Any, *, now: datetime) -> Row:
        """The row that issues a nonce, binding in its normal form. Raises MalformedError."""
        if not self._schema.is_valid(args):
            raise MalformedError(explain(self._schema, args))
        try:
            binding = self.normal_binding(args["binding"])
            for name in _WINDOW:
                parse_any_year(args["window"][name])
        except (InstantError, TargetError) as error:
            raise MalformedError(str(error)) from error
        opens, closes = (args["window"][name] for name in _WINDOW)
        length = timedelta(microseconds=since_1970(closes) - since_1970(opens))
        if not timedelta(0) <= length <= self._settings.nonce_window:
            raise MalformedError(f"expected a window of 0 to {self._settings.nonce_window}, got {opens} to {closes}")
        return {
            "authorization_nonce": self.new_nonce(binding),
            "binding": canonical(binding).decode(),
            "not_before": normal_instant(opens),
            "not_after": normal_instant(closes),
            "issued_at": format_instant(now),
        }

    def new_nonce(self, binding: dict[str, str]) -> str:  # noqa: ARG002 - a nonce never says what it is bound to
        """A nonce that no one can compute, least of all from its binding."""
        # 256 random bits, which is the library's own number.
        return secrets.token_urlsafe()

    def normal_binding(self, binding: dict[str, str]) -> dict[str, str]:
        """The binding in the same normal form as requests. Raises TargetError."""
        normal = dict(binding)
        if "canonical_target" in normal:
            normal["canonical_target"] = normal_target(normal["canonical_target"])
        if "artifact_hash" in normal:
            normal["artifact_hash"] = normal_hash(normal["artifact_hash"])
        return normal
