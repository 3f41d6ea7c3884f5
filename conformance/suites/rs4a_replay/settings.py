"""Parameters that a session sets, each with values beside the usual one, in every operation that they govern."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.rs4a_replay.requests import issue, must_be, request, shown
from holdfast.conformance.suites.session import SuiteSession
from holdfast.vectors.derive import derive

_TAGS = ("domain_tag_logical", "domain_tag_replay")
_KEYS = ("logical_request_key", "replay_key")
_HORIZON_S = 60


@clause("RS4A-ID-12", "RS4A-ID-2")
def test_every_key_has_the_configured_domain_tags(bench: Bench) -> None:
    """Wherever a key is told, stored or asked for; a key under the usual tag is another one."""
    for changed in (_TAGS[:1], _TAGS[1:], _TAGS):
        tags = {name: f"{bench.contract.parameters[name].value}2" for name in changed}
        with bench.session(config={**tags, "horizon_seconds": str(_HORIZON_S)}) as session:
            args = request(session, "tagged", nonce=issue(bench, session))
            usual, due = _keys(args, {}), _keys(args, tags)
            _same(bench, "derive_keys", session.observe("derive_keys", args), due)
            _same(bench, "validate", session.accepted("validate", args), due)
            made = session.call("register", args)
            must_be(bench, "a registration", shown(made), "accepted new")
            _same(bench, "register", made.value["decision"], due)
            session.restart()
            again = request(session, "tagged", nonce=issue(bench, session))
            must_be(bench, "a second one", shown(session.call("register", again)), "refused REPLAY_DUPLICATE")
            _resolved(bench, session, due["logical_request_key"], "COMMITTED")
            if due["logical_request_key"] != usual["logical_request_key"]:
                _resolved(bench, session, usual["logical_request_key"], "NOT_COMMITTED")
            session.clock(f"+{_HORIZON_S + 1}s")
            must_be(bench, "retention", shown(session.call("maintain")), "accepted new")
            must_be(bench, "an exact retry", shown(session.call("register", args)), "accepted prior")
            state = session.observe("state")
            _same(bench, "the row of registration", next(iter(state["registration"]), None), due)
            refused = [row for row in session.observe("audit")["records"] if row["code"] == "REPLAY_DUPLICATE"]
            rows = [*state["nonce_consume"], *state["tombstone"], *refused]
            if len(rows) != len(_KEYS) + 1 or {row[_KEYS[0]] for row in rows} != {due[_KEYS[0]]}:
                expected = f"one row each with {due[_KEYS[0]]}"
                bench.fail("state_leak", "consumed nonce, tombstone and audit", expected=expected, received=repr(rows))


def _keys(args: Mapping[str, Any], tags: Mapping[str, str]) -> dict[str, str]:
    return {name: derive(f"rs4a.{name}", {**args, "tags": tags}) for name in _KEYS}


def _same(bench: Bench, what: str, found: Mapping[str, Any] | None, due: Mapping[str, str]) -> None:
    got = {name: (found or {}).get(name) for name in _KEYS}
    if got != due:
        bench.fail("fail_open", f"keys of {what} under configured tags", expected=repr(due), received=repr(got))


def _resolved(bench: Bench, session: SuiteSession, key: str, due: str) -> None:
    answer = session.call("resolve_status", {"logical_request_key": key})
    got = (answer.value or {}).get("status", shown(answer))
    if got != due:
        bench.fail("fail_open", f"the status of {key}", expected=due, received=got)


# Pairs of time to live and clock skew.
_TERMS = ((1, 0), (7, 2), (86_400, 3_600))


@clause("RS4A-TTL-1", provocations=("fail_verify",))
def test_a_compensation_is_as_old_as_its_time_says_for_every_time_to_live(bench: Bench) -> None:
    """At both bounds and a microsecond beyond; first, and when the compensation is told again."""
    for ttl, skew in _TERMS:
        config = {"ttl_seconds": str(ttl), "clock_skew_seconds": str(skew)}
        with bench.session(config=config) as session:
            session.provoke("fail_verify")
            failed = request(session, "failed", nonce=issue(bench, session))
            must_be(bench, "a registration that fails", shown(session.call("register", failed)), "accepted new")
            nonce, effect = issue(bench, session), "new"
            session.clock("+0.5s")
            for age in (ttl, -skew):
                beyond = age + (0.000001 if age > 0 else -0.000001)
                for seconds, due in ((beyond, "refused REQUEST_STALE"), (age, f"accepted {effect}")):
                    args = request(session, "failed", nonce=nonce, age_s=seconds)
                    what = f"a compensation {seconds} s old where {ttl} s are allowed, and {skew} s ahead"
                    must_be(bench, what, shown(session.call("compensate", args)), due)
                effect = "prior"
