"""Registrations whose commit the server refuses, or whose connection is lost on the way to it."""

from __future__ import annotations

from holdfast.conformance.cases.values import shift
from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.rs4a_replay.ddl_changes import amended
from holdfast.conformance.suites.rs4a_replay.model_state import keys_of
from holdfast.conformance.suites.rs4a_replay.requests import (
    issue,
    must_be,
    principal,
    request,
    shown,
    tampered,
)

# Classes of errors: it may succeed another time, there is no room, the server ends the statement.
_STATES = ("40001", "53100", "57014")


@clause("RS4A-S1-1", "RS4A-S1-2")
def test_a_commit_that_the_server_refuses_leaves_nothing_and_can_be_sent_again(bench: Bench) -> None:
    """For every class of error that a commit can end with. It needs a database of the session on PostgreSQL."""
    with bench.session() as session:
        first = request(session, "first", nonce=issue(bench, session))
        must_be(bench, "a commit as usual", shown(session.call("register", first)), "accepted new")
        again = request(session, "first", nonce=issue(bench, session))
        must_be(bench, "its request again", shown(session.call("register", again)), "refused REPLAY_DUPLICATE")
        for state in _STATES:
            args = request(session, f"failing-{state}", nonce=issue(bench, session))
            if amended(bench, session, "failing", state) is None:
                return
            got = shown(session.call("register", args))
            if got.startswith("accepted"):
                bench.fail("fail_open", f"a commit that ended with {state}", expected="no acceptance", received=got)
            rows = session.observe("state")
            key = keys_of(args)["logical_request_key"]
            left = [name for name in ("registration", "nonce_consume") if key in str(rows[name])]
            if left:
                bench.fail(
                    "lost_durability", f"a commit that ended with {state}", expected="no row", received=f"{left}"
                )
            amended(bench, session, "working")
            if got not in ("refused COMMIT_FAILED", "indeterminate"):
                continue
            status = session.accepted("resolve_status", {"logical_request_key": key})["status"]
            must_be(bench, f"the status behind {state}", status, "NOT_COMMITTED")
            must_be(bench, f"the same again behind {state}", shown(session.call("register", args)), "accepted new")


# Longer than an answer may take.
_LATE_S = "2.2"


@clause("RS4A-S1-2", "RS4A-S1-1")
def test_a_commit_that_comes_too_late_is_not_told_as_failed(bench: Bench) -> None:
    """What was refused is not there afterwards. It needs a database of the session on PostgreSQL, as above."""
    with bench.session(workers=2) as session:
        args = request(session, "late", nonce=issue(bench, session))
        first = request(session, "first", nonce=issue(bench, session))
        must_be(bench, "a commit as usual", shown(session.call("register", first)), "accepted new")
        again = request(session, "first", nonce=issue(bench, session))
        must_be(bench, "its request again", shown(session.call("register", again, 1)), "refused REPLAY_DUPLICATE")
        before = {name: len(session.observe("state")[name]) for name in ("nonce_issue", "registration")}
        if amended(bench, session, "late", _LATE_S) is None:
            return
        window = {"not_before": session.now, "not_after": shift(session.now, "+60s")}
        issuing = session.start("issue_nonce", {"binding": {"principal": principal(session)}, "window": window})
        registering = session.start("register", args, 1)
        told = {"nonce_issue": session.finish(issuing), "registration": session.finish(registering)}
        # This waits for both.
        amended(bench, session, "working")
        state = session.observe("state")
        for name, answer in told.items():
            more = len(state[name]) - before[name]
            if more > (answer.outcome != "refused") or more < (answer.outcome == "accepted"):
                verdict = "state_leak" if more else "lost_durability"
                bench.fail(
                    verdict, f"{shown(answer)} of a late commit", expected="what is true", received=f"{more} rows"
                )
        key = {"logical_request_key": keys_of(args)["logical_request_key"]}
        status = session.accepted("resolve_status", key)["status"]
        due = "COMMITTED" if len(state["registration"]) > before["registration"] else "NOT_COMMITTED"
        must_be(bench, "the status behind it", status, due)


_POINTS = ("before_consume", "after_nonce_consume", "after_registration", "before_commit", "after_commit")


@clause("RS4A-S1-1", "RS4A-S1-2", provocations=("hold_at",))
def test_a_connection_that_is_lost_at_any_statement_leaves_all_or_nothing(bench: Bench) -> None:
    """Before each statement of the transaction and behind the last. What is told is true."""
    with bench.session() as session:
        for point in _POINTS:
            args = request(session, f"lost-{point}", nonce=issue(bench, session))
            key = keys_of(args)["logical_request_key"]
            session.provoke("hold_at", {"point": point, "fault": "lose_answer"})
            got = shown(session.call("register", args))
            told = {"accepted new": "COMMITTED", "refused COMMIT_FAILED": "NOT_COMMITTED", "indeterminate": ""}
            if got not in told:
                must_be(bench, f"a connection lost at {point}", got, "indeterminate")
            status = session.accepted("resolve_status", {"logical_request_key": key})["status"]
            if told[got] not in ("", status):
                bench.fail("lost_durability", f"told {got} at {point}", expected=told[got], received=status)
            rows = session.observe("state")
            stored = {name: key in str(rows[name]) for name in ("registration", "nonce_consume")}
            if set(stored.values()) != {status == "COMMITTED"}:
                bench.fail(
                    "lost_durability", f"{status} behind {point}", expected="both rows or none", received=str(stored)
                )
            again = "accepted prior" if status == "COMMITTED" else "accepted new"
            must_be(bench, f"the same again behind {point}", shown(session.call("register", args)), again)


@clause("RS4A-S1-1", "RS4A-RP-02", provocations=("hold_at",))
def test_a_failpoint_that_a_refused_call_does_not_reach_stops_no_later_one(bench: Bench) -> None:
    """What is malformed never comes to a transaction. The next registration does, and meets nothing there."""
    with bench.session() as session:
        for method in ("register", "compensate"):
            args = request(session, f"behind-{method}", nonce=issue(bench, session))
            malformed = tampered(session, request(session, "armed", nonce="never-issued-armed"), "without an attempt")
            session.provoke("hold_at", {"point": "before_commit", "fault": "abort"})
            got = shown(session.call(method, malformed))
            must_be(bench, f"{method} without an attempt", got, "refused REQUEST_MALFORMED")
            got = shown(session.call("register", args))
            must_be(bench, f"a registration behind a {method} that was malformed", got, "accepted new")
