"""One execution and its answer (IK-ONCE, IK-RESP)."""

from __future__ import annotations

from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.suites.idempotency_key.client import DECLARED, Service, service
from holdfast.servers.pace import scaled

_RETRIES = 10
_FRAMES: tuple[dict[str, Any], ...] = (
    {"chunked": True},
    {"headers": [["User-Agent", "two"], ["X-Request-Id", "2"]]},
    {"headers": [["traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"], ["Accept", "*/*"]]},
    {"headers": [["Accept-Encoding", "identity"], ["Date", "Thu, 01 Jan 2026 00:00:00 GMT"], ["DNT", "1"]]},
)
_NO_EFFECT = "Let the handler of the test route do what docs/services.md says (The test route)."
# What a status before any effect points to, in service.toml.
_PLACE = "`path` and `method` of this route"
_CHECKED = {
    **dict.fromkeys((401, 403), "the headers of [credentials]"),
    **dict.fromkeys((400, 422), "`header`, `key_syntax` and `key_pattern` of [profile]"),
}
# How long each instance has to run with nothing to do before anything is judged.
_STAYS_MS = 1000
_BINARY = bytes(range(256)) * 4
_LARGE = 500_000
# From here on services compress a body for a client that asks for it.
_PACKED = 1024


def preflight(bench: Bench) -> None:
    """Before anything is judged: one request through each route of each instance, and its effect at the sink."""
    with service(bench, short=True) as s:
        for number in s.instances:
            for name, route in s.routes.items():
                key = None if route["key"] == "ignored" else s.key()
                tag = s.tag()
                got = s.submit(
                    s.request(tag, key, b"" if route["method"] == "GET" else None, route=name, instance=number)
                )
                asked = f"[route.{name}] {route['method']} {route['path']} of instance {number}"
                check = f"{asked} answered {got.status}: check {_CHECKED.get(got.status, _PLACE)}."
                if got.silence is not None:
                    s.not_reached(f"{asked}: expected an answer, got {got}", "Let the service listen there.")
                if key is None and got.status >= 400:
                    s.not_reached(f"{asked}: expected an answer below 400, got {got}", check)
                if key is not None and not s.effects(tag, 1):
                    advice = check if got.status >= 400 else _NO_EFFECT
                    s.not_reached(f"{asked}: expected one effect at the sink, got none, and {got}", advice)
                if key is not None and not got.accepted:
                    s.not_reached(
                        f"{asked}: expected the status and body that the sink dictates, got {got}", _NO_EFFECT
                    )
        s.rest(round(scaled(_STAYS_MS)) if "process" in s.wires else 0)
        s.must_run()


@clause("IK-ONCE-1", "IK-ONCE-2", "IK-RESP-5")
def test_the_first_request_is_executed_and_each_retry_gets_its_answer(bench: Bench) -> None:
    """One effect, however often it is sent."""
    with service(bench) as s:
        for name in [name for name, route in s.routes.items() if route["key"] != "ignored"]:
            tag, key = s.tag(), s.key()
            first = s.first(tag, key, route=name)
            _marked(s, first.marked, due=False, what="a first execution")
            for number in range(_RETRIES):
                got = s.submit(s.request(tag, key, route=name))
                s.retried(first, got, f"retry {number + 1} on {name}")
                _marked(s, got.marked, due=s.profile["duplicate"] == "replay", what="a replay")
            s.one_effect(tag, f"a request and {_RETRIES} retries on {name}")


@clause("IK-ONCE-3", "IK-FP-1")
def test_a_retry_is_the_same_request_in_another_frame_and_with_other_names(bench: Bench) -> None:
    """In chunks, of another client, with another trace."""
    with service(bench) as s:
        tag, key = s.tag(), s.key()
        first = s.first(tag, key, headers=[["User-Agent", "one"], ["X-Request-Id", "1"]])
        for more in _FRAMES:
            s.retried(first, s.submit(s.request(tag, key, **more)), f"a retry with {more}")
        s.one_effect(tag, "retries that differ only in how they are sent")


def _marked(s: Service, marked: object, *, due: bool, what: str) -> None:
    if s.profile["marker"] is not None and bool(marked) != due:
        s.wrong("wrong_reason", f"{what} {'carries no' if due else 'carries'} {s.profile['marker']}")


