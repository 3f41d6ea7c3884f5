"""The broker over HTTP and WebSocket, on a port of the loopback: the routes that methods.yaml declares for `accept`."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route as HttpRoute
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from holdfast.reference_impl.answers import Answer, to_message
from holdfast.reference_impl.mesh_delivery.terms import Word
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.routes import Route
from holdfast.specs.strictjson import loads

_LOOPBACK = "127.0.0.1"

Call = Callable[[str, Any], Answer]


class BrokerHttp:
    """Turns requests into calls of one operation, and its answers into responses."""

    def __init__(self, operation: Word, route: Route, call: Call) -> None:
        """`call` may be called by several threads."""
        self.operation = operation
        self.route = route
        self.call = call

    def application(self) -> Starlette:
        """The routes."""
        routes: list[HttpRoute | WebSocketRoute] = [
            HttpRoute(self.route.path, self.over_http, methods=[self.route.method])
        ]
        if self.route.websocket is not None:
            routes.append(WebSocketRoute(self.route.websocket, self.over_websocket))
        return Starlette(routes=routes)

    async def over_http(self, request: Request) -> JSONResponse:
        """One request, one response."""
        found = await self.answered(await request.body(), request.path_params, request.headers)
        return JSONResponse(found["body"], status_code=found["code"])

    async def over_websocket(self, connection: WebSocket) -> None:
        """One frame, one frame, until the other side ends it."""
        await connection.accept()
        try:
            while True:
                text = await connection.receive_text()
                found = await self.answered(text.encode(), connection.path_params, connection.headers)
                await connection.send_text(json.dumps(found))
        except WebSocketDisconnect:
            return

    async def answered(self, body: bytes, path: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        """The status and the body that a request gets, over either of the two."""
        try:
            given = loads(body)
        except StrictJsonError:
            given = None
        places = {**path, **self.route.read(headers)}
        args = {**given, **places} if isinstance(given, dict) and not places.keys() & given.keys() else given
        return self.response(await run_in_threadpool(self.call, self.operation, args))

    def response(self, answer: Answer) -> dict[str, Any]:
        """The status and the body of an answer."""
        status, body = self.route.response(to_message(answer))
        return {"code": status, "body": body}


class Server:
    """The application on a free port, in a thread of its own."""

    def __init__(self, application: Starlette) -> None:
        """Listens when it returns."""
        self._socket = socket.create_server((_LOOPBACK, 0))
        config = uvicorn.Config(application, log_level="error", access_log=False, lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        host, port = self._socket.getsockname()
        return f"http://{host}:{port}"

    def close(self) -> None:
        """End it, and wait for the requests that are under way."""
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
