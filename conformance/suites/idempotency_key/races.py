"""Several requests with one key at once (IK-RACE). A handler that is held comes before any race by numbers."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.suites.idempotency_key.client import DECLARED, ON_A_SERVER, Got, Service, service

# `--thorough 17` makes 200 rounds of it.
_ROUNDS, _AT_ONCE = 12, 16
# How long a request is asked for an answer while another is held.
_ASKED_MS = 3000
_LONG_MS = 4000
# How late a reply of the store comes: later than the next request is sent.
_DELAYS_MS = (20, 100)


def _while_held(s: Service, tag: str, got: Got, when: str, why: str) -> None:
    """A retry beside a request that is held before or behind its effect: 409, or no answer yet where it waits."""
    # An effect weighs more than a wrong answer.
    s.one_effect(tag, why, 1 if when == "after" else 0)
    if s.profile["in_progress"] == "refuse":
        s.refused(got, ("IN_PROGRESS",), why)
        if s.profile["retry_after"] and got.header("Retry-After") is None:
            s.wrong("wrong_reason", f"{why}: the refusal does not say when to try again")
    elif got.accepted:
        s.fail("fail_open", f"{why}: it was answered ({got}) before the first request was")


@clause("IK-RACE-1", provocations=("hold",))
def test_a_retry_while_the_first_is_processed_has_no_effect(bench: Bench) -> None:
    """The first is held before its effect, and behind it; the retry comes through each instance."""
    with service(bench, anywhere=True) as s:
        for number in s.instances[1:]:
            # It starts when it is looked at first, which may last as long as a lease.
            s.instance("look", number)
        for when in ("before", "after"):
            tag, key = s.tag(), s.key()
            s.hold(tag, when=when)
            s.begin("first", s.request(tag, key))
            waiting = s.profile["in_progress"] == "wait"
            for number in s.instances:
                if waiting:
                    s.send(f"retry-{number}", s.request(tag, key, instance=number))
                else:
                    got = s.submit(s.request(tag, key, instance=number, within_ms=_ASKED_MS))
                    _while_held(s, tag, got, when, f"held {when}")
            s.one_effect(tag, f"retries while the first is held {when} its effect", 1 if when == "after" else 0)
            s.release(tag)
            first = s.finish("first")
            if not first.accepted:
                s.fail("over_refusal", f"the first request got {first} behind its release", first)
            for number in s.instances if waiting else ():
                got = s.finish(f"retry-{number}")
                # It was held for longer than an answer may take.
                if not s.means(got, ("IN_PROGRESS",)):
                    s.retried(first, got, "a retry that waited")
            s.one_effect(tag, "retries while the first was held")
            s.retried(first, s.submit(s.request(tag, key)), "a retry behind it")
            s.one_effect(tag, "a retry behind a request that was held")


@clause("IK-RACE-2", "IK-RACE-4")
def test_any_number_of_requests_at_once_have_one_effect(bench: Bench) -> None:
    """Sixteen at once, through every instance, again and again."""
    with service(bench, anywhere=True) as s:
        numbers = s.instances
        for round_ in range(round(_ROUNDS * bench.thorough)):
            tag, key = s.tag(), s.key()
            found = s.burst([s.request(tag, key, instance=numbers[each % len(numbers)]) for each in range(_AT_ONCE)])
            s.one_effect(tag, f"{_AT_ONCE} requests at once, round {round_ + 1}")
            _one_result(s, found)
            for got in found:
                if not got.accepted:
                    # A wait may end with it as well.
                    s.refused(got, ("IN_PROGRESS", "DUPLICATE"), "a request that lost the race")


def _one_result(s: Service, found: Sequence[Got]) -> None:
    if len({got.body for got in found if got.accepted}) > 1 and s.profile["duplicate"] == "replay":
        s.wrong("wrong_reason", "one key has two results")


@clause("IK-RACE-2", provocations=("line",))
def test_requests_that_all_look_before_one_claims_have_one_effect(bench: Bench) -> None:
    """Each reply of the store comes late, so that no claim is made before all have looked."""
    with service(bench, ON_A_SERVER, anywhere=True) as s:
        numbers, reached = s.instances, 0
        for delay in _DELAYS_MS:
            tag, key = s.tag(), s.key()
            s.line("slow", delay)
            asked = [s.request(tag, key, instance=numbers[each % len(numbers)], within_ms=20_000) for each in range(4)]
            found = s.burst(asked)
            s.line("none")
            # All of them may have been refused, where the store was too slow for the service.
            s.at_most_one(tag, f"requests at once, {delay} ms for each reply", *found)
            reached += s.effects(tag)
            _one_result(s, found)
            s.behind_the_lease()
            why = "a retry behind requests at once with a slow store"
            s.at_most_one(tag, why, *found, s.settles(s.request(tag, key), ("DUPLICATE", "UNKNOWN"), why))
        if not reached:
            s.not_reached("no request had an effect while the store was slow")


@clause("IK-RACE-3", provocations=("hold",))
def test_a_lease_that_ends_while_the_handler_runs_admits_no_second_execution(bench: Bench) -> None:
    """The first is held beyond its lease."""
    with service(bench, anywhere=True) as s:
        tag, key = s.tag(), s.key()
        s.hold(tag, count=2, when="before")
        s.begin("first", s.request(tag, key))
        s.behind_the_lease()
        # Without a lease a key may still be taken for one that was left behind.
        s.pause(_LONG_MS if s.profile["lease_s"] is None else 0)
        came = s.send("second", s.request(tag, key, instance=s.instances[-1]))
        if came == "sink":
            s.release(tag)
            s.finish("first")
            s.finish("second")
            declared = s.profile["abandoned"] == "reexecute"
            if declared:
                s.fail("fail_open", f"a handler that outlives its lease runs twice: {DECLARED}")
            s.one_effect(tag, "a second request behind the lease of the first")
        second = s.finish("second")
        if second.accepted:
            s.fail("fail_open", f"a retry got {second} while the first was held")
        s.release(tag)
        first = s.finish("first")
        s.one_effect(tag, "a request that was held beyond its lease")
        third = s.settles(
            s.request(tag, key), ("UNKNOWN", "UNAVAILABLE", "DUPLICATE"), "a request that was held beyond its lease"
        )
        if third.accepted and first.accepted:
            s.same(first, third, "the late result")
        s.one_effect(tag, "a retry behind a request that was held beyond its lease")


@clause("IK-ONCE-5", provocations=("hold", "cut"))
def test_a_client_that_goes_away_does_not_undo_what_was_begun(bench: Bench) -> None:
    """The client closes its connection while the handler is held."""
    with service(bench, anywhere=True) as s:
        for when in ("before", "after"):
            tag, key = s.tag(), s.key()
            s.hold(tag, when=when)
            s.begin("first", s.request(tag, key))
            s.session.provoke("cut", {"name": "first"})
            # The service may notice it only a moment later.
            s.pause(300)
            if s.profile["in_progress"] == "refuse":
                got = s.submit(s.request(tag, key, within_ms=_ASKED_MS))
                _while_held(s, tag, got, when, "a retry of a client that went away")
            s.release(tag)
            s.finish("first")
            got = s.settles(s.request(tag, key), ("UNKNOWN", "DUPLICATE"), "a client that went away")
            s.one_effect(tag, f"a client that went away while its request was held {when} the effect")
            if got.accepted and got.effect == "new":
                s.fail("fail_open", "the retry was executed beside the request of a client that went away")
