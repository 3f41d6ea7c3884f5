"""Bugs on the authorization axis: which nonce is believed, and what consuming one means."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from holdfast.reference_impl.answers import Accepted, Effect
from holdfast.reference_impl.instants import parse_instant
from holdfast.reference_impl.mutants.planting import also, part
from holdfast.reference_impl.rs4a_replay.admission import Attempt, Refusal, decision_of
from holdfast.reference_impl.rs4a_replay.authority import Authority
from holdfast.reference_impl.rs4a_replay.mutants.planting import mutant, unique
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.store import Insert, Row
from holdfast.reference_impl.rs4a_replay.terms import DerivedKeys, Purpose, Reason


def _nonce(attempt: Attempt) -> str:
    assert attempt.verdict.submission is not None
    return attempt.verdict.submission.authorization_nonce


class IssueUnchecked(Registrar):
    def guard_nonce_issued(self, attempt: Attempt) -> Refusal | None:
        return None


class KeyIsNonce(Registrar):
    def guard_nonce_issued(self, attempt: Attempt) -> Refusal | None:
        keys = attempt.verdict.keys
        if keys is not None and _nonce(attempt) in (keys.logical_request_key, keys.replay_key):
            return None
        return super().guard_nonce_issued(attempt)


class BindingUnchecked(Registrar):
    def guard_nonce_binding(self, attempt: Attempt) -> Refusal | None:
        return None


class PrincipalUnchecked(Registrar):
    def guard_nonce_binding(self, attempt: Attempt) -> Refusal | None:
        issue = attempt.sight.issue
        if issue is not None and '"principal"' in str(issue["binding"]):
            return None
        return super().guard_nonce_binding(attempt)


class WindowUnchecked(Registrar):
    def guard_nonce_window(self, attempt: Attempt) -> Refusal | None:
        return None


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
        # A consumed nonce is taken for proof enough that this is a retry.
        return Accepted(Effect.PRIOR, {"decision": decision_of(attempt.sight), "replayed": True})  # type: ignore[return-value]


class OtherNonceIsDuplicate(Registrar):
    def guard_other_consumed_nonce(self, attempt: Attempt) -> Refusal | None:
        return None


class ConsumedNonceIsUnbound(Registrar):
    def guard_nonce_consumed(self, attempt: Attempt) -> Refusal | None:
        return None if attempt.sight.consume is None else Refusal(Reason.NONCE_UNBOUND)


_NEVER_ISSUED = "one of its requests has a nonce that was never issued, and is accepted"
_NOT_SEEN_CONSUMED = (
    "its cases look for the consumed nonce, in the store or in the refusal of a second use, and do not find it"
)
_STORE_TAKES_IT_AGAIN = (
    "its case offers the store a consume row with a consumed nonce, which the store knows in another spelling only"
)
_ANOTHERS_NONCE = "one of its requests presents a consumed key with a nonce that another request consumed"
_AFTER_THE_WINDOW = "one of its requests presents a nonce after the window has closed"

MUTANTS = (
    mutant(
        "issue-unchecked",
        "A well-formed nonce is consumed on first use, issued or not",
        part(registrar=IssueUnchecked),
        {"ID-9": "fail_open", "ID-8": "fail_open"},
        dict.fromkeys(("AUD-1", "GATE-4", "ID-1", "LAYER-2", "RP-02", "RP-03b", "S0-2"), _NEVER_ISSUED),
    ),
    mutant(
        "key-is-nonce",
        "A nonce that equals a key of the request is taken for issued",
        part(registrar=KeyIsNonce),
        {"ID-8": "fail_open"},
    ),
    mutant(
        "binding-unchecked",
        "That a nonce exists is enough; what it is bound to is not looked at",
        part(registrar=BindingUnchecked),
        {"RP-04": "fail_open"},
    ),
    mutant(
        "principal-unchecked",
        "A nonce that is bound to a principal is taken for bound to everybody",
        part(registrar=PrincipalUnchecked),
        {"RP-04": "fail_open"},
    ),
    mutant(
        "window-unchecked",
        "A nonce may be presented at any time",
        part(registrar=WindowUnchecked),
        {"RP-04": "fail_open"},
        also(_AFTER_THE_WINDOW, "RP-03b RP-05"),
    ),
    mutant(
        "window-without-start",
        "A nonce may be presented before its window opens",
        part(registrar=WindowWithoutStart),
        {"RP-04": "fail_open"},
    ),
    mutant(
        "window-by-client-clock",
        "The nonce's window is checked against the time that the client wrote into the request",
        part(registrar=WindowByClientClock),
        {"RP-04": "fail_open"},
        {
            **also(_AFTER_THE_WINDOW, "RP-03b RP-05"),
            **also("the request of its twin says that it is older than the nonce it presents", "TTL-1 TTL-5"),
        },
    ),
    mutant(
        "empty-binding-issued",
        "A nonce bound to nothing is issued, and bound to what every request has",
        part(authority=EmptyBindingIssued),
        {"RP-04": "fail_open"},
    ),
    mutant(
        "nonce-only-in-effect",
        "The nonce is a column of the effect row and has no consume record of its own",
        part(registrar=NonceOnlyInEffect),
        {"ID-6": "wrong_reason", "ID-7": "fail_open", "RP-03": "fail_open", "ID-15": "lost_durability"},
        {
            **also(_NOT_SEEN_CONSUMED, "AUD-1 AUD-2 GATE-4 ID-1 ID-2 ID-3 ID-4 ID-5 ID-8 ID-10 ID-11 ID-13 LAYER-1"),
            **also(_NOT_SEEN_CONSUMED, "LAYER-2 RP-01 RP-02 RP-03b RP-04 RP-05 RP-06 RP-07 RP-08 RP-09 S0-1 S0-2"),
            **also(_NOT_SEEN_CONSUMED, "S1-1 S1-2 S2-1 S2-2 S2-3 S3-1 S3-2 S3-3 S4-1 S4-2 S4-3 S4-4 S4-5 TTL-1 TTL-2"),
            **also(_NOT_SEEN_CONSUMED, "TTL-3 TTL-4 TTL-5"),
        },
    ),
    mutant(
        "nonce-consumed-per-request",
        "A nonce is consumed for one logical key only, and stays good for every other",
        part(registrar=NonceConsumedPerRequest),
        {"ID-7": "fail_open", "RP-03": "fail_open", "S4-5": "fail_open"},
        {
            **also(_NOT_SEEN_CONSUMED, "AUD-1 GATE-4 ID-6 ID-15 LAYER-2 RP-01 RP-03b RP-07 S1-2 S2-1 S2-3 S3-1 S3-3"),
            **also(_NOT_SEEN_CONSUMED, "S4-3 S4-4 TTL-2 TTL-3 TTL-4 TTL-5"),
            **also(_STORE_TAKES_IT_AGAIN, "ID-11"),
        },
    ),
    mutant(
        "nonce-hashed-on-consume",
        "The consume record holds a hash of the nonce, so the nonce itself is never seen as consumed",
        part(registrar=NonceHashedOnConsume),
        {"ID-15": "lost_durability", "ID-6": "wrong_reason"},
        {
            **also(_NOT_SEEN_CONSUMED, "AUD-1 GATE-4 ID-7 LAYER-2 RP-01 RP-03 RP-03b RP-07 S1-2 S2-1 S2-3 S3-1 S3-3"),
            **also(_NOT_SEEN_CONSUMED, "S4-3 S4-4 S4-5 TTL-2 TTL-3 TTL-4 TTL-5"),
            **also(_STORE_TAKES_IT_AGAIN, "ID-11"),
        },
    ),
    mutant(
        "nonce-unique-per-key",
        "The store has UNIQUE(authorization_nonce, logical_request_key): one nonce pays for many requests at once",
        unique("nonce_consume", {"authorization_nonce_unique": ("authorization_nonce", "logical_request_key")}),
        {"ID-11": "fail_open", "S4-5": "fail_open"},
    ),
    mutant(
        "nonce-not-unique",
        "The store has no UNIQUE on the nonce at all: it is only looked up first",
        unique("nonce_consume", {}),
        {"ID-11": "fail_open", "S4-5": "fail_open"},
    ),
    mutant(
        "leaks-others-decision",
        "Whoever presents any consumed nonce gets the key's decision",
        part(registrar=LeaksOthersDecision),
        {"RP-03b": "fail_open"},
        also(_ANOTHERS_NONCE, "AUD-1 TTL-3 TTL-4"),
    ),
    mutant(
        "other-nonce-is-duplicate",
        "A nonce that another request consumed is treated like a fresh one",
        part(registrar=OtherNonceIsDuplicate),
        {"RP-03b": "wrong_reason"},
        also(_ANOTHERS_NONCE, "AUD-1 TTL-3 TTL-4"),
    ),
    mutant(
        "consumed-nonce-is-unbound",
        "A consumed nonce is refused as if it had never been issued",
        part(registrar=ConsumedNonceIsUnbound),
        {"RP-03": "wrong_reason", "ID-7": "wrong_reason"},
        also(
            "one of its requests presents a new key with a consumed nonce",
            "AUD-1 GATE-4 ID-6 LAYER-2 RP-03b RP-07 S3-3 S4-4 S4-5",
        ),
    ),
)
