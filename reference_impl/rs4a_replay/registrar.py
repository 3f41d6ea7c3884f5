"""The registrar: it owns the consume. One Phase-3 transaction, or a refusal (source sections 1, 3 and 5)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

from holdfast.reference_impl.answers import Accepted, Answer, Effect
from holdfast.reference_impl.instants import format_instant, parse_any_year
from holdfast.reference_impl.rs4a_replay.admission import (
    Admission,
    Attempt,
    Refusal,
    Rule,
    decision_of,
    uncertain,
)
from holdfast.reference_impl.rs4a_replay.store import (
    Committed,
    CommitUncertainError,
    Insert,
    RolledBackError,
    Row,
    Sight,
    StoreError,
)
from holdfast.reference_impl.rs4a_replay.terms import DerivedKeys, Operation, Purpose, Reason, Submission
from holdfast.specs.strictjson import loads


class Registrar(Admission):
    """Decides registrations and compensations. Never trusts the validator for anything that needs the store."""

    def register(self, attempt: Attempt) -> Answer:
        """Decide one registration request."""
        return self.decide(attempt, self.registration_rules(), self.consume)

    def compensate(self, attempt: Attempt) -> Answer:
        """Undo the consequence of a failed registration under a fresh nonce; never registers again."""
        return self.decide(attempt, self.compensation_rules(), self.consume_compensation)

    def decide(self, attempt: Attempt, rules: Sequence[Rule], effect: Callable[[Attempt], Answer]) -> Answer:
        """The answer of the first guard or rule that has one, or what comes of the effect."""
        answer = self.refusal(attempt) or self.judge(attempt, rules)
        if isinstance(answer, Refusal):
            return self.refuse(attempt, answer)
        return effect(attempt) if answer is None else answer

    def registration_rules(self) -> Sequence[Rule]:
        """The contract's decision order, from the consumed key on."""
        return (
            self.prior_decision,
            self.guard_other_consumed_nonce,
            self.guard_failed_key,
            self.guard_consumed_key,
            *self.nonce_rules(),
        )

    def compensation_rules(self) -> Sequence[Rule]:
        """The same order for a compensation, whose effect is the compensation row."""
        return (self.guard_failed_registration, self.prior_compensation, self.guard_compensated, *self.nonce_rules())

    def nonce_rules(self) -> Sequence[Rule]:
        """The rules for a nonce that authorizes a new effect."""
        return (self.guard_nonce_issued, self.guard_nonce_binding, self.guard_nonce_window, self.guard_nonce_consumed)

    def judge(self, attempt: Attempt, rules: Sequence[Rule]) -> Refusal | Accepted | None:
        """The answer of the first rule that has one; None if the effect may be tried."""
        return next((answer for answer in (rule(attempt) for rule in rules) if answer is not None), None)

    # The key axis

    def prior_decision(self, attempt: Attempt) -> Accepted | None:
        """RP-05: the key, presented with the very nonce that consumed it, gets the durable decision back."""
        return self.retold(attempt, attempt.sight.registration)

    def retold(self, attempt: Attempt, row: Row | None) -> Accepted | None:
        """The durable decision, for the nonce with which a row was written."""
        if row is None or row["authorization_nonce"] != _submission(attempt).authorization_nonce:
            return None
        return Accepted(Effect.PRIOR, {"decision": decision_of(attempt.sight), "replayed": True})

    def guard_other_consumed_nonce(self, attempt: Attempt) -> Refusal | None:
        """RP-03b: a nonce consumed elsewhere never learns of this key's decision."""
        if attempt.sight.registration is None or attempt.sight.consume is None:
            return None
        return Refusal(Reason.REPLAY_NONCE_CONSUMED)

    def guard_failed_key(self, attempt: Attempt) -> Refusal | None:
        """RP-07: after a failed verification a fresh nonce opens compensation only."""
        return None if attempt.sight.verification is None else Refusal(Reason.COMPENSATION_ONLY)

    def guard_consumed_key(self, attempt: Attempt) -> Refusal | None:
        """RP-02: a fresh nonce does not buy the effect again."""
        return None if attempt.sight.registration is None else Refusal(Reason.REPLAY_DUPLICATE)

    # The authorization axis

    def guard_nonce_issued(self, attempt: Attempt) -> Refusal | None:
        """ID-9: the authority must have issued the nonce; a well-formed one is not enough."""
        return Refusal(Reason.NONCE_UNBOUND, detail="not issued") if attempt.sight.issue is None else None

    def guard_nonce_binding(self, attempt: Attempt) -> Refusal | None:
        """RP-04: every member that the nonce was bound to must be the request's."""
        if attempt.sight.issue is None:
            return None
        submission = _submission(attempt)
        presented = {
            "principal": submission.principal,
            "operation": submission.operation,
            "canonical_target": submission.canonical_target,
            "artifact_hash": submission.attested_artifact_hash,
            "owner_or_approval_binding": submission.owner_or_approval_binding,
        }
        bound: dict[str, str] = loads(str(attempt.sight.issue["binding"]))
        if not bound or any(presented.get(name) != value for name, value in bound.items()):
            # Which member differs would say what it is bound to.
            return Refusal(Reason.NONCE_UNBOUND, detail="bound elsewhere")
        return None

    def guard_nonce_window(self, attempt: Attempt) -> Refusal | None:
        """RP-04: the window is closed at both ends, and the registrar's clock decides, not the client's."""
        if attempt.sight.issue is None:
            return None
        opens = parse_any_year(str(attempt.sight.issue["not_before"]))
        closes = parse_any_year(str(attempt.sight.issue["not_after"]))
        return None if opens <= attempt.now <= closes else Refusal(Reason.NONCE_UNBOUND, detail="outside its window")

    def guard_nonce_consumed(self, attempt: Attempt) -> Refusal | None:
        """RP-03: one consume for each nonce."""
        return None if attempt.sight.consume is None else Refusal(Reason.REPLAY_NONCE_CONSUMED)

    # Phase 3

    def effect_rows(self, attempt: Attempt) -> Sequence[Insert]:
        """The two rows of one registration: the consumed nonce, and the inert effect that is the consumed key."""
        submission, keys = _submission(attempt), _keys(attempt)
        known = {
            **asdict(submission),
            **asdict(keys),
            "decision_id": f"decision-{secrets.token_hex(16)}",
            "inert": True,
            "committed_at": format_instant(attempt.now),
        }
        registration = {name: known[name] for name in self._settings.relations["registration"].columns}
        consumed = self.consume_row(attempt, keys, Purpose.REGISTRATION)
        return Insert("nonce_consume", consumed), Insert("registration", registration)

    def consume_row(self, attempt: Attempt, keys: DerivedKeys, purpose: Purpose) -> Row:
        """The transition issued to consumed, in a row of its own."""
        return {
            "consume_id": f"consume-{secrets.token_hex(16)}",
            "authorization_nonce": _submission(attempt).authorization_nonce,
            "logical_request_key": keys.logical_request_key,
            "purpose": purpose.value,
            "consumed_at": format_instant(attempt.now),
        }

    def consume(self, attempt: Attempt) -> Answer:
        """Consume key and nonce and write the inert registration, all in one transaction, then verify."""
        inserts = self.effect_rows(attempt)
        answer = self.transact(attempt, inserts)
        return self.verify(attempt, inserts[-1].row, answer.durable) if isinstance(answer, Committed) else answer

    def transact(self, attempt: Attempt, inserts: Sequence[Insert]) -> Answer | Committed:
        """Run the one transaction; an answer if it did not commit."""
        try:
            outcome = self.store.consume(inserts)
        except RolledBackError as error:
            return self.refuse(attempt, Refusal(Reason.COMMIT_FAILED, detail=str(error)))
        except CommitUncertainError as error:
            return uncertain(error)
        return outcome if isinstance(outcome, Committed) else self.refuse(attempt, self.lost_race(attempt))

    def lost_race(self, attempt: Attempt) -> Refusal:
        """S4: another request was first and committed; the store shows which, and on which axis (traps R9, R10)."""
        submission, keys = _submission(attempt), _keys(attempt)
        sight = self.look(keys.logical_request_key, submission.authorization_nonce)
        spent = sight.consume is not None and sight.consume["logical_request_key"] != keys.logical_request_key
        if spent:
            return Refusal(Reason.REPLAY_NONCE_CONSUMED)
        if not self.was_beaten(attempt, sight):
            return Refusal(Reason.COMMIT_FAILED, detail="a conflict rolled back, and no winner is to be seen")
        return Refusal(Reason.ATTEMPT_COLLISION, {"decision": decision_of(sight)})

    def was_beaten(self, attempt: Attempt, sight: Sight) -> bool:
        """Whether a read after the conflict shows the winner's effect."""
        effect = sight.compensation if attempt.method is Operation.COMPENSATE else sight.registration
        return effect is not None

    def verify(self, attempt: Attempt, written: Row, durable: Row | None) -> Answer:
        """P4: the durable row must be the one that was written; a rejection is recorded and removes nothing (S3)."""
        verification = None
        try:
            if not self.accepts(written, durable):
                verification = self.rejection(attempt, written)
                self.store.append([Insert("verification", verification)])
        except StoreError as error:
            return uncertain(error)
        return _decided(replace(attempt.sight, registration=written, verification=verification))

    def accepts(self, written: Row, durable: Row | None) -> bool:
        """Whether the durable row is the one that was written. It is asked after the commit, and takes nothing back."""
        return durable == written

    def rejection(self, attempt: Attempt, written: Row) -> Row:
        """The row that flags a committed registration as failed."""
        return {
            "decision_id": written["decision_id"],
            "outcome": "failed",
            "recorded_at": format_instant(attempt.now),
        }

    # Compensation

    def guard_failed_registration(self, attempt: Attempt) -> Refusal | None:
        """Only a registration that failed verification can be compensated."""
        return Refusal(Reason.NOTHING_TO_COMPENSATE) if attempt.sight.verification is None else None

    def prior_compensation(self, attempt: Attempt) -> Accepted | None:
        """The exact retry of a compensation gets the durable decision back."""
        return self.retold(attempt, attempt.sight.compensation)

    def guard_compensated(self, attempt: Attempt) -> Refusal | None:
        """One compensation for each failed registration."""
        if attempt.sight.compensation is None:
            return None
        spent = attempt.sight.consume is not None
        return Refusal(Reason.REPLAY_NONCE_CONSUMED if spent else Reason.REPLAY_DUPLICATE)

    def consume_compensation(self, attempt: Attempt) -> Answer:
        """Consume the fresh nonce and write the compensation, in one transaction."""
        submission, registration = _submission(attempt), attempt.sight.registration
        assert registration is not None
        keys = _keys(attempt)
        compensation: Row = {
            "decision_id": registration["decision_id"],
            "logical_request_key": keys.logical_request_key,
            "authorization_nonce": submission.authorization_nonce,
            "attempt_id": submission.attempt_id,
            "recorded_at": format_instant(attempt.now),
        }
        consumed = self.consume_row(attempt, keys, Purpose.COMPENSATION)
        answer = self.transact(attempt, (Insert("nonce_consume", consumed), Insert("compensation", compensation)))
        return _decided(replace(attempt.sight, compensation=compensation)) if isinstance(answer, Committed) else answer


def _decided(sight: Sight) -> Accepted:
    return Accepted(Effect.NEW, {"decision": decision_of(sight), "replayed": False})


def _keys(attempt: Attempt) -> DerivedKeys:
    assert attempt.verdict.keys is not None, "an admitted request has its keys"
    return attempt.verdict.keys


def _submission(attempt: Attempt) -> Submission:
    assert attempt.verdict.submission is not None, "an admitted request could be read"
    return attempt.verdict.submission
