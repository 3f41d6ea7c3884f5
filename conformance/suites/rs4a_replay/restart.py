"""A session that begins afresh, of which nothing is known and nothing can be computed; and texts of every length."""

from __future__ import annotations

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.rs4a_replay.requests import issue, must_be, request, shown
from holdfast.vectors.derive import derive

_NONCES = 3
# Letters of one to four bytes in UTF-8, the last of two units in UTF-16; the longest target and name (methods.yaml).
_WIDTHS, _TARGET, _NAME = ("x", "\u00e9", "\u4e2d", "\U0001f512"), 1024, 512


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
                status = session.accepted("resolve_status", {"logical_request_key": key})["status"]
                if status != "NOT_COMMITTED":
                    bench.fail("fail_open", "a key of another store", expected="NOT_COMMITTED", received=status)
            told = request(session, "afresh", nonce=issue(bench, session))
            got = shown(session.call("register", told))
            must_be(bench, f"a registration in store {number + 1}", got, "accepted new")


@clause("RS4A-ID-2", "RS4A-ID-1")
def test_every_text_is_as_long_as_the_contract_allows_and_no_longer(bench: Bench) -> None:
    """The contract counts characters, not bytes and not units of an encoding."""
    begin = "dot://acme/"
    texts = [("canonical_target", begin + letter * (_TARGET - len(begin))) for letter in _WIDTHS]
    texts += [(name, "x" * _NAME) for name in ("owner_or_approval_binding", "run_id", "attempt_id")]
    with bench.session() as session:
        for number, (name, text) in enumerate(texts):
            for more, due in (("x", "refused REQUEST_MALFORMED"), ("", "accepted new")):
                args = request(session, f"long-{number}", nonce=issue(bench, session))
                args["request"][name] = text + more
                got = shown(session.call("register", args))
                must_be(bench, f"{name} of {len(text + more)} characters, the last {text[-1]!r}", got, due)
