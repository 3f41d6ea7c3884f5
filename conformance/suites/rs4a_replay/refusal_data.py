"""What the `detail` of a refusal says of a nonce: not what it is bound to."""

from __future__ import annotations

import re

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.rs4a_replay.nonces import BOUND_ELSEWHERE, bound
from holdfast.conformance.suites.rs4a_replay.requests import issue, must_be, request, shown

# Words with a digit are names, numbers and times, which may differ.
_NAMES = re.compile(r"\S*\d\S*")


@clause("RS4A-ID-7", "RS4A-RP-03b")
def test_a_refusal_does_not_say_in_what_a_nonce_is_bound_elsewhere(bench: Bench) -> None:
    """Another principal, target, owner or artifact: `detail` is worded alike."""
    said: dict[str, set[str]] = {}
    with bench.session() as session:
        args = request(session, "lamp", nonce="")
        for number in range(2 * len(BOUND_ELSEWHERE)):
            member = BOUND_ELSEWHERE[number % len(BOUND_ELSEWHERE)]
            nonce = issue(bench, session, binding=bound(session, args, "elsewhere", number))
            args["request"]["authorization_nonce"] = nonce
            answer = session.call("register", args)
            must_be(bench, f"a nonce that is bound to another {member}", shown(answer), "refused NONCE_UNBOUND")
            said.setdefault(member, set()).add(_NAMES.sub("#", (answer.detail or "").replace(nonce, "#")))
        args["request"]["authorization_nonce"] = issue(bench, session)
        must_be(bench, "a nonce that is bound to this principal", shown(session.call("register", args)), "accepted new")
    # What is worded in turns says nothing.
    worded = {member: next(iter(texts)) for member, texts in said.items() if len(texts) == 1}
    if len(worded) == len(said) and len(set(worded.values())) > 1:
        bench.fail(
            "wrong_reason",
            "`detail` says in what a nonce is bound elsewhere",
            expected="the same words for every member",
            received=repr(worded),
        )
