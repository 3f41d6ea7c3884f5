"""The pure validator: shape, artifact and freshness. It owns no replay state and reads no clock (source section 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any

from holdfast.reference_impl.instants import InstantError, parse_any_year
from holdfast.reference_impl.rs4a_replay import keys
from holdfast.reference_impl.rs4a_replay.keys import TargetError
from holdfast.reference_impl.rs4a_replay.settings import Settings
from holdfast.reference_impl.rs4a_replay.terms import CONTRACT, DerivedKeys, Reason, Submission
from holdfast.specs import kept_terms
from holdfast.specs.schema import explain


class MalformedError(ValueError):
    """Arguments do not fit the method's schema, or cannot be brought to their normal form."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the validator says: the first reason that applies, or None, and the submission where it could be read."""

    reason: Enum | None = None
    submission: Submission | None = None
    keys: DerivedKeys | None = None
    detail: str = ""

    def text(self) -> str:
        """The verdict as one line of text; equal verdicts have equal text."""
        return f"{'VALID' if self.reason is None else self.reason.value} {self.keys} {self.detail}"


class Validator:
    """Judges submissions. Equal input gives an equal verdict; nothing is kept between two calls."""

    # Every method that takes a submission has this schema.
    _schema = kept_terms(CONTRACT).methods["register"].args

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def judge(self, args: Any, *, now: datetime) -> Verdict:
        """Judge the arguments of `register` or `compensate` at the instant `now`."""
        verdict = self.read(args)
        if verdict.submission is None:
            return verdict
        if self.artifacts_disagree(verdict.submission):
            return replace(verdict, reason=Reason.ARTIFACT_MISMATCH)
        if self.is_stale(verdict.submission, now=now) or self.is_from_the_future(verdict.submission, now=now):
            return replace(verdict, reason=Reason.REQUEST_STALE)
        return verdict

    def read(self, args: Any) -> Verdict:
        """The verdict on the shape alone."""
        try:
            submission = self.submission_of(args)
        except MalformedError as error:
            return Verdict(Reason.REQUEST_MALFORMED, detail=str(error))
        return Verdict(submission=submission, keys=keys.derive(self._settings.keys, submission))

    def artifacts_disagree(self, submission: Submission) -> bool:
        """Whether the deployed or the claimed hash differs from the attested one (trap R6)."""
        attested = submission.attested_artifact_hash
        return submission.deployed_artifact_hash != attested or submission.claimed_artifact_hash not in (None, attested)

    def is_stale(self, submission: Submission, *, now: datetime) -> bool:
        """Whether the time to live is over; its last instant still counts (source section 4)."""
        return now - submission.issued_at > self._settings.ttl

    def is_from_the_future(self, submission: Submission, *, now: datetime) -> bool:
        """Whether it was issued further in the registrar's future than clocks may differ."""
        return submission.issued_at - now > self._settings.clock_skew

    # Reading

    def fits_schema(self, args: Any) -> bool:
        """Whether the arguments have the shape that the contract asks for; every identity is required there."""
        return self._schema.is_valid(args)

    def submission_of(self, args: Any) -> Submission:
        """Read a submission. Raises MalformedError with the place and the rule that was broken."""
        if not self.fits_schema(args):
            raise MalformedError(explain(self._schema, args))
        request = args["request"]
        claimed = request.get("artifact_hash")
        try:
            return Submission(
                protocol_version=request["protocol_version"],
                operation=request["operation"],
                canonical_target=keys.normal_target(request["canonical_target"]),
                owner_or_approval_binding=request["owner_or_approval_binding"],
                principal=request["principal"],
                run_id=request["run_id"],
                deployed_artifact_hash=keys.normal_hash(request["deployed_artifact_hash"]),
                claimed_artifact_hash=None if claimed is None else keys.normal_hash(claimed),
                attested_artifact_hash=keys.normal_hash(args["trusted_attested"]["artifact_hash"]),
                authorization_nonce=request["authorization_nonce"],
                attempt_id=request["attempt_id"],
                issued_at=self.instant(request["issued_at"]),
            )
        except (TargetError, InstantError) as error:
            raise MalformedError(str(error)) from error

    def instant(self, text: str) -> datetime:
        """When a request was issued, in any year of RFC 3339. Raises InstantError."""
        return parse_any_year(text)
