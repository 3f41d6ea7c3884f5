"""Who may see what, and what a refusal leaves (IK-SCOPE, IK-ERR)."""

from __future__ import annotations

from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.suites.idempotency_key.client import ON_A_SERVER, Got, Service, service

_PROBLEM = "application/problem+json"
_OFTEN = 40


@clause("IK-SCOPE-1")
def test_another_principal_gets_neither_the_result_nor_a_hint(bench: Bench) -> None:
    """The same key and payload under another credential."""
    with service(bench) as s:
        s.must_promise("b" in s.principals and "principal" in s.profile["scope"], "a key has no principal")
        for body in (None, "101"):
            tag, key = s.tag(), s.key()
            s.retried(s.first(tag, key), s.submit(s.request(tag, key)), "a retry before another principal asks")
            more = {} if body is None else {"body": s.body(tag, body)}
            s.may_have(tag, 2)
            got = s.submit(s.request(tag, key, principal="b", **more))
            if got.accepted and got.effect == "prior":
                s.fail("fail_open", "another principal got the first one's answer")
            _learns_nothing(s, got, "is there")
            s.one_effect(tag, "the same key under two credentials", 2)
        tag, key = s.tag(), s.key()
        s.may_have(tag, 2)
        s.hold(tag)
        s.begin("first", s.request(tag, key))
        got = s.submit(s.request(tag, key, principal="b", within_ms=5000))
        s.release(tag)
        s.finish("first")
        _learns_nothing(s, got, "is in progress")
        s.one_effect(tag, "the same key under two credentials at once", 2)


def _learns_nothing(s: Service, got: Got, what: str) -> None:
    """Another principal's request is executed as if the key were new; a credential that never is shows nothing."""
    if got.accepted:
        return
    if got.silence is not None:
        s.fail("no_verdict", f"another principal got {got}", got)
    control = s.submit(s.request(s.tag(), s.key(), principal="b"))
    if not control.accepted:
        s.not_reached(f"a request of the credential b with a key of its own got {control}")
    s.fail("fail_open", f"another principal learns that the key {what}: {got}")


@clause("IK-SCOPE-1", "IK-ONCE-2")
def test_a_retry_with_another_credential_of_its_principal_is_a_retry(bench: Bench) -> None:
    """A token that was renewed between the request and its retry."""
    with service(bench) as s:
        s.must_promise("again" in s.principals, "no principal has a second credential")
        tag, key = s.tag(), s.key()
        first = s.first(tag, key)
        got = s.submit(s.request(tag, key, principal="again"))
        s.one_effect(tag, "a retry with another credential of its principal")
        s.retried(first, got, "a retry with another credential of its principal")


@clause("IK-SCOPE-2")
def test_a_refused_credential_consumes_no_key_and_replays_nothing(bench: Bench) -> None:
    """A known and a new key under a credential that is refused."""
    with service(bench) as s:
        s.must_promise("refused" in s.principals, "no credential is refused")
        tag, key = s.tag(), s.key()
        first = s.first(tag, key)
        for principal in ("refused", "none"):
            for asked in (
                s.request(tag, key, principal=principal),
                s.request(tag, key, s.body(tag, "7"), principal=principal),
            ):
                got = s.submit(asked)
                s.one_effect(tag, f"a known key, credential {principal}")
                s.refused(got, ("UNAUTHENTICATED",), f"a known key, credential {principal}")
                if first.body and first.body in got.body and s.names_effects:
                    s.fail("fail_open", "a stranger got the first answer")
            new, other = s.tag(), s.key()
            got = s.submit(s.request(new, other, principal=principal))
            s.no_effect(new, f"a new key, credential {principal}")
            s.refused(got, ("UNAUTHENTICATED",), f"a new key, credential {principal}")
            s.first(new, other)
            s.one_effect(new, "a key that a stranger had sent before")


