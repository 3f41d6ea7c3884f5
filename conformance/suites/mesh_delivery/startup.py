"""mesh-delivery: the start of a daemon: the max age of any retention, and a handshake that comes over a WebSocket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import base64url

_SHORT, _LONGEST, _OTHERS = 40, 10_000, 160
_LEAST_DAYS = 3
_BELOW, _ABOVE = "FEATURE_PARAM_BELOW_FLOOR", "OUTBOX_MAX_AGE_ABOVE_DEDUPE_WINDOW"
_DEDUPE, _OTHER = "client_message_id_dedupe", "key_epoch"
_PARAMS = {"version": 2, "mode": "retention_scoped", "dedupe_retention_days": 30, "request_fingerprint": True}
# What may be wrong with the parameters: nothing; a feature that is missing in effect; one that is invalid; one that is
# below the floor; and what is wrong together.
_WRONG: tuple[dict[str, Any] | None, ...] = (
    {},
    None,
    {"version": 1},
    {"version": 3},
    {"mode": "forever"},
    {"mode": "permanent"},
    {"request_fingerprint": False},
    {"dedupe_retention_days": 2},
    {"dedupe_retention_days": "30"},
    {"dedupe_retention_days": 2, "request_fingerprint": False},
    {"dedupe_retention_days": 1, "version": 1},
)
_EPOCHS: tuple[dict[str, Any] | None, ...] = (
    {"version": 1, "max_concurrent_epochs": 2},
    None,
    {"version": 1, "max_concurrent_epochs": 0},
)
_UNREADABLE = (b"{", b"[]", b'{"supported": []}')
# Each of the two frames of such a handshake is longer than 64 KiB.
_LONG = "x" * 140_000
_CODES = (4010, 4011, 4012)


def _asked(session: SuiteSession, days: int, **more: Any) -> Any:
    handshake = json.dumps({"supported": {_DEDUPE: {**_PARAMS, "dedupe_retention_days": days}}}).encode()
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
                bench.must_be(answer, f"refused {_BELOW}", f"a retention of {days} days")
                continue
            derived = max(72, 24 * days - max(24, -(-24 * days // 10)))
            _must_be(bench, answer, derived, f"a retention of {days} days")
            bound = 24 * days - 1
            _must_be(bench, _asked(session, days, override=bound), bound, f"an override at {days} days")
            past = _asked(session, days, override=bound + 1)
            bench.must_be(past, f"refused {_ABOVE}", f"an override of {bound + 1} at {days} days")


def _must_be(bench: Bench, answer: Any, hours: int, what: str) -> None:
    told = bench.must_be(answer, "accepted", what)["max_age_hours"]
    if told != hours:
        # A longer one lets a retry reach a broker that has forgotten the id.
        verdict = "fail_open" if told > hours else "wrong_reason"
        bench.weigh(verdict, f"{what} has a max age of {told} hours", expected=f"{hours} hours")


@clause("MESH-15.5-X6", "MESH-15.5-X1", "MESH-15.5-X2", "MESH-15.5-X3", "MESH-15.5-X5", "MESH-15.5-X4")
def test_a_handshake_over_a_websocket_is_decided_as_any_other_and_told_by_the_code_of_the_close(bench: Bench) -> None:
    """Parameters that are right, invalid, below the floor, of two features in both orders, long ones, and none."""
    if "websocket" in bench.not_claimed:
        bench.fail("unsupported", "the test needs what the adapter does not claim: websocket")
    with bench.session(config={"broker": "{peer}"}) as session:
        for handshake in _handshakes():
            asked = {"required": [_OTHER]}
            told = session.call("negotiate", {**asked, "handshake": base64url(handshake)})
            code = (told.data or {}).get("close_code")
            session.answers([{"handshake": base64url(handshake), **({"closes": True} if code in _CODES else {})}])
            behind = len(session.received())
            answer = session.call("negotiate", {**asked, "handshake": ""})
            if _whole(answer) != _whole(told):
                verdict = "fail_open" if answer.outcome == "accepted" else "wrong_reason"
                expected, received = str(_whole(told)), str(_whole(answer))
                bench.weigh(verdict, "another answer over a WebSocket", expected=expected, received=received)
            closed = [each.get("close_code") for each in session.received(behind)]
            if len(closed) != 1 or (closed[0] != code if code in _CODES else closed[0] in _CODES):
                due = f"one connection, closed with {code or 'none of those codes'}"
                bench.report(
                    "wrong_reason", f"{handshake.decode()} over a WebSocket", expected=due, received=f"{closed}"
                )
            if code in _CODES and session.observe("daemon_log")["records"][-1]["payload"] != base64url(handshake):
                bench.report("wrong_reason", "the handshake of a WebSocket in the log", expected=handshake.decode())


def _whole(answer: Answer) -> tuple[Any, ...]:
    return answer.outcome, answer.reason, answer.value, answer.data


def _handshakes() -> Iterator[bytes]:
    yield from _UNREADABLE
    for days in (30, 2):
        long = {_DEDUPE: {**_PARAMS, "dedupe_retention_days": days}, _OTHER: _EPOCHS[0]}
        yield json.dumps({"supported": long, "of": _LONG}).encode()
    for wrong, epochs in product(_WRONG, _EPOCHS):
        features = {
            **({} if wrong is None else {_DEDUPE: {**_PARAMS, **wrong}}),
            **({} if epochs is None else {_OTHER: epochs}),
        }
        for supported in (features, dict(reversed(features.items()))):
            yield json.dumps({"supported": supported, "of": "é\u2028"}, ensure_ascii=False).encode()
