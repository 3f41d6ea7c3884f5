"""Parameters that a session sets, with values beside the usual ones: times to live, windows, horizons, tags."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import format_instant, parse_instant
from holdfast.conformance.suites.rs4a_replay.generate import Step
from holdfast.conformance.suites.rs4a_replay.requests import issue, issuing, principal, request
from holdfast.conformance.suites.rs4a_replay.runner import scripted
from holdfast.conformance.suites.spans import around
from holdfast.vectors.derive import derive

_SECOND = 1_000_000
_TENTHS = (-8, -3, 3, 8)


@clause("RS4A-TTL-1", "RS4A-TTL-5")
def test_a_request_is_as_old_as_its_time_says_for_every_time_to_live(bench: Bench) -> None:
    """The validator and the registrar agree with the configured numbers, the least ones too."""
    dice = bench.dice()
    values = {name: int(str(bench.contract.parameters[name].value)) for name in ("ttl_seconds", "clock_skew_seconds")}
    terms = [values, dict.fromkeys(values, 1), *({**values, name: 0} for name in values)]
    terms.append({name: dice.randrange(2, 100_000) for name in values})
    for named in terms:
        with bench.session(config={name: str(number) for name, number in named.items()}) as session:
            ttl, skew = named["ttl_seconds"] * _SECOND, named["clock_skew_seconds"] * _SECOND
            for number, age in enumerate(around(-skew, ttl)):
                _submit(bench, session, f"at-{number}", age, within=-skew <= age <= ttl)
            # The first digit of a fraction counts tenths of a second.
            session.clock("+0.1s")
            for number, age in enumerate(
                bound + tenths * _SECOND // 10 for bound in (-skew, ttl) for tenths in _TENTHS
            ):
                _submit(bench, session, f"tenths-{number}", age, within=-skew <= age <= ttl)


@clause("RS4A-TTL-1")
def test_a_request_that_was_validated_grows_old_like_any_other(bench: Bench) -> None:
    """Nothing is kept of a validation: what is asked for again, or registered then, is looked at anew."""
    ttl = int(str(bench.contract.parameters["ttl_seconds"].value))
    with bench.session() as session:
        asked = [request(session, f"kept-{number}", nonce=issue(bench, session)) for number in range(3)]
        for args in asked:
            _due(bench, "validate", session.call("validate", args), "accepted prior", 0)
        session.clock(f"+{ttl}s")
        _due(bench, "register", session.call("register", asked[0]), "accepted new", ttl)
        session.clock("+1s")
        for args in asked[1:]:
            for method in ("register", "validate"):
                _due(bench, method, session.call(method, args), "refused REQUEST_STALE", ttl + 1)


@clause("RS4A-TTL-3", "RS4A-TTL-4")
def test_a_key_has_its_whole_horizon_however_long_it_is(bench: Bench) -> None:
    """None at all, a day, a month, a century, and where the counters of languages come round."""
    for horizon in (0, 86_400, 2_147_484, 2_592_000, 4_294_968, 2**31, 2**32 + 1):
        with bench.session(config={"horizon_seconds": str(horizon)}) as session:
            args = request(session, "horizon", nonce=issue(bench, session))
            _due(bench, "register", session.call("register", args), "accepted new", 0)
            within = ((1, "prior"), (horizon - 2, "prior")) if horizon else ()
            for moved, effect in (*within, (2, "new"), (1, "prior")):
                session.clock(f"+{moved}s")
                got = session.call("maintain").words
                if got != f"accepted {effect}":
                    what = f"maintain with a horizon of {horizon} s, {moved} s later"
                    bench.fail("state_leak", what, expected=f"accepted {effect}", received=got)


@clause("RS4A-S3-3", "RS4A-S3-2", provocations=("fail_verify",), whole=True, written=True)
def test_what_failed_can_be_compensated_however_long_ago(bench: Bench) -> None:
    """A day, a month, a quarter, a year, a century."""
    for key, days in enumerate((1, 31, 91, 366, 36_525)):
        later, undone = Step("clock", seconds=days * 86_400), Step("compensate", key)
        scripted(bench, Step("fail", key), later, undone, undone)


@clause("RS4A-RP-04")
def test_a_nonce_has_the_longest_window_that_is_configured_and_no_longer(bench: Bench) -> None:
    """From none to a week: what is allowed, and a microsecond more."""
    for longest in (0, 1, 60, 3599, 604_800):
        with bench.session(config={"nonce_window_seconds": str(longest)}) as session:
            for span, due in ((f"{longest}", "accepted new"), (f"{longest}.000001", "refused REQUEST_MALFORMED")):
                answer = session.call("issue_nonce", issuing(session, span))
                bench.must_be(answer, due, f"a nonce for {span} s where {longest} s are allowed")


# A day that is a day, and one with a leap day in it or a microsecond more; the year 0000 has a leap day as well.
_DAYS = (
    ("0000-12-30T00:00:00Z", "0000-12-31T00:00:00Z", ""),
    ("0001-01-01T00:00:00Z", "0001-01-02T00:00:00Z", ""),
    ("0000-12-31T00:00:00Z", "0001-01-01T00:00:00Z", ""),
    ("0000-12-31T00:00:00Z", "0001-01-01T00:00:00.000001Z", "longer"),
    ("0000-02-28T00:00:00Z", "0000-03-01T00:00:00Z", "longer"),
    ("1969-12-31T12:00:00Z", "1970-01-01T12:00:00.000001Z", "longer"),
    ("1900-02-28T00:00:00Z", "1900-03-01T00:00:00Z", ""),
    ("2096-02-28T00:00:00Z", "2096-03-01T00:00:00Z", "longer"),
    ("2100-02-28T00:00:00Z", "2100-03-01T00:00:00Z", ""),
    ("2400-02-28T00:00:00Z", "2400-03-01T00:00:00Z", "longer"),
    ("9999-12-30T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z", ""),
)


@clause("RS4A-RP-04")
def test_the_window_of_a_nonce_is_as_long_as_its_ends_say_in_every_year(bench: Bench) -> None:
    """Across the ends of years and leap days, the year 0000 too. Whether one that is over is issued is open."""
    past: list[str] = []
    with bench.session(config={"nonce_window_seconds": "86400"}) as session:
        for opens, closes, longer in _DAYS:
            args = {"binding": {"principal": principal(session)}, "window": {"not_before": opens, "not_after": closes}}
            got = session.call("issue_nonce", args).words
            what = f"a nonce from {opens} to {closes} where a day is allowed"
            if longer:
                bench.must_be(got, "refused REQUEST_MALFORMED", what)
            elif closes >= session.now:
                bench.must_be(got, "accepted new", what)
            else:
                past.append(got)
    if "accepted new" in past:
        bench.must_be(" ".join(sorted(set(past))), "accepted new", "nonces for days long past, where one is issued")


def _submit(bench: Bench, session: SuiteSession, label: str, age: int, *, within: bool) -> None:
    at = format_instant(parse_instant(session.now) - timedelta(microseconds=age))
    at = f"{at[:-1].rstrip('0')}Z" if "." in at else at
    args = request(session, label, nonce=issue(bench, session), issued_at=at)
    for method, effect in (("validate", "prior"), ("register", "new")):
        due = f"accepted {effect}" if within else "refused REQUEST_STALE"
        _due(bench, method, session.call(method, args), due, age / _SECOND)


def _due(bench: Bench, method: str, got: Answer, due: str, age: float) -> None:
    bench.must_be(got, due, f"{method} of a request {age} seconds old")


# Parameters with values beside the usual one, in every operation that they govern


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
            bench.must_be(made, "accepted new", "a registration")
            _same(bench, "register", made.value["decision"], due)
            session.restart()
            again = request(session, "tagged", nonce=issue(bench, session))
            bench.must_be(session.call("register", again), "refused REPLAY_DUPLICATE", "a second one")
            _resolved(bench, session, due["logical_request_key"], "COMMITTED")
            if due["logical_request_key"] != usual["logical_request_key"]:
                _resolved(bench, session, usual["logical_request_key"], "NOT_COMMITTED")
            session.clock(f"+{_HORIZON_S + 1}s")
            bench.must_be(session.call("maintain"), "accepted new", "retention")
            bench.must_be(session.call("register", args), "accepted prior", "an exact retry")
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
    bench.same(got, due, "fail_open", f"keys of {what} under configured tags")


def _resolved(bench: Bench, session: SuiteSession, key: str, due: str) -> None:
    answer = session.call("resolve_status", {"logical_request_key": key})
    got = (answer.value or {}).get("status", answer.words)
    bench.same(got, due, "fail_open", f"the status of {key}")


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
            bench.must_be(session.call("register", failed), "accepted new", "a registration that fails")
            nonce, effect = issue(bench, session), "new"
            session.clock("+0.5s")
            for age in (ttl, -skew):
                beyond = age + (0.000001 if age > 0 else -0.000001)
                for seconds, due in ((beyond, "refused REQUEST_STALE"), (age, f"accepted {effect}")):
                    args = request(session, "failed", nonce=nonce, age_s=seconds)
                    what = f"a compensation {seconds} s old where {ttl} s are allowed, and {skew} s ahead"
                    bench.must_be(session.call("compensate", args), due, what)
                effect = "prior"