@clause("IK-SCOPE-4")
def test_logs_and_refusals_carry_no_secret(bench: Bench) -> None:
    """The body, the answer and the key of a request, behind each refusal."""
    with service(bench, ON_A_SERVER) as s:
        s.must_promise(s.profile["secret"], "keys and bodies are no secrets")
        tag, key = s.tag(), s.key()
        secret, answered = s.session.hex64("secret"), s.session.hex64("answered")
        body = b'{"tag":"%s","card":"%s"}' % (tag.encode(), secret.encode())
        s.ending(tag, body=b'{"pan":"%s"}' % answered.encode())
        s.first(tag, key, body=body)
        asked = [
            s.request(tag, key, s.body(tag, "9")),
            s.request(tag, key, body, principal="none"),
            s.request(tag, [key, key], body),
        ]
        for each in asked:
            got = s.submit(each)
            for canary in (secret, answered, key.strip('"')):
                if canary.encode() in got.body and not got.accepted:
                    s.fail("fail_open", f"a refusal ({got.reason}) quotes what is stored, or the key")
        thrown, other = s.tag(), s.key()
        asked_for = b'{"tag":"%s","card":"%s"}' % (thrown.encode(), secret.encode())
        s.hold(thrown)
        s.begin("thrown", s.request(thrown, other, asked_for))
        s.ending(thrown, throw=True)
        answers = [s.submit(s.request(thrown, other, asked_for, within_ms=1000))]
        s.release(thrown)
        answers += [s.finish("thrown"), s.submit(s.request(thrown, other, asked_for))]
        for fault in ("refused", "cut") if "proxy" in s.wires else ():
            s.line(fault)
            answers.append(s.submit(s.request(thrown, other, asked_for)))
            s.line("none")
        for got in answers:
            for canary in (secret, other.strip('"')):
                if canary.encode() in got.body:
                    s.fail("fail_open", f"an answer ({got.status}) quotes the body or the key of a request that failed")
        if "process" in s.wires:
            found = s.session.search("logs", [secret, answered, key.strip('"'), other.strip('"')])
            if found:
                s.fail(
                    "state_leak", f"the log has what is secret: {', '.join(sorted({each['path'] for each in found}))}"
                )


@clause("IK-SCOPE-5")
def test_the_header_does_not_change_what_a_safe_method_means(bench: Bench) -> None:
    """A GET with the key of a POST, and a POST with the key of a GET."""
    with service(bench) as s:
        safe = [name for name, route in s.routes.items() if route["method"] == "GET"]
        s.must_promise(safe, "there is no safe route")
        tag, key = s.tag(), s.key()
        first = s.first(tag, key)
        got = s.submit(s.request(tag, key, b"", route=safe[0]))
        if got.body == first.body and s.names_effects:
            s.fail("fail_open", "a GET got the answer of a POST with the same key")
        if got.status >= 400 or got.silence is not None:
            s.wrong("over_refusal", f"a GET with a key got {got}", got)
        tag, key = s.tag(), s.key()
        s.submit(s.request(tag, key, b"", route=safe[0]))
        s.first(tag, key)
        s.one_effect(tag, "a POST with the key of a GET")


@clause("IK-ERR-1", "IK-ERR-2")
def test_a_refusal_is_a_problem_and_leaves_nothing_behind(bench: Bench) -> None:
    """Each refusal, and then the request that is due."""
    with service(bench) as s:
        key = s.key()
        refusals: list[tuple[str, Any, str]] = [("MALFORMED", [key, key], "a"), ("MALFORMED", "", "a")]
        refusals += [("UNAUTHENTICATED", key, "none")] if "refused" in s.principals else []
        for reason, lines, principal in refusals:
            tag = s.tag()
            got = s.submit(s.request(tag, lines, principal=principal))
            if got.accepted:
                # It is no refusal here, which is for IK-KEY-2 and IK-SCOPE-2 to say.
                continue
            s.no_effect(tag, f"a request that is {reason}")
            s.refused(got, (reason,), f"a request that is {reason}")
            kind = got.header("Content-Type") or ""
            if s.profile["problem_details"] and reason == "MALFORMED" and _PROBLEM not in kind:
                s.wrong("wrong_reason", f"{reason} is no {_PROBLEM}: {kind!r}")
        tag, key = s.tag(), s.key()
        first = s.first(tag, key)
        # More often than a pool has connections. Where no payload is compared, another one is no refusal.
        for other in map(str, range(5, 5 + _OFTEN)) if not s.choice else ():
            got = s.submit(s.request(tag, key, s.body(tag, other)))
            s.one_effect(tag, "another payload")
            s.refused(got, ("MISMATCH",), "another payload")
        s.retried(first, s.submit(s.request(tag, key)), "the due request behind refusals")
        s.one_effect(tag, "the due request behind refusals")
