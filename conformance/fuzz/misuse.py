"""Requests that are a good one but for one thing of HTTP or JSON, each of which has to be refused. Pure."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from holdfast.conformance.adapter.bridge import CLOSED_SESSION
from holdfast.conformance.fuzz.exchange import JSON, FuzzRequest
from holdfast.conformance.fuzz.judge import Due
from holdfast.specs import Method
from holdfast.specs.binding import MALFORMED, SESSION
from holdfast.specs.routes import Route
from holdfast.specs.schema import explain

# In the place of a text that is written as it is into the JSON of a body.
_MARK = "holdfast-mark"
_NEW = ("x_unknown", "__proto__", "", "constructor", "Op")
_SURROGATES = ("\\ud800", "\\udc00", "\\udc00\\ud800", "a\\uDBFF")
_DEEP = 100_000
# More than a server may read at once.
_BLANKS = b" " * 70_000
_METHODS = ("GET", "PUT", "PATCH", "DELETE", "POST", "HOLDFAST")
_NEAR_METHODS = ("HEAD", "OPTIONS", "TRACE")
_TYPES = (
    "text/plain",
    "text/json",
    "application/json-seq",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/xml",
    "",
)
_CODINGS = ("gzip", "br", "identity, gzip", "holdfast")


@dataclass(frozen=True, slots=True)
class Misuse:
    """A request, and what has to become of it."""

    request: FuzzRequest
    due: Due


def request_of(route: Route, args: Mapping[str, Any]) -> FuzzRequest:
    """A call as it is usually sent."""
    request = FuzzRequest(route.method, route.target(route.path, args), _json(route.body(args)))
    return request.with_headers(*route.written(args, args).items())


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def declares_session(method: Method) -> bool:
    """Whether a request of this method has to name its session; a route of a product knows none."""
    return method.route is None


def misuses(method: Method, route: Route, args: Mapping[str, Any]) -> Iterator[Misuse]:
    """All of them."""
    good = request_of(route, args)
    yield from _bodies(method, route, args, good)
    yield from _headers(method, route, good)
    for name in _METHODS:
        if name != route.method:
            # One of them may stand for another route of the contract, but not with this body.
            yield Misuse(replace(good, method=name), Due(f"the method {name}", refused=True, silent=True, strange=True))
    for name in _NEAR_METHODS:
        yield Misuse(replace(good, method=name), Due(f"the method {name}", silent=True, strange=True, harmless=True))
    overridden = replace(good, method="GET").with_headers(("X-HTTP-Method-Override", route.method))
    yield Misuse(overridden, Due("the method GET with another in a header", refused=True, silent=True, strange=True))


def empty_ones(method: Method, good: FuzzRequest) -> Iterator[Misuse]:
    """What may not be taken for the request that was accepted before it."""
    for body in (b"", b"{}"):
        if explain(method.args, {}) is not None:
            yield Misuse(replace(good, body=body), Due("an empty body after an accepted one", refused=True))


def closed(good: FuzzRequest) -> Misuse:
    """A request of a session that has ended."""
    return Misuse(good.with_headers((SESSION, CLOSED_SESSION)), Due("a session that was closed", refused=True))


def _bodies(method: Method, route: Route, args: Mapping[str, Any], good: FuzzRequest) -> Iterator[Misuse]:
    named = MALFORMED in method.reasons
    for what, changed in _with_more(args):
        if route.body(changed) != route.body(args) and explain(method.args, changed) is not None:
            yield Misuse(replace(good, body=_json(route.body(changed))), Due(what, refused=True, named=named))
    inside = route.body(args)
    for name, value in inside.items():
        left = {each: part for each, part in inside.items() if each != name}
        if explain(method.args, {each: part for each, part in args.items() if each != name}) is None:
            continue
        for near in (name.upper(), name.capitalize(), f"{name} ", f" {name}"):
            due = Due(f"{near!r} in the place of {name}", refused=True, named=named)
            yield Misuse(replace(good, body=_json({**left, near: value})), due)
        if isinstance(value, str):
            target = f"{good.target}?{urlencode({name: value})}"
            due = Due(f"{name} in the query and not in the body", refused=True)
            yield Misuse(replace(good, target=target, body=_json(left)), due)
    for what, changed in _marked(inside):
        marked = json.dumps(changed).encode()
        for said, spelt in (("a byte that is no UTF-8", b"\xff"), *((each, each.encode()) for each in _SURROGATES)):
            body = marked.replace(_MARK.encode(), spelt)
            yield Misuse(replace(good, body=body), Due(f"{what} holds {said}", refused=True))
    text = good.body.decode()
    for name in inside:
        again = "{" + f"{json.dumps(name)}: {json.dumps(inside[name])}, {text[1:]}"
        yield Misuse(replace(good, body=again.encode()), Due(f"the member {name} twice", refused=True))
    for what, body in _no_json(text):
        if body == good.body:
            continue
        yield Misuse(replace(good, body=body), Due(f"the body is {what}", refused=True))
    for body, chunk in ((good.body + b"x", len(good.body)), (good.body[:-1], 1), (b"", 1)):
        # A server may not know chunks.
        due = Due("a body in chunks that is no JSON", refused=True, silent=True, strange=True)
        yield Misuse(replace(good, body=body, chunk=chunk), due)


def _no_json(text: str) -> Iterator[tuple[str, bytes]]:
    data = text.encode()
    yield "empty", b""
    yield "null", b"null"
    yield "an array", b"[" + data + b"]"
    yield "a text", json.dumps(text).encode()
    yield "cut", data[:-1]
    yield "followed by a second document", data + data
    yield "followed by a letter", data + b"x"
    yield "without quotation marks", data.replace(b'"', b"'")
    yield "with a comma after its last member", data[:-1] + b",}"
    yield "with a comment", data + b"/* */"
    yield "with a byte that is no UTF-8", data[:-1] + b',"\xff":0}'
    yield "with an overlong encoding", data[:-1] + b',"\xc0\xaf":0}'
    yield "with NaN", data[:-1] + b',"x":NaN}'
    yield "with a zero byte after it", data + b"\0"
    yield "cut after many blanks", data[:-1] + _BLANKS
    yield "followed by a letter after many blanks", data + _BLANKS + b"x"
    yield "in UTF-16", text.encode("utf-16")
    yield "in UTF-32", text.encode("utf-32")
    yield "as deep as no one reads", b"[" * _DEEP + b"]" * _DEEP


def _headers(method: Method, route: Route, good: FuzzRequest) -> Iterator[Misuse]:
    for kind in _TYPES:
        changed = good.with_headers(("Content-Type", kind)) if kind else good.without("Content-Type")
        yield Misuse(changed, Due(f"the content type {kind or 'is missing'}", refused=True))
    charset = f"{JSON}; charset=utf-16"
    yield Misuse(
        replace(good.with_headers(("Content-Type", charset)), body=good.body.decode().encode("utf-16")),
        Due(f"the content type {charset}", refused=True),
    )
    for coding in _CODINGS:
        coded = good.with_headers(("Content-Encoding", coding))
        yield Misuse(coded, Due(f"the content encoding {coding}, and the body has none", refused=True))
    cut = gzip.compress(good.body, mtime=0)[:-4]
    yield Misuse(
        replace(good.with_headers(("Content-Encoding", "gzip")), body=cut), Due("gzip that is cut", refused=True)
    )
    for name, value in _twice(route, good):
        for headers in ((*good.headers, (name, value)), ((name, value), *good.headers)):
            yield Misuse(replace(good, headers=headers), Due(f"the header {name} twice", refused=True, silent=True))
    length = str(len(good.body))
    for lengths in ((length, str(len(good.body) - 1)), ("-1",), ("x",), (f"{length}, 1",)):
        headers = (*good.headers, *(("Content-Length", each) for each in lengths))
        due = Due(f"the content length {' and '.join(lengths)}", refused=True, silent=True)
        # What lies after the end of a body would be another request.
        yield Misuse(replace(good, headers=(*headers, ("Connection", "close"))), due)
    if declares_session(method):
        yield Misuse(good.with_headers((SESSION, "nobody")), Due("a session that nobody opened", refused=True))
        yield Misuse(good.without(SESSION), Due("no session", refused=True))


def _twice(route: Route, good: FuzzRequest) -> Iterator[tuple[str, str]]:
    yield "Content-Type", "text/plain"
    declared = {name.lower() for name in route.headers.values()}
    for name, value in good.headers:
        if name.lower() in declared or name == SESSION:
            yield name, f"{value}x"


def _with_more(args: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each object with a member more."""
    for path, found in _parts(dict(args)):
        if isinstance(found, Mapping):
            for name in _NEW:
                if name not in found:
                    yield f"a member {name!r} more in {_told(path)}", _put(args, (*path, name), 1)


def _marked(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each text with a mark in it."""
    for path, found in _parts(dict(body)):
        if isinstance(found, str) and path:
            yield _told(path), _put(body, path, found[: len(found) // 2] + _MARK + found[len(found) // 2 :])


def _parts(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    yield path, value
    inner: Sequence[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        inner = tuple(value.items())
    elif isinstance(value, list):
        inner = tuple(enumerate(value))[:1]
    for name, each in inner:
        yield from _parts(each, (*path, name))


def _put(whole: Mapping[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    made: dict[str, Any] = copy.deepcopy(dict(whole))
    place: Any = made
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return made


def _told(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path)) or "the body"
