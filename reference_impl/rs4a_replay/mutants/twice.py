"""Bugs of rs4a-replay that show at a second flaw, at another member or status, or at a large number."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
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

_AUTHORITY = re.compile(r"^([^:/?#]+:)?//[^/?#]*")
_USER = re.compile("[^:/?#]+://([^/?#]*@)")


class ValidatorKnows(Service):
    def validate(self, args: Any) -> Answer:
        answer = super().validate(args)
        if isinstance(answer, Refused) and answer.reason == Reason.REQUEST_STALE.value:
            stale = self.register(copy.deepcopy(args))
            return stale if isinstance(stale, Refused) and stale.reason == answer.reason else answer
        return answer


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
    "validator-knows-what-is-consumed": part(service=ValidatorKnows),
}
