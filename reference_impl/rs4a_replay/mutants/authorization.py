"""Bugs on the authorization axis: which nonce is believed, and what consuming one means."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.reference_impl.answers import Accepted, Effect
from holdfast.reference_impl.instants import parse_instant
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.admission import Attempt, Refusal, decision_of
from holdfast.reference_impl.rs4a_replay.authority import Authority
from holdfast.reference_impl.rs4a_replay.mutants.values import unique
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.store import Insert, Row
from holdfast.reference_impl.rs4a_replay.terms import DerivedKeys, Purpose, Reason


class WindowWithoutStart(Registrar):
    def guard_nonce_window(self, attempt: Attempt) -> Refusal | None:
        issue = attempt.sight.issue
        if issue is not None and attempt.now < parse_instant(str(issue["not_before"])):
            return None
        return super().guard_nonce_window(attempt)


class WindowByClientClock(Registrar):
    def guard_nonce_window(self, attempt: Attempt) -> Refusal | None:
        assert attempt.verdict.submission is not None
        return super().guard_nonce_window(replace(attempt, now=attempt.verdict.submission.issued_at))


class EmptyBindingIssued(Authority):
    def issue_row(self, args: Any, **named: Any) -> Row:
        if isinstance(args, dict) and args.get("binding") == {}:
            args = {**args, "binding": {"operation": "register_dot"}}
        return super().issue_row(args, **named)


class NonceOnlyInEffect(Registrar):
    def effect_rows(self, attempt: Attempt) -> tuple[Insert, Insert]:
        # The nonce is a column of the effect row, and nowhere else.
        return super().effect_rows(attempt)[1:]  # type: ignore[return-value]


class NonceConsumedPerRequest(Registrar):
    def consume_row(self, attempt: Attempt, keys: DerivedKeys, purpose: Purpose) -> Row:
        row = super().consume_row(attempt, keys, purpose)
        return {**row, "authorization_nonce": f"{row['authorization_nonce']}.{keys.logical_request_key[:16]}"}


class NonceHashedOnConsume(Registrar):
    def consume_row(self, attempt: Attempt, keys: DerivedKeys, purpose: Purpose) -> Row:
        row = super().consume_row(attempt, keys, purpose)
        hashed = hashlib.sha256(str(row["authorization_nonce"]).encode()).hexdigest()
        return {**row, "authorization_nonce": hashed}


class LeaksOthersDecision(Registrar):
    def guard_other_consumed_nonce(self, attempt: Attempt) -> Refusal | None:
        if super().guard_other_consumed_nonce(attempt) is None:
            return None
        # It takes a consumed nonce as the proof of a retry.
        return Accepted(Effect.PRIOR, {"decision": decision_of(attempt.sight), "replayed": True})  # type: ignore[return-value]


class OtherNonceIsDuplicate(Registrar):
    def guard_other_consumed_nonce(self, attempt: Attempt) -> Refusal | None:
        return None


class ConsumedNonceIsUnbound(Registrar):
    def guard_nonce_consumed(self, attempt: Attempt) -> Refusal | None:
        return None if attempt.sight.consume is None else Refusal(Reason.NONCE_UNBOUND)


BUGS: Mapping[str, Change] = {
    "window-without-start": part(registrar=WindowWithoutStart),
    "window-by-client-clock": part(registrar=WindowByClientClock),
    "empty-binding-issued": part(authority=EmptyBindingIssued),
    "nonce-only-in-effect": part(registrar=NonceOnlyInEffect),
    "nonce-consumed-per-request": part(registrar=NonceConsumedPerRequest),
    "nonce-hashed-on-consume": part(registrar=NonceHashedOnConsume),
    "nonce-unique-per-key": unique(
        "nonce_consume", {"authorization_nonce_unique": ("authorization_nonce", "logical_request_key")}
    ),
    "nonce-not-unique": unique("nonce_consume", {}),
    "leaks-others-decision": part(registrar=LeaksOthersDecision),
    "other-nonce-is-duplicate": part(registrar=OtherNonceIsDuplicate),
    "consumed-nonce-is-unbound": part(registrar=ConsumedNonceIsUnbound),
}
