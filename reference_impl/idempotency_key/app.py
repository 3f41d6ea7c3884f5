"""The service over HTTP: two routes whose handlers make one effect each, at the address that they are given."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool

from holdfast.reference_impl.idempotency_key.guard import Guard
from holdfast.reference_impl.idempotency_key.guard import Request as Asked
from holdfast.reference_impl.idempotency_key.terms import REPLAYED, Answer, Reason, problem

_PRINCIPALS = {"Bearer a": "a", "Bearer b": "b", "Bearer a-renewed": "a"}
_EFFECT_S = 300.0
THROW = "holdfast-throw"


class ThrownError(Exception):
    """The handler throws."""


class Application:
    """What FastAPI serves."""

    def __init__(self, guard: Guard, sink: str) -> None:
        self.guard, self._sink = guard, urlsplit(sink)

    def app(self) -> FastAPI:
        """The routes."""
        app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
        for path in ("/orders", "/accounts/{account}/refunds"):
            app.add_api_route(path, self.post, methods=["POST"])
        app.add_api_route("/orders", self.get, methods=["GET"])
        return app

    async def post(self, request: Request) -> Response:
        """A request that has an effect."""
        # Read whole before anything is decided. A client that goes away later does not end what was begun.
        body = await request.body()
        answer = await run_in_threadpool(self.answer, request, body)
        return self.sent(answer)

    async def get(self) -> Response:
        """A safe method, to which a key means nothing."""
        return Response(b'{"orders":[]}', media_type="application/json")

    def answer(self, request: Request, body: bytes) -> Answer:
        """Who asks comes first: a stranger learns nothing of any key."""
        principal = self.principal(request)
        if principal is None:
            return problem(Reason.UNAUTHENTICATED)
        asked = Asked(
            request.method,
            request.url.path,
            request.url.query,
            request.headers.get("Content-Type", ""),
            body,
            [value for name, value in request.headers.raw if name == b"idempotency-key"],
            principal,
        )
        return self.guard.answer(asked, self.effect)

    def principal(self, request: Request) -> str | None:
        """Who asks, if it is known."""
        return _PRINCIPALS.get(request.headers.get("Authorization", ""))

    def effect(self, body: bytes) -> Answer:
        """The handler: its one effect, and the answer that it is told. Raises what it throws."""
        connection = http.client.HTTPConnection(self._sink.hostname or "", self._sink.port, timeout=_EFFECT_S)
        try:
            connection.request("POST", self._sink.path, body, {"Content-Type": "application/octet-stream"})
            told = connection.getresponse()
            text = told.read()
        finally:
            connection.close()
        if told.getheader(THROW):
            raise ThrownError
        passed = ("content-type", "location", "etag", "link", "set-cookie")
        return Answer(told.status, tuple(pair for pair in told.getheaders() if pair[0].lower() in passed), text)

    def sent(self, answer: Answer) -> Response:
        """The response of an answer."""
        response = Response(answer.body, answer.status)
        for name, value in answer.headers:
            response.headers.append(name, value)
        if answer.replayed:
            response.headers[REPLAYED] = "true"
        return response
