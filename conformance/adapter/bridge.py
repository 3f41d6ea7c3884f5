"""An adapter for an implementation that speaks protocol v1 over HTTP: `python -m holdfast.conformance.adapter.bridge`.

It asks over HTTP what the harness asks it over its pipes, one request after the other, over one connection. With
`--start` it starts the server as a child in its own process group, so that what befalls the worker befalls the server.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import http.client
import json
import os
import secrets
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Self
from urllib.parse import urlsplit

from holdfast.conformance.adapter.lines import answer_lines
from holdfast.servers.pace import scaled
from holdfast.specs import SpecError, kept_terms, strictjson
from holdfast.specs.binding import SESSION, path_of, route_of
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.routes import Route

# Stands in the command and in the URL for the port on which the server is to listen. It is also in the variable PORT.
PORT = "{port}"
# A call of this method is one request of HTTP as it is given (`conformance/fuzz`). No contract has such a method.
RAW = "holdfast_http"
# Stands in a header of such a request for the name of the session.
OPEN_SESSION = "{session}"
# And this one for the name of the session that was closed last.
CLOSED_SESSION = "{closed}"
LOOPBACK = f"http://127.0.0.1:{PORT}"
_ALONE = "a URL alone gives no process that holdfast could start or end; give --start"
# Ports below those that systems give away by themselves.
_FIRST_PORT, _PORTS, _STRIDE = 10_000, 20_000, 7919
_POLL_S, _QUIT_S = 0.02, 2.0
# Between two packets, so that a server reads the first one alone.
_PACKET_S = 0.002
_FAILED = 1


class LostError(Exception):
    """The server is not there, or did not answer."""


class NoJson(str):
    """The body of a response that is no JSON."""


class Server:
    """The implementation at a URL, started here if a command is given. A context manager."""

    def __init__(self, url: str, start: Sequence[str]) -> None:
        self._port = _free_port() if start else 0
        self._start = [word.replace(PORT, str(self._port)) for word in start]
        self.url = url.replace(PORT, str(self._port))
        self._url = urlsplit(self.url)
        kind = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
        # Each request waits for its answer without end: only the harness knows the deadlines.
        self._connection = kind(self._url.hostname or "", self._url.port)
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start it, and wait until it listens; the harness waits no longer than for the start of any adapter."""
        if not self._start:
            return self
        environment = {**os.environ, "PORT": str(self._port)}
        # Standard output is for answers alone.
        try:
            self._child = subprocess.Popen(self._start, stdin=subprocess.DEVNULL, stdout=2, env=environment)
        except OSError as error:
            raise LostError(f"{shlex.join(self._start)} cannot be started: {error.strerror}") from error
        while self._ended() is None:
            try:
                with socket.create_connection((self._url.hostname or "", self._url.port or 80), 1.0):
                    return self
            except OSError:
                time.sleep(_POLL_S)
        raise LostError(f"the server ended with status {self._ended()} before it listened at {self.url}")

    def _ended(self) -> int | None:
        return None if self._child is None else self._child.poll()

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        if self._child is not None:
            self._child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(scaled(_QUIT_S))
            self._child.kill()
            self._child.wait()

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Any]:
        """The status and the body of a response, NoJson where the body is none. Raises LostError."""
        data = json.dumps(body, ensure_ascii=False).encode()
        whole = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        try:
            self._forget_closed()
            self._connection.request(method, path, data, whole)
            response = self._connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            ended = self._ended()
            why = f"{type(error).__name__}: {error}" if ended is None else f"it ended with status {ended}"
            raise LostError(f"no answer from the server at {self.url}: {why}") from error
        try:
            return response.status, strictjson.loads(text) if text else None
        except StrictJsonError:
            return response.status, NoJson(text[:160].decode("utf-8", "replace"))

    def send(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """What came of a request that is sent as it is given: status 0 where no response came."""
        body = base64.b64decode(args["body"])
        try:
            self._forget_closed()
            self._connection.putrequest(args["method"], args["target"], skip_accept_encoding=True)
            for name, value in args["headers"]:
                self._connection.putheader(name, value.encode())
            if args["packets"]:
                self._connection.endheaders()
                for packet in (body[: len(body) // 2], body[len(body) // 2 :]):
                    time.sleep(_PACKET_S)
                    self._connection.send(packet)
            else:
                self._connection.endheaders(body)
            response = self._connection.getresponse()
            status, headers, text = response.status, response.getheaders(), response.read()
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._connection.close()
            if self._ended() is not None:
                raise LostError(f"the server ended with status {self._ended()}") from error
            status, headers, text = 0, [], f"{type(error).__name__}: {error}".encode()
        return {
            "url": self.url,
            "status": status,
            "headers": [list(each) for each in headers],
            "body": base64.b64encode(text).decode("ascii"),
        }

    def _forget_closed(self) -> None:
        """Close a connection that the server has closed while nothing was asked; the next request makes a new one."""
        idle = self._connection.sock
        if idle is not None and select.select([idle], [], [], 0)[0]:
            self._connection.close()


def _free_port() -> int:
    """A port at which nobody listens. The search begins at the process id, so two bridges find different ports."""
    for step in range(_PORTS):
        port = _FIRST_PORT + (os.getpid() + step * _STRIDE) % _PORTS
        with socket.socket() as probe, contextlib.suppress(OSError):
            # What is left of old connections does not matter.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise LostError(f"all ports from {_FIRST_PORT} on are in use")


class Bridge:
    """Turns each request of the protocol into one of HTTP, and the response into an answer."""

    def __init__(self, server: Server, *, alone: bool) -> None:
        """`alone`: nothing but the URL is known."""
        self._server, self._alone = server, alone
        self._session: dict[str, str] = {}
        self._contract = self._closed = ""

    def answer(self, request: Mapping[str, Any]) -> Any:
        """The members of the answer. What is no answer comes as it is: the harness refuses it. Raises LostError."""
        op = request["op"]
        if op == "bye":
            return {"outcome": "ok"}
        if op not in ("hello", "open") and not self._session:
            return {"outcome": "fault", "detail": "no session is open"}
        if op == "call" and request["method"] == RAW:
            return {"outcome": "ok", "value": self._server.send(self._raw(request["args"]))}
        if op == "call":
            return self._called(request)
        if op == "open":
            self._session, self._contract = {SESSION: secrets.token_hex(16)}, request["contract"]
        status, body = self._server.ask("POST", path_of(op), self._session, request)
        if op == "close":
            self._closed, self._session = self._session[SESSION], {}
        if status != 200 or not isinstance(body, dict):
            if op == "hello":
                asked = f"POST {self._server.url}{path_of(op)}: expected status 200 and an answer to hello"
                raise LostError(f"{asked}, got {_strange(status, body)['strange']}")
            return _strange(status, body)
        return _without_processes(body) if op == "hello" and self._alone else body

    def _raw(self, args: Mapping[str, Any]) -> dict[str, Any]:
        stands = {OPEN_SESSION: self._session[SESSION], CLOSED_SESSION: self._closed}
        return {**args, "headers": [[name, _put(value, stands)] for name, value in args["headers"]]}

    def _called(self, request: Mapping[str, Any]) -> Any:
        route, args = _route(self._contract, request["method"]), request["args"]
        if route is None or not isinstance(args, dict) or not route.carries(args):
            status, body = self._server.ask("POST", path_of("call"), self._session, request)
            return body if status == 200 and isinstance(body, dict) else _strange(status, body)
        path, headers = route.target(route.path, args), {**route.written(args, args), **self._session}
        status, body = self._server.ask(route.method, path, headers, route.body(args))
        found = None if isinstance(body, NoJson) and route.named(status) else route.message(status, body)
        return _strange(status, body) if found is None else found


def _put(value: str, stands: Mapping[str, str]) -> str:
    for word, name in stands.items():
        value = value.replace(word, name)
    return value


def _strange(status: int, body: Any) -> dict[str, Any]:
    """What stands for no answer: no member of it is one of the protocol."""
    return {"strange": f"status {status} with the body {body!r:.160}"}


def _without_processes(body: dict[str, Any]) -> Any:
    """The answer to hello, without what a URL alone cannot show."""
    with contextlib.suppress(KeyError, TypeError, AttributeError):
        for claim in body["ok"]["claims"]:
            claim["not_claimed"] = {**claim["not_claimed"], "kill": _ALONE, "concurrency": _ALONE}
    return body


@cache
def _route(contract: str, method: str) -> Route | None:
    """The route of a method; None for one that the contract does not have."""
    try:
        found = kept_terms(contract)
    except SpecError:
        return None
    return route_of(found, found.methods[method]) if method in found.methods else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve on standard input and output until `bye` or end of file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default=LOOPBACK)
    parser.add_argument("--start", type=shlex.split, default=[])
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with Server(options.url, options.start) as server:
            bridge = Bridge(server, alone=not options.start)
            answer_lines(bridge.answer)
    except LostError as error:
        print(f"error: {error}", file=sys.stderr)
        return _FAILED
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