@clause("IK-ONCE-3", provocations=("instance",))
def test_a_retry_is_recognised_through_every_instance(bench: Bench) -> None:
    """The first through one, the retry through another."""
    with service(bench) as s:
        s.must_promise(s.profile["shared"], "instances share no store")
        if "process" not in s.wires:
            s.unsupported("there is no second instance")
        tag, key = s.tag(), s.key()
        first = s.first(tag, key)
        for number in (1, 0, 1):
            s.retried(first, s.submit(s.request(tag, key, instance=number)), f"a retry through instance {number}")
        s.one_effect(tag, "a retry through another instance")
        tag, key = s.tag(), s.key()
        first = s.first(tag, key, instance=1)
        s.retried(first, s.submit(s.request(tag, key)), "a retry through the first instance")
        s.one_effect(tag, "a retry through the first instance")


@clause("IK-ONCE-6")
def test_a_failure_before_the_handler_does_not_consume_the_key(bench: Bench) -> None:
    """Half a body, behind which the client goes away; then the whole request with the same key."""
    with service(bench) as s:
        tag, key = s.tag(), s.key()
        s.submit(s.request(tag, key, half=True))
        s.pause(200)
        s.no_effect(tag, "half a body")
        got = s.settles(s.request(tag, key), (), "after half a body with its key")
        s.one_effect(tag, "the whole request behind half of it")
        s.retried(got, s.submit(s.request(tag, key)), "a retry of the whole request")


@clause("IK-RESP-1")
def test_what_is_replayed_is_the_stored_result(bench: Bench) -> None:
    """Status, headers, and each byte of the body, also where only one of the clients takes gzip."""
    with service(bench) as s:
        s.must_promise(s.profile["duplicate"] == "replay", "no answer is replayed")
        for number, (status, body, headers) in enumerate(_endings(s)):
            _is_replayed(s, f"answer {number}", status, body, headers)


def _is_replayed(s: Service, which: str, status: int, body: bytes, headers: dict[str, str]) -> None:
    """An answer as it was: each byte, and the headers that the profile names."""
    tag, key = s.tag(), s.key()
    s.ending(tag, status=status, body=body, headers=headers)
    packs: dict[str, Any] = {"headers": [["Accept-Encoding", "gzip"]]} if len(body) >= _PACKED else {}
    first = s.first(tag, key, **packs)
    for more in ({}, packs):
        got = s.submit(s.request(tag, key, **more))
        s.same(first, got, which)
        for name in s.profile["headers"]:
            if more == packs and first.header(name) != got.header(name):
                was, now = first.header(name), got.header(name)
                s.wrong("wrong_reason", f"{which}: {name} was {was!r}, and is {now!r}")
    s.one_effect(tag, which)


def _endings(s: Service) -> list[tuple[int, bytes, dict[str, str]]]:
    """Answers of each kind that the profile promises to keep."""
    answers, largest = s.profile["answers"], s.profile["largest_answer"] or _LARGE
    found: list[tuple[int, bytes, dict[str, str]]] = [
        (200, b'{"list":[%s0]}' % (b"17," * _PACKED), {}),
        (201, b'{"a": 1.0, "b":[1e2,9007199254740993], "c": "\\u00e9 / \\/"}', {"Location": "/orders/17"}),
        (200, b'{"z":1,"a":2}', {"ETag": '"abc"', "Link": '</a>; rel="next"\n</b>; rel="prev"'}),
        (200, b'{"n":0.1,"big":123456789012345678901234567890}', {}),
    ]
    of_text = [
        (200, b'\n {"a":1} \n', {}),
        (200, "na\u00efve \U0001f600".encode(), {"Content-Type": "text/plain; charset=utf-8"}),
        (202, b"", {"Content-Type": "text/plain"}),
        (204, b"", {}),
    ]
    of_bytes = [
        (200, _BINARY, {"Content-Type": "application/octet-stream"}),
        (200, b"\xff\xfe\x00", {"Content-Type": "text/plain"}),
        (201, b"x" * _LARGE, {"Content-Type": "text/plain"}),
    ]
    kinds = {"json": found[:2], "text": [*found, *of_text], "bytes": [*found, *of_text, *of_bytes]}
    return [each for each in kinds[answers] if len(each[1]) <= largest]


@clause("IK-RESP-2")
def test_a_cookie_of_the_first_caller_is_not_replayed(bench: Bench) -> None:
    """The handler sets a session's cookie, with a success and with each error that is final."""
    with service(bench) as s:
        for status in (201, *(s.profile["final"] if s.profile["handler"] == "inside" else ())):
            tag, key = s.tag(), s.key()
            s.ending(tag, status=status, headers={"Set-Cookie": f"session={s.session.rand(f'cookie {status}')}"})
            s.first(tag, key)
            for principal in ("a", *(["again"] if "again" in s.principals else [])):
                got = s.submit(s.request(tag, key, principal=principal))
                if got.header("Set-Cookie") is not None:
                    s.wrong("wrong_reason", f"a retry got the cookie of the first caller (status {status})")
            s.one_effect(tag, f"a request whose answer sets a cookie (status {status})")


