"""A session that begins afresh: nothing of an earlier one is known, and nothing of it can be computed."""

from __future__ import annotations

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.rs4a_replay.requests import issue, request, shown
from holdfast.vectors.derive import derive

_NONCES = 3


@clause("RS4A-ID-8")
def test_registrars_that_are_asked_the_same_issue_different_nonces(bench: Bench) -> None:
    """The same calls at the same time, by processes that have just started: a nonce does not follow from them."""
    issued: list[str] = []
    for _ in range(2):
        with bench.session() as session:
            session.restart()
            issued += [issue(bench, session) for _ in range(_NONCES)]
    if len(set(issued)) < len(issued):
        bench.fail("fail_open", "a nonce was issued twice", expected=f"{len(issued)} nonces", received=f"{issued}")


@clause("RS4A-S2-1", "RS4A-S2-2")
def test_a_process_that_gets_another_store_knows_nothing_of_the_last_one(bench: Bench) -> None:
    """What it told of its first store, it does not tell of the second one: the request is new, or has a free nonce."""
    told = None
    for number in range(2):
        with bench.session() as session:
            if told is not None:
                again = shown(session.call("register", told))
                if again.startswith("accepted"):
                    bench.fail("fail_open", "a nonce of another store", expected="NONCE_UNBOUND", received=again)
                key = derive("rs4a.logical_request_key", told)
                status = session.call("resolve_status", {"logical_request_key": key}).value["status"]
                if status != "NOT_COMMITTED":
                    bench.fail("fail_open", "a key of another store", expected="NOT_COMMITTED", received=status)
            told = request(session, "afresh", nonce=issue(bench, session))
            got = shown(session.call("register", told))
            if got != "accepted new":
                bench.fail(
                    "over_refusal", f"a registration in store {number + 1}", expected="accepted new", received=got
                )
