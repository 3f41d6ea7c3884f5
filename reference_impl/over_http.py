"""Adapter protocol v1 over HTTP, the same for every contract (docs/http.md)."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from holdfast.reference_impl.adapter import Adapter
from holdfast.reference_impl.answers import Answer, Senseless, to_message
from holdfast.reference_impl.registry import Deferred
from holdfast.specs import Contract, kept_terms
from holdfast.specs.binding import MALFORMED, NO_REQUEST, REQUESTS, SESSION, openapi_of, path_of, route_of
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.routes import NO_ARGUMENTS, Route
from holdfast.specs.schema import explain
from holdfast.specs.strictjson import loads

_LOOPBACK = "127.0.0.1"
_NO_SUCH_TYPE = 415


@dataclass(slots=True)
class _Session:
    """The adapter of one worker: its requests come one after the other."""

    adapter: Adapter
    lock: threading.Lock = field(default_factory=threading.Lock)


class OverHttp:
    """Turns HTTP requests into those of the protocol, and answers into responses."""

    def __init__(self, implementations: Mapping[str, Deferred]) -> None:
        self._implementations = implementations
        self._sessions: dict[str, _Session] = {}

    def application(self) -> FastAPI:
        """All routes of all contracts, and the document of each."""
        made = FastAPI(openapi_url=None)
        for request in REQUESTS:
            made.add_api_route(path_of(request), self._protocol(request), methods=["POST"])
        for name in self._implementations:
            contract = kept_terms(name)
            for method in contract.methods.values():
                route = route_of(contract, method)
                made.add_api_route(route.path, self._method(contract, method.name, route), methods=[route.method])
            made.add_api_route(f"/{name}/openapi.json", self._document(contract), methods=["GET"])
        return made

    def _document(self, contract: Contract) -> Any:
        async def told() -> JSONResponse:
            return JSONResponse(openapi_of(contract))

        return told

    def _protocol(self, op: str) -> Any:
        async def answered(request: Request) -> Response:
            if (wrong := _misused(request, {})) is not None:
                return wrong
            given = _read(await request.body())
            if not isinstance(given, dict):
                return _no_request("expected a JSON object as the body")
            return await self._answered(request, {**given, "op": op})

        return answered

    def _method(self, contract: Contract, name: str, route: Route) -> Any:
        known = contract.methods[name]

        async def answered(request: Request) -> Response:
            if (wrong := _misused(request, route.headers)) is not None:
                return wrong
            places = {**request.path_params, **route.read(request.headers)}
            given = _read(await request.body())
            if not isinstance(given, dict) or places.keys() & given.keys():
                return _no_request("expected a JSON object as the body, with the arguments that travel there")
            args = {**given, **places}
            if MALFORMED not in known.reasons and (problem := explain(known.args, args)) is not None:
                return _refused(NO_ARGUMENTS, f"expected arguments that fit the schema: {problem}")
            asked = {"op": "call", "contract": contract.name, "method": name, "args": args}
            return await self._answered(request, asked, route)

        return answered

    async def _answered(self, request: Request, asked: Mapping[str, Any], route: Route | None = None) -> Response:
        name = request.headers.get(SESSION, "")
        if asked["op"] == "hello":
            return JSONResponse(Adapter(self._implementations).answer(asked))
        if asked["op"] == "open" and name and name not in self._sessions:
            self._sessions[name] = _Session(Adapter(self._implementations))
        session = self._sessions.get(name)
        if session is None:
            return _no_request(f"expected the name of an open session in the header {SESSION}; open one first")
        answer = await run_in_threadpool(self._locked, session, asked)
        message = to_message(answer)
        if asked["op"] == "close" or (asked["op"] == "open" and message["outcome"] != "ok"):
            self._sessions.pop(name, None)
        if route is None:
            return JSONResponse(message)
        if isinstance(answer, Senseless):
            return _refused(NO_ARGUMENTS, answer.detail)
        status, body = route.response(message)
        return Response(status_code=status) if body is None else JSONResponse(body, status)

    def close(self) -> None:
        """Close every session, and what the implementations share."""
        for session in self._sessions.values():
            session.adapter.close()
        for implementation in self._implementations.values():
            implementation.shut_down()

    def _locked(self, session: _Session, asked: Mapping[str, Any]) -> Answer:
        with session.lock:
            return session.adapter.answer_of(asked)


def _read(body: bytes) -> Any:
    """What a body says; None where it is no I-JSON."""
    try:
        return loads(body)
    except StrictJsonError:
        return None


def _misused(request: Request, declared: Mapping[str, str]) -> JSONResponse | None:
    """What is said of a request whose headers leave open what it asks, or whose body is no plain JSON."""
    for name in ("Content-Type", "Content-Encoding", SESSION, *declared.values()):
        if len(request.headers.getlist(name)) > 1:
            return _no_request(f"expected the header {name} once")
    kind, _, parameters = request.headers.get("Content-Type", "").partition(";")
    charset = parameters.strip().lower().replace('"', "")
    if kind.strip().lower() != "application/json" or charset not in ("", "charset=utf-8"):
        return _refused(_NO_SUCH_TYPE, "expected the content type application/json")
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        return _refused(_NO_SUCH_TYPE, "expected a body without a content encoding")
    return None


def _no_request(text: str) -> JSONResponse:
    return _refused(NO_REQUEST, text)


def _refused(status: int, text: str) -> JSONResponse:
    return JSONResponse({"detail": text}, status)


def serve(implementations: Mapping[str, Deferred], port: int) -> None:
    """Serve on the loopback until SIGTERM or SIGINT."""
    service = OverHttp(implementations)
    try:
        uvicorn.run(service.application(), host=_LOOPBACK, port=port, log_level="warning", access_log=False)
    finally:
        service.close()
