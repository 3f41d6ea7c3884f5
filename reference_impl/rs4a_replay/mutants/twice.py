"""Bugs of rs4a-replay that show at a second flaw, at another member or status, or at a large number."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from holdfast.reference_impl.answers import Answer, Refused
from holdfast.reference_impl.instants import format_instant, parse_instant
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.admission import Attempt, Refusal
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.keys import Keys
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.service import Service
from holdfast.reference_impl.rs4a_replay.store import Row
from holdfast.reference_impl.rs4a_replay.terms import Reason

_BITS_32 = 2**32
_AUTHORITY = re.compile(r"^([^:/?#]+:)?//[^/?#]*")
_USER = re.compile("[^:/?#]+://([^/?#]*@)")


class AgeBeforeArtifact(Service):
    def validate(self, args: Any) -> Answer:
        answer = super().validate(args)
        if isinstance(answer, Refused) and answer.reason == Reason.ARTIFACT_MISMATCH.value:
            other = copy.deepcopy(args)
            other["request"].pop("artifact_hash", None)
            other["request"]["deployed_artifact_hash"] = other["trusted_attested"]["artifact_hash"]
            again = super().validate(other)
            return again if isinstance(again, Refused) else answer
        return answer


class ValidatorKnows(Service):
    def validate(self, args: Any) -> Answer:
        answer = super().validate(args)
        if isinstance(answer, Refused) and answer.reason == Reason.REQUEST_STALE.value:
            stale = self.register(copy.deepcopy(args))
            return stale if isinstance(stale, Refused) and stale.reason == answer.reason else answer
        return answer


class EarlyForEver(Service):
    def validate(self, args: Any) -> Answer:
        early, name = self.__dict__.setdefault("_early", {}), json.dumps(args, sort_keys=True)
        answer = early.get(name) or super().validate(args)
        if isinstance(answer, Refused) and answer.reason == Reason.REQUEST_STALE.value:
            early[name] = answer
        return answer


class OwnerForPrincipal(Registrar):
    def guard_nonce_binding(self, attempt: Attempt) -> Refusal | None:
        refusal, issue, verdict = super().guard_nonce_binding(attempt), attempt.sight.issue, attempt.verdict
        if refusal is None or issue is None or verdict.submission is None:
            return refusal
        bound = json.loads(str(issue["binding"]))
        if bound.get("principal") != verdict.submission.owner_or_approval_binding:
            return refusal
        loose = {**issue, "binding": json.dumps({**bound, "principal": verdict.submission.principal})}
        return super().guard_nonce_binding(replace(attempt, sight=replace(attempt.sight, issue=loose)))


class SchemeBeforeAuthority(Keys):
    def normal_target(self, target: str) -> str:
        normal, (scheme, colon, rest) = super().normal_target(target), target.partition(":")
        if colon and not rest.startswith("//") and normal.startswith(f"{scheme.lower()}:"):
            return scheme + normal[len(scheme) :]
        return normal


class HorizonIn32Bits(Custody):
    def due_tombstones(self, *, now: datetime) -> Sequence[Row]:
        horizon = self._settings.horizon
        if horizon is None:
            return super().due_tombstones(now=now)
        milliseconds = int(horizon.total_seconds() * 1000) % _BITS_32
        signed = milliseconds - _BITS_32 if milliseconds >= _BITS_32 // 2 else milliseconds
        whole, self._settings = self._settings, replace(self._settings, horizon=timedelta(milliseconds=signed))
        try:
            return super().due_tombstones(now=now)
        finally:
            self._settings = whole


class StateForStatus(Custody):
    def status_of(self, attempt: Attempt, key: str) -> dict[str, Any]:
        found = super().status_of(attempt, key)
        self.__dict__["_state"] = found.get("decision", {}).get("state")
        return found

    def record(self, attempt: Attempt, code: str) -> Row:
        return super().record(attempt, (code == "COMMITTED" and self.__dict__.get("_state")) or code)


class UserKeepsItsCase(Keys):
    def normal_target(self, target: str) -> str:
        normal, user = super().normal_target(target), _USER.match(target)
        return normal.replace(user[1].lower(), user[1], 1) if user else normal


class AuthorityWithItsEncodings(Keys):
    def normal_target(self, target: str) -> str:
        return _AUTHORITY.sub(lambda found: found[0].lower(), super().normal_target(target))


class FourMembersCompared(Registrar):
    def guard_nonce_binding(self, attempt: Attempt) -> Refusal | None:
        if attempt.sight.issue is None:
            return None
        first = dict(list(json.loads(str(attempt.sight.issue["binding"])).items())[:4])
        issue = {**attempt.sight.issue, "binding": json.dumps(first)}
        return super().guard_nonce_binding(replace(attempt, sight=replace(attempt.sight, issue=issue)))


class IssuedLaterIsUnbound(Registrar):
    def guard_nonce_issued(self, attempt: Attempt) -> Refusal | None:
        issue = attempt.sight.issue
        if issue is not None and datetime.fromisoformat(str(issue["issued_at"])) > attempt.now:
            return Refusal(Reason.NONCE_UNBOUND, detail="not issued yet")
        return super().guard_nonce_issued(attempt)


class AgeWithoutSign(Custody):
    def due_tombstones(self, *, now: datetime) -> Sequence[Row]:
        horizon = self._settings.horizon
        ahead = [
            {name: row[name] for name in ("logical_request_key", "decision_id")} | {"recorded_at": format_instant(now)}
            for row in self.store.untombstoned()
            if horizon is not None and parse_instant(str(row["committed_at"])) - horizon >= now
        ]
        return [*super().due_tombstones(now=now), *ahead]


BUGS: Mapping[str, Change] = {
    "user-keeps-its-case": part(keys=UserKeepsItsCase),
    "authority-with-its-encodings": part(keys=AuthorityWithItsEncodings),
    "four-members-compared": part(registrar=FourMembersCompared),
    "issued-later-is-unbound": part(registrar=IssuedLaterIsUnbound),
    "horizon-without-sign": part(custody=AgeWithoutSign),
    "validator-looks-at-age-first": part(service=AgeBeforeArtifact),
    "validator-knows-what-is-consumed": part(service=ValidatorKnows),
    "early-once-early-for-ever": part(service=EarlyForEver),
    "bound-to-the-owner": part(registrar=OwnerForPrincipal),
    "scheme-only-before-an-authority": part(keys=SchemeBeforeAuthority),
    "horizon-in-32-bits": part(custody=HorizonIn32Bits),
    "state-recorded-as-status": part(custody=StateForStatus),
}
