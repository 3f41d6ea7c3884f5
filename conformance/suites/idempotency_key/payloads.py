"""One key, another payload (IK-FP)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.suites.idempotency_key.client import DECLARED, Service, service

# Queries that parsers take for one, and types of content whose parameters say what the body means.
_PARTED = {
    "query": (("to=ann;x", "to=bob;x"), ("a=%zz", "a=%zy"), ("a=1&a=2", "a=2&a=1"), ("a", "a="), ("A=1", "a=1")),
    "content_type": (
        ("application/json; profile=refund", "application/json; profile=charge"),
        ("text/plain; charset=latin-1", "text/plain; charset=cp437"),
    ),
}
_SMALL, _LARGE = 1000, 1 << 20
_PROBLEM = "application/problem+json"


def _other(s: Service, tag: str, key: str, body: bytes | None, why: str, **more: Any) -> None:
    """The same key with another payload: refused, without an effect."""
    before = s.effects(tag)
    got = s.submit(s.request(tag, key, body, **more))
    s.one_effect(tag, f"{why}{s.choice}", before)
    # Where no payload is compared, to be told of a duplicate is no answer to another one.
    s.refused(got, ("MISMATCH", "DUPLICATE") if s.choice else ("MISMATCH",), f"{why}{s.choice}")


@clause("IK-FP-1", "IK-ERR-1")
def test_a_key_with_another_payload_is_refused_and_the_first_result_stays(bench: Bench) -> None:
    """One byte more, one byte other, one byte less."""
    with service(bench) as s:
        tag, key = s.tag(), s.key()
        body = s.body(tag)
        first = s.first(tag, key)
        for other in (s.body(tag, "101"), s.body(tag, "1000"), s.body(tag, "10"), body[:-1] + b',"more":1}'):
            _other(s, tag, key, other, f"the payload {other!r} for {body!r}")
            s.retried(first, s.submit(s.request(tag, key)), "the first payload again")
        s.one_effect(tag, "one key with several payloads")
        got = s.submit(s.request(tag, key, s.body(tag, "7")))
        if s.profile["problem_details"] and _PROBLEM not in (got.header("Content-Type") or ""):
            s.wrong("wrong_reason", f"the refusal is no {_PROBLEM}: {got.header('Content-Type')!r}")


@clause("IK-FP-2")
def test_another_resource_does_not_get_this_ones_answer(bench: Bench) -> None:
    """The same key and body on another path, with another query, with another type of content."""
    with service(bench) as s:
        tag, key = s.tag(), s.key()
        s.first(tag, key)
        routes = [name for name, route in s.routes.items() if name != "create" and route["key"] != "ignored"]
        changes: list[tuple[str, dict[str, Any]]] = [(f"the route {name}", {"route": name}) for name in routes]
        covered = s.profile["fingerprint"]
        if "query" in covered:
            changes.append(("a query", {"query": "dry_run=1"}))
        if "content_type" in covered:
            changes.append(("another type of content", {"content_type": "text/plain"}))
        for name in sorted(_PARTED.keys() & covered):
            _are_two(s, name)
        told_apart = "route" in s.profile["scope"] or "path" in covered
        if told_apart:
            _paths(s)
        s.must_promise(changes, "there is no other route, and the fingerprint has neither query nor type of content")
        for what, more in changes:
            before = s.effects(tag)
            got = s.submit(s.request(tag, key, **more))
            if got.accepted and got.effect == "prior":
                chosen = f": {DECLARED}" if "route" in more and not told_apart else ""
                s.fail("fail_open", f"{what} got the answer of another request{chosen}")
            if got.accepted and "route" not in more:
                s.fail("fail_open", f"{what} was executed, and the fingerprint covers it")
            s.one_effect(tag, what, before + 1 if got.accepted else before)
            if not got.accepted:
                s.refused(got, ("MISMATCH", "DUPLICATE") if s.choice else ("MISMATCH",), what)


def _paths(s: Service) -> None:
    """Paths with another number in one place, such as that of another account. None of them may be there."""
    for name, route in s.routes.items():
        parts = route["path"].split("/")
        for at in [at for at, part in enumerate(parts) if part.isdecimal() and route["key"] != "ignored"]:
            path = "/".join([*parts[:at], str(int(parts[at]) + 1), *parts[at + 1 :]])
            tag, key = s.tag(), s.key()
            s.first(tag, key, route=name)
            s.may_have(tag, 2)
            got = s.submit(s.request(tag, key, route=name, path=path))
            if got.accepted and got.effect == "prior":
                s.fail("fail_open", f"the path {path} got the answer of {route['path']}")
            s.one_effect(tag, f"the path {path} with the key of {route['path']}", 2 if got.accepted else 1)


def _are_two(s: Service, name: str) -> None:
    for one, other in _PARTED[name]:
        tag, key = s.tag(), s.key()
        if not s.submit(s.request(tag, key, None, **{name: one})).accepted:
            s.no_effect(tag, f"the {name} {one!r}, which was refused")
            continue
        got = s.submit(s.request(tag, key, None, **{name: other}))
        s.one_effect(tag, f"the {name} {other!r} with the key of {one!r}")
        if got.accepted:
            s.fail("fail_open", f"the {name} {other!r} got the answer to {one!r}")


@clause("IK-FP-3")
def test_no_field_shifts_into_another_inside_the_fingerprint(bench: Bench) -> None:
    """Bodies and queries whose concatenation is equal."""
    with service(bench) as s:
        covered = s.profile["fingerprint"]
        s.must_promise("body" in covered, "the fingerprint has no body")
        compared = 0
        for ones, others in _shifted(covered, raw=s.profile["json"] == "raw"):
            tag, key = s.tag(), s.key()
            body = s.body(tag)
            got = s.submit(s.request(tag, key, **_with(ones, body)))
            if not got.accepted:
                s.no_effect(tag, f"a request with {ones}, which was refused")
                continue
            compared += 1
            again = s.submit(s.request(tag, key, **_with(others, body)))
            s.one_effect(tag, f"{others} for {ones}")
            if again.accepted:
                s.fail("fail_open", f"{others} got the answer to {ones}")
        if not compared:
            s.not_reached("the service takes none of the requests whose fields could shift")


def _shifted(covered: Sequence[str], *, raw: bool) -> list[tuple[dict[str, str], dict[str, str]]]:
    """Pairs of fields whose concatenation is equal, for each two that may stand side by side."""
    # To a reader of JSON a blank before it means nothing.
    found = [({"before": " "}, {"before": ""})] if raw else []
    if "query" in covered:
        found += [({"query": "a=1", "before": " "}, {"query": "a=", "before": "1 "}), ({"query": "a"}, {"before": "a"})]
    if "content_type" in covered:
        plain = "text/plain;p=1"
        found.append(({"content_type": plain, "before": "2"}, {"content_type": plain + "2", "before": ""}))
    if "query" in covered and "content_type" in covered:
        found.append(({"query": "a=x", "content_type": "x/y"}, {"query": "a=", "content_type": "xx/y"}))
    return found


def _with(fields: dict[str, str], body: bytes) -> dict[str, Any]:
    rest = {name: value for name, value in fields.items() if name != "before"}
    return {**rest, "body": fields.get("before", "").encode() + body}


@clause("IK-FP-4")
def test_large_and_chunked_bodies_are_fingerprinted_whole(bench: Bench) -> None:
    """Up to 16 MiB that differ in one byte, at the beginning, in the middle, at the end."""
    with service(bench) as s:
        for fill, chunked in ((_SMALL, True), (60_000, False), (_LARGE, True), (8 * _LARGE, False)):
            for where in (b"%s%%FILL%%%%FILL%%", b"%%FILL%%%s%%FILL%%", b"%%FILL%%%%FILL%%%s"):
                tag, key = s.tag(), s.key()
                one, two = (b'{"tag":"%s","pad":"%s"}' % (tag.encode(), where % sign) for sign in (b"1", b"2"))
                more = {"fill": fill, "chunked": chunked, "within_ms": 20_000}
                got = s.submit(s.request(tag, key, one, **more))
                if not got.accepted:
                    # Larger than the service takes.
                    s.no_effect(tag, f"a body of {2 * fill} bytes, which was refused")
                    if fill == _SMALL:
                        s.not_reached(f"the service does not take a body of {2 * fill} bytes: {got}")
                    break
                _other(s, tag, key, two, f"a body of {2 * fill} bytes that differs in one", **more)


@clause("IK-FP-5")
def test_different_json_is_never_one_payload(bench: Bench) -> None:
    """Numbers beyond 2^53, duplicate members; equal JSON in another spelling as the profile declares."""
    with service(bench) as s:
        for left, right in (
            (b"9007199254740992", b"9007199254740993"),
            (b"1e400", b"2e400"),
            (b'"\\ud801"', b'"\\ud802"'),
            (b'"plumless"', b'"buckeroo"'),
            (b'1,"amount":2', b'3,"amount":2'),
            # No UTF-8: a decoder may make one text of both.
            (b'"\x80"', b'"\x81"'),
        ):
            tag, key = s.tag(), s.key()
            one, two = (s.body(tag, "0").replace(b":0}", b":" + each + b"}") for each in (left, right))
            got = s.submit(s.request(tag, key, one))
            if not got.accepted:
                s.no_effect(tag, f"the amount {left!r}, which was refused")
                continue
            again = s.submit(s.request(tag, key, two))
            s.one_effect(tag, f"the amount {right!r} with the key of {left!r}{s.choice}")
            if again.accepted:
                s.fail("fail_open", f"the amount {right!r} got the answer to {left!r}{s.choice}")
        tag, key = s.tag(), s.key()
        first = s.first(tag, key, body=s.body(tag, "1.0"))
        got = s.submit(s.request(tag, key, s.body(tag, "1")))
        s.one_effect(tag, "1.0 and 1")
        if s.profile["json"] == "raw":
            wanted = ("MISMATCH", "DUPLICATE") if s.choice else ("MISMATCH",)
            s.refused(got, wanted, f"1 for 1.0, where the fingerprint is that of the bytes{s.choice}")
        else:
            s.retried(first, got, "1 for 1.0, where the fingerprint is that of the value")


@clause("IK-FP-6")
def test_the_payload_is_compared_with_that_of_the_request_that_won(bench: Bench) -> None:
    """Another payload while the first is held, and many of both at once."""
    with service(bench) as s:
        tag, key = s.tag(), s.key()
        s.hold(tag)
        s.begin("first", s.request(tag, key))
        got = s.submit(s.request(tag, key, s.body(tag, "101"), within_ms=3000))
        s.release(tag)
        first = s.finish("first")
        s.one_effect(tag, "another payload while the first is held")
        if not first.accepted:
            s.fail("over_refusal", f"the first request got {first} behind its release", first)
        if got.accepted:
            s.fail("fail_open", f"another payload got {got} while the first was held{s.choice}")
        s.retried(first, s.submit(s.request(tag, key)), "the first payload again")
        _other(s, tag, key, s.body(tag, "101"), "the other payload again")
        for number in range(4):
            tag, key = s.tag(), s.key()
            bodies = [s.body(tag, str(100 + index % 2)) for index in range(8)]
            shared = len(s.instances)
            found = s.burst(
                [s.request(tag, key, body, instance=index // 2 % shared) for index, body in enumerate(bodies)]
            )
            s.one_effect(tag, f"two payloads at once, round {number + 1}")
            kinds = {body for body, each in zip(bodies, found, strict=True) if each.accepted}
            if len(kinds) > 1:
                s.fail("fail_open", f"two payloads got one answer{s.choice}")
