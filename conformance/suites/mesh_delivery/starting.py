"""mesh-delivery: the max age of any retention, computed in integers."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from holdfast.conformance.cases.values import base64url
from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.session import SuiteSession

_SHORT, _LONGEST, _OTHERS = 40, 10_000, 160
_LEAST_DAYS = 3
_BELOW, _ABOVE = "FEATURE_PARAM_BELOW_FLOOR", "OUTBOX_MAX_AGE_ABOVE_DEDUPE_WINDOW"


def _derived(days: int) -> int:
    return max(72, 24 * days - max(24, -(-24 * days // 10)))


def _asked(session: SuiteSession, days: int, **more: Any) -> Any:
    params = {"version": 2, "mode": "retention_scoped", "dedupe_retention_days": days, "request_fingerprint": True}
    handshake = json.dumps({"supported": {"client_message_id_dedupe": params}}).encode()
    return session.call("negotiate", {"handshake": base64url(handshake), **more})


@clause("MESH-4.9-A4", "MESH-4.9-A1", "MESH-4.9-A6")
def test_the_max_age_of_any_retention_is_computed_in_integers(bench: Bench) -> None:
    """Every retention up to forty days and others up to ten thousand, with an override on both sides of its bound."""
    dice = Random(bench.seed)  # noqa: S311 - nothing is kept secret with it
    others = dice.sample(range(_SHORT, _LONGEST + 1), round(_OTHERS * bench.thorough))
    with bench.session() as session:
        for days in (*range(_SHORT), *others):
            answer = _asked(session, days)
            if days < _LEAST_DAYS:
                _must_be_refused(bench, answer, _BELOW, f"a retention of {days} days")
                continue
            _must_be(bench, answer, _derived(days), f"a retention of {days} days")
            bound = 24 * days - 1
            _must_be(bench, _asked(session, days, override=bound), bound, f"an override at {days} days")
            past = _asked(session, days, override=bound + 1)
            _must_be_refused(bench, past, _ABOVE, f"an override of {bound + 1} at {days} days")


def _must_be(bench: Bench, answer: Any, hours: int, what: str) -> None:
    if answer.outcome != "accepted":
        bench.fail("over_refusal", f"{what} is refused with {answer.reason}", expected=f"{hours} hours")
    if answer.value["max_age_hours"] != hours:
        told = f"{what} has a max age of {answer.value['max_age_hours']} hours"
        bench.fail("wrong_reason", told, expected=f"{hours} hours")


def _must_be_refused(bench: Bench, answer: Any, reason: str, what: str) -> None:
    if answer.outcome == "accepted":
        bench.fail("fail_open", f"{what} is taken", expected=reason)
    if answer.reason != reason:
        bench.fail("wrong_reason", f"{what} is refused with {answer.reason}", expected=reason)