@clause("IK-RESP-3")
def test_a_final_error_is_replayed_like_a_success(bench: Bench) -> None:
    """A declined payment, and each other status that the profile calls final."""
    with service(bench) as s:
        s.must_promise(s.profile["final"], "no error is final")
        for status in s.profile["final"]:
            tag, key = s.tag(), s.key()
            s.ending(tag, status=status, body=b'{"declined":true}')
            first = s.first(tag, key)
            s.ending(tag, status=201, body=b'{"declined":false}')
            for _ in range(3):
                s.retried(first, s.submit(s.request(tag, key)), f"a retry of a request that ended with {status}")
            s.one_effect(tag, f"a request that ended with {status}")
        for number, (_, body, headers) in enumerate(_endings(s) if s.profile["duplicate"] == "replay" else ()):
            status = s.profile["final"][number % len(s.profile["final"])]
            if body:
                _is_replayed(s, f"answer {number} with the status {status}", status, body, headers)


# What handlers answer behind an effect that nobody knows of.
_FAILURES = (500, 502, 503, 504, 408, 429)


@clause("IK-RESP-4")
def test_an_outcome_that_nobody_knows_is_not_executed_again(bench: Bench) -> None:
    """The handler has its effect and throws, or its connection is cut behind the effect."""
    with service(bench) as s:
        ends: list[dict[str, Any]] = [{"throw": True}, {"cut": True}, *({"status": each} for each in _FAILURES)]
        for how in ends:
            freed = how.get("status") in s.profile["freed"]
            declared = freed or (s.profile["thrown"] == "freed" and "status" not in how)
            tag, key = s.tag(), s.key()
            s.ending(tag, **how)
            first = s.submit(s.request(tag, key))
            found = s.effects(tag)
            if not found:
                s.not_reached(f"the handler did not come to its effect; the answer was {first}")
            if found > 1 and not declared:
                s.one_effect(tag, f"one request alone, its handler told {how}")
            s.ending(tag, status=201)
            for _ in range(3):
                got = s.submit(s.request(tag, key))
                if got.accepted and got.effect == "new":
                    break
            s.behind_the_lease()
            again = s.submit(s.request(tag, key))
            found = s.effects(tag)
            if found > 1 and declared:
                s.fail("fail_open", f"a handler that ends with {how} runs again ({found} effects): {DECLARED}")
            s.one_effect(tag, f"a handler that ends with {how}, and then is retried")
            if again.reason == "IN_PROGRESS" and not s.means(again, s.unknown):
                s.wrong("over_refusal", f"nothing runs, and the key still answers {again}")
        if s.profile["in_progress"] == "wait":
            _waiter(s)


def _waiter(s: Service) -> None:
    """A second request waits while the first is held behind its effect; then the handler throws."""
    tag, key = s.tag(), s.key()
    s.hold(tag, when="after")
    s.begin("first", s.request(tag, key))
    s.send("waiting", s.request(tag, key))
    s.ending(tag, throw=True)
    s.release(tag)
    s.finish("first")
    s.finish("waiting")
    chosen = f": {DECLARED}" if s.profile["thrown"] == "freed" else ""
    s.one_effect(tag, f"a request that waited for a handler that threw{chosen}")


@clause("IK-RESP-6")
def test_an_answer_that_is_too_large_to_store_does_not_free_the_key(bench: Bench) -> None:
    """As many bytes as the profile's limit, and one more; without a limit half a megabyte, 2, 6 and 12."""
    with service(bench) as s:
        limit = s.profile["largest_answer"]
        for size in (500_000, 2 << 20, 6 << 20, 12 << 20) if limit is None else (limit, limit + 1):
            tag, key = s.tag(), s.key()
            s.ending(tag, size=size)
            first = s.submit(s.request(tag, key))
            for _ in range(2):
                got = s.submit(s.request(tag, key))
                if size == limit and first.accepted:
                    s.retried(first, got, f"an answer of {size} bytes, which may be kept")
                elif got.accepted and first.accepted and (got.size, got.body) != (first.size, first.body):
                    s.wrong("wrong_reason", "a large answer was replayed as another one")
            found = s.effects(tag)
            if not found:
                s.not_reached(f"the handler of an answer of {size} bytes did not come to its effect; got {first}")
            s.one_effect(tag, f"an answer of {size} bytes")
