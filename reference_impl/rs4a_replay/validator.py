"""The pure validator: shape, artifact and freshness. It owns no replay state and reads no clock (source section 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any

from holdfast.reference_impl.rs4a_replay.keys import Keys
from holdfast.reference_impl.rs4a_replay.reading import MalformedError, Reader
from holdfast.reference_impl.rs4a_replay.settings import Settings
from holdfast.reference_impl.rs4a_replay.terms import DerivedKeys, Reason, Submission


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

    def __init__(self, settings: Settings, reader: Reader, keys: Keys) -> None:
        self._settings = settings
        self._reader = reader
        self._keys = keys

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
            submission = self._reader.read(args)
        except MalformedError as error:
            return Verdict(Reason.REQUEST_MALFORMED, detail=str(error))
        return Verdict(submission=submission, keys=self._keys.derive(submission))

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
