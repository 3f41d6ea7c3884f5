"""One request of HTTP as it is given, sent in a session of the adapter protocol, and its response."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.conformance.adapter.bridge import OPEN_SESSION, RAW
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.expect import failure_of
from holdfast.conformance.cases.record import NonConformance
from holdfast.specs import strictjson
from holdfast.specs.binding import SESSION
from holdfast.specs.errors import StrictJsonError

# What a request carries and no answer may repeat.
CANARY = "canary-7f3a91c2d45e"
SECRETS = (("Authorization", f"Bearer {CANARY}"), ("Cookie", f"session={CANARY}"))
JSON = "application/json"
USUAL = (("Content-Type", JSON), ("Accept", JSON), (SESSION, OPEN_SESSION))
_CHUNKED = (("Transfer-Encoding", "chunked"),)
NO_JSON = object()
_SHOWN = 2000


@dataclass(frozen=True, slots=True)
class FuzzRequest:
    """A request as it is sent. Its headers are those that stand here, the length of the body, and the host.

    With `chunk` the body goes in chunks of that many bytes, without its length. With `packets` it arrives in parts.
    """

    method: str
    target: str
    body: bytes
    headers: Sequence[tuple[str, str]] = USUAL
    chunk: int = 0
    packets: bool = False

    def with_headers(self, *changed: tuple[str, str]) -> FuzzRequest:
        """The same with these headers in the place of those of their names."""
        names = {name.lower() for name, _ in changed}
        kept = [each for each in self.headers if each[0].lower() not in names]
        return replace(self, headers=(*kept, *changed))

    def without(self, name: str) -> FuzzRequest:
        """The same without a header."""
        return replace(self, headers=tuple(each for each in self.headers if each[0].lower() != name.lower()))

    def curl(self, url: str) -> str:
        """A command that sends it."""
        words = ["curl", "-sS", "-i", "-X", self.method, f"{url}{self.target}"]
        for name, value in (*self.headers, *(_CHUNKED if self.chunk else ())):
            words += ["-H", f"{name}: {value}"]
        if self.body and all(name.lower() != "content-type" for name, _ in self.headers):
            # curl would make one up.
            words += ["-H", "Content-Type:"]
        quoted = shlex.join(words)
        if not self.body:
            return quoted
        if all(32 <= byte < 127 for byte in self.body):
            return f"{quoted} --data-binary {shlex.quote(self.body.decode('ascii'))}"
        octal = "".join(f"\\{byte:03o}" for byte in self.body)
        return f"printf '{octal}' | {quoted} --data-binary @-"


@dataclass(frozen=True, slots=True)
class Response:
    """What came: status 0 where nothing did."""

    url: str
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes
    n: int | None

    def header(self, name: str) -> str:
        """The value of a header; empty where there is none."""
        return next((value for known, value in self.headers if known.lower() == name.lower()), "")

    def said(self) -> Any:
        """The body as JSON: None where it is empty, NO_JSON where it is none."""
        try:
            return strictjson.loads(self.body) if self.body else None
        except StrictJsonError:
            return NO_JSON

    @property
    def shown(self) -> str:
        """A text that describes it."""
        if self.status == 0:
            return f"no response ({self.body.decode('utf-8', 'replace')[:200]})"
        return f"status {self.status} with the body {self.body[:200]!r}"


def send(session: SuiteSession, request: FuzzRequest) -> Response:
    """Send a request. Raises NonConformance where the adapter is gone."""
    body, chunk = request.body, request.chunk
    if chunk:
        parts = [body[at : at + chunk] for at in range(0, len(body), chunk)]
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (*parts, b""))
    headers = [list(each) for each in (*request.headers, *_length(request))]
    args: Mapping[str, Any] = {
        "method": request.method,
        "target": request.target,
        "headers": headers,
        "body": base64.b64encode(body).decode("ascii"),
        "packets": request.packets,
    }
    record = session.exchange(RAW, args)
    failure = failure_of(record)
    if failure is not None:
        size = f"; its body has {len(request.body)} bytes" if request.body else ""
        detail = f"the server ended at {request.method} {request.target}{size}: {failure.detail}"
        raise NonConformance(replace(failure, detail=detail, advice=f"Again: {request.curl('URL')[:_SHOWN]}"))
    assert record.answer is not None
    said = record.answer["value"]
    found = tuple((name, value) for name, value in said["headers"])
    return Response(said["url"], said["status"], found, base64.b64decode(said["body"]), record.n)


def _length(request: FuzzRequest) -> Sequence[tuple[str, str]]:
    if request.chunk:
        return _CHUNKED
    names = {name.lower() for name, _ in request.headers}
    return () if "content-length" in names else (("Content-Length", str(len(request.body))),)
