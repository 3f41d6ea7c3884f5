"""The reference of calyx-replay behind HTTP with one bug that only HTTP has: `python leaky_server.py BUG --port N`."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import uvicorn

from holdfast.reference_impl.over_http import OverHttp
from holdfast.reference_impl.registry import Deferred
from holdfast.specs import load_contract

Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]


class Leaky:
    """Passes requests of one route on, altered, and responses back, altered; all other routes work."""

    path = "/calyx-replay/accept"

    def __init__(self, inner: App) -> None:
        self.inner = inner
        self.kept: dict[bytes, list[dict[str, Any]]] = {}

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != self.path:
            await self.inner(scope, receive, send)
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        for each in await self.answered(scope, body):
            await send(each)

    async def passed(self, scope: Any, body: bytes) -> list[dict[str, Any]]:
        """The response of the reference."""
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        headers = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
        length = (b"content-length", str(len(body)).encode())
        await self.inner({**scope, "headers": [*headers, length]}, receive, send)
        return sent

    async def answered(self, scope: Any, body: bytes) -> list[dict[str, Any]]:
        """The response."""
        return await self.passed(scope, body)


class Sound(Leaky):
    """No bug."""


class ClaimsNothing(Leaky):
    """No method is there yet."""

    path = "/holdfast/v1/hello"

    async def answered(self, scope: Any, body: bytes) -> list[dict[str, Any]]:
        said = json.loads((await self.passed(scope, body))[1]["body"])
        for claim in said["ok"]["claims"]:
            claim["not_claimed"] = dict.fromkeys(load_contract(claim["contract"]).methods, "not there yet")
        return answer(200, said)


class UnknownFields(Leaky):
    """Members that nobody knows are dropped before the schema is asked."""

    async def answered(self, scope: Any, body: bytes) -> list[dict[str, Any]]:
        try:
            given = json.loads(body)
            body = json.dumps({name: given[name] for name in ("envelope",) if name in given}).encode()
        except (ValueError, TypeError, RecursionError):
            pass
        return await self.passed(scope, body)


class ErrorInside(Leaky):
    """Every refusal has the status 200, and the error stands in its body."""

    async def answered(self, scope: Any, body: bytes) -> list[dict[str, Any]]:
        sent = await self.passed(scope, body)
        sent[0]["status"] = 200 if sent[0]["status"] >= 400 else sent[0]["status"]
        return sent


class RefusedAndDone(Leaky):
    """A wrong content type is refused once the request has been carried out."""

    async def answered(self, scope: Any, body: bytes) -> list[dict[str, Any]]:
        kind = dict(scope["headers"]).get(b"content-type", b"")
        if kind.startswith(b"application/json"):
            return await self.passed(scope, body)
        headers = [pair for pair in scope["headers"] if pair[0] != b"content-type"]
        await self.passed({**scope, "headers": [*headers, (b"content-type", b"application/json")]}, body)
        return answer(415, {})


class Surrogates(Leaky):
    """Half a character makes it fail."""

    async def answered(self, scope: Any, body: bytes) -> list[dict[str, Any]]:
        try:
            json.dumps(json.loads(body), ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return answer(500, {})
        except (ValueError, RecursionError):
            pass
        return await self.passed(scope, body)


class Untyped(Leaky):
    """It takes for granted that the envelope is a text."""

    async def answered(self, scope: Any, body: bytes) -> list[dict[str, Any]]:
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):
            return await self.passed(scope, body)
        if isinstance(given, dict) and not isinstance(given.get("envelope"), str):
            return answer(500, {})
        return await self.passed(scope, body)


class KeyedByHeader(Leaky):
    """What was answered to a key in a header is answered again, whatever the request says."""

    async def answered(self, scope: Any, body: bytes) -> list[dict[str, Any]]:
        key = dict(scope["headers"]).get(b"idempotency-key", b"")
        if not key:
            return await self.passed(scope, body)
        if key not in self.kept:
            self.kept[key] = await self.passed(scope, body)
        return self.kept[key]


class LastWins(Leaky):
    """Of two members with one name the last one counts."""

    async def answered(self, scope: Any, body: bytes) -> list[dict[str, Any]]:
        with contextlib.suppress(ValueError, RecursionError):
            body = json.dumps(json.loads(body)).encode()
        return await self.passed(scope, body)


class AnyMethod(Leaky):
    """PUT does what POST does."""

    async def answered(self, scope: Any, body: bytes) -> list[dict[str, Any]]:
        method = "POST" if scope["method"] == "PUT" else scope["method"]
        return await self.passed({**scope, "method": method}, body)


class Reflecting(Leaky):
    """A refusal repeats the headers of its request."""

    async def answered(self, scope: Any, body: bytes) -> list[dict[str, Any]]:
        sent = await self.passed(scope, body)
        if sent[0]["status"] < 400:
            return sent
        return answer(sent[0]["status"], {"error": "REQUEST_MALFORMED", "detail": str(scope["headers"])})


class Long(Leaky):
    """It reads 64 KiB of a body."""

    async def answered(self, scope: Any, body: bytes) -> list[dict[str, Any]]:
        return await self.passed(scope, body[:65536])


class Retried(Leaky):
    """What says that it is another attempt is told what the first one was told."""

    async def answered(self, scope: Any, body: bytes) -> list[dict[str, Any]]:
        if not dict(scope["headers"]).get(b"x-retry"):
            self.kept.setdefault(body, sent := await self.passed(scope, body))
            return sent
        return self.kept[body]


class EmptyAgain(Leaky):
    """An empty body stands for the last one."""

    async def answered(self, scope: Any, body: bytes) -> list[dict[str, Any]]:
        if body or not self.kept:
            sent = await self.passed(scope, body)
            if sent[0]["status"] == 201:
                self.kept = {b"": sent}
            return sent
        return self.kept[b""]


class AnySession(Leaky):
    """A request of a session that was closed is one of the session that is open."""

    names: ClassVar[list[bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        if scope["type"] == "http":
            name = dict(scope["headers"]).get(b"holdfast-session", b"")
            if scope["path"].endswith("/open"):
                self.names.append(name)
            elif name in self.names:
                kept = [pair for pair in scope["headers"] if pair[0] != b"holdfast-session"]
                scope = {**scope, "headers": [*kept, (b"holdfast-session", self.names[-1])]}
        await super().__call__(scope, receive, send)


def answer(status: int, body: Any) -> list[dict[str, Any]]:
    """A response as ASGI has it."""
    headers = [(b"content-type", b"application/json")]
    return [
        {"type": "http.response.start", "status": status, "headers": headers},
        {"type": "http.response.body", "body": json.dumps(body).encode()},
    ]


BUGS = {bug.__name__: bug for bug in Leaky.__subclasses__()}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("bug", choices=sorted(BUGS))
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    application = OverHttp({"calyx-replay": Deferred("calyx-replay")}).application()
    uvicorn.run(BUGS[options.bug](application), host="127.0.0.1", port=options.port, log_level="error")
