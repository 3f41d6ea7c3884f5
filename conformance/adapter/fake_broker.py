"""A broker that the kit plays for a daemon: a server on the loopback that answers what a case says.

To an HTTP request it has an answer, to one who connects by a WebSocket a handshake.

What comes is kept byte for byte, so that the harness itself judges whether each attempt sends the same.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from holdfast.servers.pace import scaled

# The handshake of a broker over a WebSocket, from the side of the broker that the kit plays

_CHUNK = 65536
_WAIT_S = 10.0


def handed_over(handler: BaseHTTPRequestHandler, handshake: bytes) -> int | None:
    """Send a handshake as one text message of two frames, after a ping; the code with which the other side closes.

    None where it closed without one, or what came was no request for a WebSocket.
    """
    protocol = ServerProtocol()
    lines = [handler.requestline, *(f"{name}: {value}" for name, value in handler.headers.items()), "", ""]
    protocol.receive_data("\r\n".join(lines).encode())
    (request,) = protocol.events_received() or (None,)
    link = handler.connection
    with contextlib.suppress(OSError):
        link.settimeout(_WAIT_S)
        if not isinstance(request, Request):
            return None
        protocol.send_response(protocol.accept(request))
        if protocol.state is State.OPEN:
            protocol.send_ping(b"holdfast")
            half = len(handshake) // 2
            protocol.send_text(handshake[:half], fin=False)
            protocol.send_continuation(handshake[half:], fin=True)
        while protocol.state is not State.CLOSED:
            for data in protocol.data_to_send():
                if data:
                    link.sendall(data)
            came = link.recv(_CHUNK)
            if not came:
                break
            protocol.receive_data(came)
            protocol.events_received()
            if protocol.close_rcvd is not None:
                link.sendall(b"".join(protocol.data_to_send()))
                break
    return None if protocol.close_rcvd is None else protocol.close_rcvd.code


# Stands for the peer's address in the config of a session, because the address differs from run to run.
PLACE = "{peer}"
# In a text of an answer these stand for the id of the request, as it was before it was percent-encoded, and for it in
# capitals.
ID, CAPITALS = "{client_message_id}", "{CLIENT_MESSAGE_ID}"
ID_HEADER = "client-message-id"
# Members of what is told to one who connects by a WebSocket: the bytes of the handshake, and that a close is due.
HANDSHAKE, CLOSES = "handshake", "closes"
# What is said where no answer is left: a broker that cannot do it now.
_NOTHING_LEFT: Mapping[str, Any] = {"status": 503}
# Of headers, those that a client chooses for itself and that say nothing of the send.
_OWN = frozenset({"host", "user-agent", "accept", "accept-encoding", "connection", "content-length", "date"})
# Of headers, those that end with a connection.
_HOPS = frozenset({"host", "connection", "accept-encoding"})
_MOST_BYTES = 1 << 20
# Between two bytes of an answer that drips.
_DRIP_S = 0.1
# An answer that is late comes when no sound client of these tests waits any more: as the limits of a client, it follows
# the factor of the run.
_LATE_S = 6.0


class FakeBroker:
    """One peer of one session. Its script is a queue of answers; see docs/case-language.md, `answers`."""

    def __init__(
        self, standing: Mapping[str, Mapping[str, Any]] | None = None, *, behind: Callable[[], str] = str
    ) -> None:
        """Listens when it returns. `standing` are answers by id, to requests for which the script has none.

        `behind` says where the broker is to which an answer `through` takes a request.
        """
        self._behind = behind
        self._script: deque[Mapping[str, Any]] = deque()
        self._standing = standing or {}
        self._received: list[dict[str, Any]] = []
        self._lock = threading.Condition()
        self._closed = threading.Event()
        peer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                peer.answer(self)

            def do_GET(self) -> None:
                peer.shake(self)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the library calls it
                """Nothing is logged."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{self.address}"

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def arm(self, answers: Sequence[Mapping[str, Any]]) -> None:
        """The answers to the next requests, in their order; what was armed before is gone."""
        with self._lock:
            self._script = deque(answers)

    def received(self) -> list[dict[str, Any]]:
        """Every request so far, in the order of their arrival. A WebSocket that is to be closed has a moment for it."""
        with self._lock:
            self._lock.wait_for(lambda: not any(CLOSES in each for each in self._received), scaled(_LATE_S) / 3)
            return [{name: part for name, part in each.items() if name != CLOSES} for each in self._received]

    def close(self) -> None:
        """End it. Answers that are late never come."""
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def shake(self, handler: BaseHTTPRequestHandler) -> None:
        """Send the handshake of a broker over a WebSocket, and keep the code with which the daemon closes it."""
        kept = {**_kept(handler, b""), "close_code": None}
        with self._lock:
            answer = self._script.popleft() if self._script else {}
            self._received.append({**kept, CLOSES: True} if answer.get(CLOSES) else kept)
            number = len(self._received) - 1
        handler.close_connection = True
        try:
            if HANDSHAKE in answer:
                code = handed_over(handler, base64.urlsafe_b64decode(answer[HANDSHAKE] + "=="))
                kept["close_code"] = code
        finally:
            with self._lock:
                self._received[number] = kept
                self._lock.notify_all()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Keep one request and answer it."""
        size = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(min(size, _MOST_BYTES))
        kept = _kept(handler, body)
        name = unquote(kept["headers"].get(ID_HEADER, ""))
        with self._lock:
            self._received.append(kept)
            standing = self._standing.get(name, _NOTHING_LEFT)
            answer = self._script.popleft() if self._script else standing
        if answer.get("through"):
            answer = self._through(handler, body, answer.get("how", "whole"))
        self._send(handler, answer, name)

    def _through(self, handler: BaseHTTPRequestHandler, body: bytes, how: str) -> Mapping[str, Any]:
        """What the broker behind says to this request: nothing if it gets half of it, or is not there."""
        place = urlsplit(self._behind())
        answer: Mapping[str, Any] = {"how": "drop"}
        try:
            for _ in range(2 if how == "again" else 1):
                connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=scaled(_LATE_S))
                with contextlib.closing(connection):
                    connection.putrequest("POST", handler.path, skip_accept_encoding=True)
                    for name, value in handler.headers.items():
                        if name.lower() not in _HOPS:
                            connection.putheader(name, value)
                    connection.endheaders(body[: len(body) // 2] if how == "half" else body)
                    if how == "half":
                        return answer
                    response = connection.getresponse()
                    answer = {"status": response.status, "data": response.read(), "how": how}
        except (OSError, http.client.HTTPException):
            return {"how": "drop"}
        return answer

    def _send(self, handler: BaseHTTPRequestHandler, answer: Mapping[str, Any], name: str) -> None:
        how, status = answer.get("how", "whole"), answer.get("status", 503)
        handler.close_connection = True
        if how == "drop":
            return
        if how == "late" and self._closed.wait(scaled(_LATE_S)):
            return
        data = json.dumps(_filled(answer["body"], name)).encode() if "body" in answer else b""
        data = answer["raw"].encode() if "raw" in answer else answer.get("data", data)
        # Who keeps connections has to be told that this one ends (RFC 9112 section 9.3).
        more = [f"{header}: {value}" for header, value in answer.get("headers", {}).items()]
        lines = ("Content-Type: application/json", f"Content-Length: {len(data)}", "Connection: close", *more)
        whole = "\r\n".join((f"HTTP/1.1 {status} {how}", *lines, "", "")).encode() + data
        # The daemon may no longer wait for it.
        with contextlib.suppress(OSError):
            if how == "drip":
                for at in range(len(whole)):
                    handler.wfile.write(whole[at : at + 1])
                    handler.wfile.flush()
                    if self._closed.wait(scaled(_DRIP_S)):
                        break
                return
            handler.wfile.write(whole[: len(whole) - max(1, len(data) // 2)] if how == "cut" else whole)
            if how == "twice":
                handler.wfile.write(whole)
            handler.wfile.flush()


def _kept(handler: BaseHTTPRequestHandler, body: bytes) -> dict[str, Any]:
    headers = {name.lower(): value for name, value in handler.headers.items() if name.lower() not in _OWN}
    return {"path": handler.path, "headers": headers, "body": base64.urlsafe_b64encode(body).rstrip(b"=").decode()}


def _filled(part: Any, name: str) -> Any:
    """A body with the id of the request where `ID` and `CAPITALS` stand."""
    if isinstance(part, Mapping):
        return {key: _filled(value, name) for key, value in part.items()}
    return part.replace(ID, name).replace(CAPITALS, name.upper()) if isinstance(part, str) else part
