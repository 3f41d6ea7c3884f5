"""Parameters that a session sets, with values beside the usual ones: times to live, windows, horizons, tags."""

from __future__ import annotations

from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.suites.rs4a_replay.generate import WORKERS, Step
from holdfast.conformance.suites.rs4a_replay.requests import issue, principal, request
from holdfast.conformance.suites.rs4a_replay.runner import scripted
from holdfast.conformance.suites.spans import around

# The first digit of a fraction counts tenths of a second.
_TENTHS = (-800_000, -300_000, 300_000, 800_000)


def _dated(what: str, key: int, age: float, **more: Any) -> Step:
    """A submission that is so many seconds old; the validator is asked as well."""
    return Step(what, key, key % WORKERS, how="dated", seconds=age, **more)


@clause("RS4A-TTL-1", "RS4A-TTL-5", whole=True, written=True)
def test_a_request_is_as_old_as_its_time_says_for_every_time_to_live(bench: Bench) -> None:
    """The validator and the registrar agree with the configured numbers, the least ones too."""
    dice = bench.dice()
    values = {name: int(str(bench.contract.parameters[name].value)) for name in ("ttl_seconds", "clock_skew_seconds")}
    terms = [values, dict.fromkeys(values, 1), *({**values, name: 0} for name in values)]
    terms.append({name: dice.randrange(2, 100_000) for name in values})
    for named in terms:
        ends = (-named["clock_skew_seconds"] * 1_000_000, named["ttl_seconds"] * 1_000_000)
        ages = [*around(*ends), *(end + tenths for end in ends for tenths in _TENTHS)]
        steps = [_dated("register", key, age / 1e6) for key, age in enumerate(ages)]
        scripted(bench, *steps[: -2 * len(_TENTHS)], Step("clock", seconds=0.1), *steps[-2 * len(_TENTHS) :], **named)


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


@clause("RS4A-TTL-3", "RS4A-TTL-4", whole=True, written=True)
def test_a_key_has_its_whole_horizon_however_long_it_is(bench: Bench) -> None:
    """None at all, a day, a month, a century, and where the counters of languages come round."""
    for horizon in (0, 86_400, 2_147_484, 2_592_000, 4_294_968, 2**31, 2**32 + 1):
        spans = (*((1, horizon - 2) if horizon else ()), 2, 1)
        kept = (each for span in spans for each in (Step("clock", seconds=span), Step("maintain")))
        scripted(bench, Step("register"), *kept, horizon_seconds=horizon)


@clause("RS4A-S3-3", "RS4A-S3-2", provocations=("fail_verify",), whole=True, written=True)
def test_what_failed_can_be_compensated_however_long_ago(bench: Bench) -> None:
    """A day, a month, a quarter, a year, a century."""
    for key, days in enumerate((1, 31, 91, 366, 36_525)):
        later, undone = Step("clock", seconds=days * 86_400), Step("compensate", key)
        scripted(bench, Step("fail", key), later, undone, undone)


@clause("RS4A-RP-04", whole=True, written=True)
def test_a_nonce_has_the_longest_window_that_is_configured_and_no_longer(bench: Bench) -> None:
    """From none to a week: what is allowed, and a microsecond more."""
    for longest in (0, 1, 60, 3599, 604_800):
        scripted(bench, Step("issue"), Step("issue", how="for too long"), nonce_window_seconds=longest)


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


def _due(bench: Bench, method: str, got: Answer, due: str, age: float) -> None:
    bench.must_be(got, due, f"{method} of a request {age} seconds old")


# Parameters with values beside the usual one, in every operation that they govern


_TAGS = ("domain_tag_logical", "domain_tag_replay")
_HORIZON_S = 60


@clause("RS4A-ID-12", "RS4A-ID-2", whole=True, written=True)
def test_every_key_has_the_configured_domain_tags(bench: Bench) -> None:
    """Wherever a key is told, stored or asked for; a key under the usual tag is another one."""
    for changed in (_TAGS[:1], _TAGS[1:], _TAGS):
        tags = {name: f"{bench.contract.parameters[name].value}2" for name in changed}
        asked = (Step("resolve"), Step("resolve", how="under the usual tags"))
        over = (Step("clock", seconds=_HORIZON_S + 1), Step("maintain"), Step("retry"))
        steps = (_dated("register", 0, 0), Step("restart"), Step("register"), *asked, *over)
        scripted(bench, *steps, horizon_seconds=_HORIZON_S, **tags)


# Pairs of time to live and clock skew.
_TERMS = ((1, 0), (7, 2), (86_400, 3_600))


@clause("RS4A-TTL-1", provocations=("fail_verify",), whole=True, written=True)
def test_a_compensation_is_as_old_as_its_time_says_for_every_time_to_live(bench: Bench) -> None:
    """At both bounds and a microsecond beyond; first, and when the compensation is told again."""
    for ttl, skew in _TERMS:
        ages = (ttl + 0.000001, -skew - 0.000001, ttl)
        steps = [Step("fail"), Step("clock", seconds=0.5), *(_dated("compensate", 0, age) for age in ages)]
        steps += [_dated("retry", 0, age, number=1) for age in (*ages, -skew)]
        scripted(bench, *steps, ttl_seconds=ttl, clock_skew_seconds=skew)
