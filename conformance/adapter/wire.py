"""The kit's own side of a socket: requests of a routed operation over HTTP or a WebSocket, and their answers.

If an adapter's answer to `open` names an endpoint, its routed operations are sent here and not over its pipe. Each
response becomes an answer of the protocol. What is no answer becomes the same event as over the pipe.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from holdfast.conformance.adapter.messages import MAX_LINE, Event
from holdfast.conformance.verdict import FailureMode
from holdfast.specs import strictjson
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.routes import Route

_CHUNK = 65536
# Between two packets, so that they are read one by one.
_APART_S = 0.005

# Values of the config `transport`; the third is `http`.
PIPE, WEBSOCKET = "pipe", "websocket"
# Stands in the config of a session for the endpoint that worker 0 has said.
ENDPOINT = "{endpoint}"

Answer = dict[str, Any]
# The status and the body of a response.
Message = tuple[int, Any]


class Sending:
    """One request that can be sent; by itself one that cannot, because its connection was `lost`."""

    def __init__(self, lost: Event | None = None) -> None:
        self._lost = lost

    def send(self) -> None:
        """Send it. What fails is found by `wait`."""

    def wait(self, seconds: float) -> Answer | Event | None:
        """The answer, or an event that says why none came. None if nothing came within `seconds`; then ask again."""
        del seconds
        return self._lost


@dataclass(frozen=True, slots=True)
class Wire:
    """Where the requests of one operation go. `websocket` says over which of the two."""

    endpoint: str
    route: Route
    websocket: bool

    def connect(self, args: Mapping[str, Any], *, timeout: float, beside: Sending | None = None) -> Sending:
        """Connect for one request, which is sent later: then nothing but its bytes is left to be done.

        Over a WebSocket it shares the connection of the request `beside` it.
        """
        if isinstance(beside, _WebSocket):
            return _WebSocket(beside.channel, self, args)
        link: _Link | None = None
        try:
            place = urlsplit(self.endpoint)
            link = _Link(socket.create_connection((place.hostname or "", place.port or 0), timeout))
            if not self.websocket:
                return _Http(link, self, args)
            return _WebSocket(_Channel(link, self, args, until=time.monotonic() + timeout), self, args)
        except (OSError, ValueError) as error:
            if link is not None:
                link.close()
            return Sending(Event(FailureMode.EOF, f"no connection to {self.endpoint}: {error}"))


def wires_of(routes: Mapping[str, Route], transport: str | None, opened: Mapping[str, Any] | None) -> dict[str, Wire]:
    """Where the routed operations of a session go, by its config and the answer to its `open`; none over the pipe.

    Without a `transport` an endpoint that `open` says is used, over HTTP. One that is asked for and not there is no
    endpoint, so that each request fails: what was asked for is never replaced by the pipe.
    """
    endpoint = endpoint_of(opened)
    if transport == PIPE or (transport is None and endpoint is None):
        return {}
    return {name: Wire(endpoint or "", route, transport == WEBSOCKET) for name, route in routes.items()}


def endpoint_of(opened: Mapping[str, Any] | None) -> str | None:
    """Where an adapter listens, by its answer to `open`; None if it does not."""
    said = (opened or {}).get("value")
    endpoint = said.get("endpoint") if isinstance(said, dict) else None
    return endpoint if isinstance(endpoint, str) else None


class _Link:
    """What has come over a connection so far."""

    def __init__(self, link: socket.socket) -> None:
        self._socket = link
        self.data = bytearray()
        self.ended = False

    def send(self, data: bytes) -> None:
        """Raises OSError."""
        self._socket.sendall(data)

    def more(self, until: float) -> bool:
        """Whether more came, or the end, before that moment of the monotonic clock. Raises OSError."""
        left = until - time.monotonic()
        if left <= 0:
            return False
        self._socket.settimeout(left)
        try:
            chunk = self._socket.recv(_CHUNK)
        except TimeoutError:
            return False
        self.data += chunk
        self.ended = not chunk
        return True

    def close(self) -> None:
        self._socket.close()


class _Request(Sending):
    """One request over a link."""

    def __init__(self, link: _Link, wire: Wire, args: Mapping[str, Any]) -> None:
        super().__init__()
        self._link, self._wire, self._args = link, wire, args

    def _sent(self, data: bytes) -> None:
        try:
            self._link.send(data)
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> Event:
        self._link.close()
        self._lost = Event(FailureMode.EOF, f"the connection was lost: {error}")
        return self._lost


class _Http(_Request):
    """Over HTTP/1.1: the response ends with the connection."""

    def send(self) -> None:
        """See `Sending`."""
        route = self._wire.route
        body = json.dumps(route.body(self._args), ensure_ascii=False).encode()
        whole = {
            "Host": urlsplit(self._wire.endpoint).netloc,
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Connection": "close",
            **route.written(self._args, route.headers),
        }
        head = f"{route.method} {route.target(route.path, self._args)} HTTP/1.1"
        lines = [head, *(f"{name}: {value}" for name, value in whole.items()), "", ""]
        at = _within_a_letter(body)
        self._sent("\r\n".join(lines).encode() + body[:at])
        if at < len(body):
            # The rest is a packet of its own. Who has answered without it is found by `wait`.
            time.sleep(_APART_S)
            with contextlib.suppress(OSError):
                self._link.send(body[at:])

    def wait(self, seconds: float) -> Answer | Event | None:
        """See `Sending`."""
        until = time.monotonic() + seconds
        try:
            while self._lost is None and not self._link.ended and len(self._link.data) <= MAX_LINE:
                if not self._link.more(until):
                    return None
        except OSError as error:
            # What came before it counts.
            lost = self._lose(error)
            return self._read() if self._link.data else lost
        self._link.close()
        return self._lost or self._read()

    def _read(self) -> Answer | Event:
        response = http.client.HTTPResponse(_Received(bytes(self._link.data)))  # type: ignore[arg-type]
        try:
            response.begin()
            body = response.read()
        except (http.client.HTTPException, OSError, ValueError) as error:
            cut = "the response ended early" if self._link.data else "the connection was closed without a response"
            return Event(FailureMode.EOF, f"{cut} ({type(error).__name__})")
        try:
            value = strictjson.loads(body) if body else None
        except StrictJsonError as error:
            return Event(FailureMode.GARBAGE, f"status {response.status} with a body that is no JSON: {error}")
        return _answer(self._wire.route, response.status, value)


class _Received(io.BytesIO):
    """What `http.client` takes for a socket: bytes that are here already."""

    def makefile(self, _mode: str) -> io.BytesIO:
        """The bytes as a file."""
        return self


class _Channel:
    """A WebSocket after its handshake, the requests that are open on it, and what came that names none of them."""

    def __init__(self, link: _Link, wire: Wire, args: Mapping[str, Any], *, until: float) -> None:
        """Shake hands. Raises OSError, ValueError."""
        self.link, route = link, wire.route
        self.open: list[_WebSocket] = []
        self.protocol = ClientProtocol(
            parse_uri(f"ws://{urlsplit(wire.endpoint).netloc}{route.target(route.websocket or '', args)}"),
            max_size=MAX_LINE,
        )
        self._part = b""
        self.others: list[Message | Event] = []
        request = self.protocol.connect()
        request.headers.update(route.written(args, route.connection))
        self.protocol.send_request(request)
        self.exchange()
        while self.protocol.state is State.CONNECTING and self.protocol.handshake_exc is None:
            if link.ended or not link.more(until):
                raise ValueError("the handshake of the WebSocket was not answered")
            self.exchange()
        if self.protocol.handshake_exc is not None:
            raise ValueError(f"the handshake of the WebSocket was refused: {self.protocol.handshake_exc}")

    def exchange(self) -> None:
        """Hand on what came, and send what it asks for, such as a pong. Raises OSError."""
        came, self.link.data = bytes(self.link.data), bytearray()
        if came:
            self.protocol.receive_data(came)
        for frame in self.protocol.events_received():
            if isinstance(frame, Frame):
                self._take(frame)
        self.link.send(b"".join(self.protocol.data_to_send()))

    def _take(self, frame: Frame) -> None:
        if frame.opcode is Opcode.CLOSE:
            code = self.protocol.close_code
            self.others.append(Event(FailureMode.EOF, f"the WebSocket was closed with code {code}"))
        elif frame.opcode is Opcode.BINARY:
            self.others.append(Event(FailureMode.GARBAGE, "a binary frame, where a text was expected"))
        elif frame.opcode in (Opcode.TEXT, Opcode.CONT):
            self._part += frame.data
            if frame.fin:
                message, self._part = _message(self._part), b""
                if not any(request.takes(message) for request in self.open):
                    self.others.append(message)

    def failed(self) -> Event | None:
        """Why no more messages will come; None if they may."""
        failed = self.protocol.parser_exc
        if failed is not None and not isinstance(failed, EOFError):
            return Event(FailureMode.GARBAGE, f"what is no frame of a WebSocket: {failed}")
        return Event(FailureMode.EOF, "the WebSocket was closed without an answer") if self.link.ended else None


class _WebSocket(_Request):
    """Over a WebSocket: one text message each way."""

    def __init__(self, channel: _Channel, wire: Wire, args: Mapping[str, Any]) -> None:
        super().__init__(channel.link, wire, args)
        self.channel = channel
        channel.open.append(self)
        self._came: Message | None = None

    def send(self) -> None:
        """See `Sending`."""
        text = json.dumps(self._wire.route.frame(self._args), ensure_ascii=False).encode()
        at, protocol = _within_a_letter(text), self.channel.protocol
        protocol.send_text(text[:at], fin=at == len(text))
        if at < len(text):
            # A control frame may come between the parts of a message (RFC 6455, 5.4).
            protocol.send_ping(b"")
            protocol.send_continuation(text[at:], fin=True)
        self._sent(b"".join(protocol.data_to_send()))

    def wait(self, seconds: float) -> Answer | Event | None:
        """See `Sending`."""
        until = time.monotonic() + seconds
        lost: OSError | None = None
        while self._lost is None:
            found = self._found() or self.channel.failed()
            if found is not None or lost is not None:
                self.channel.open.remove(self)
                if not self.channel.open:
                    self._link.close()
                return found or self._lose(lost or OSError())
            try:
                if not self._link.more(until):
                    return None
                self.channel.exchange()
            except OSError as error:
                # What came before it counts.
                lost = error
        return self._lost

    def _found(self) -> Answer | Event | None:
        """The answer, or why there will be none; None if more has to come."""
        others = self.channel.others
        if self._came is None and others:
            first = others[0]
            if isinstance(first, Event):
                return first
            del others[0]
            self._came = first
        return None if self._came is None else _answer(self._wire.route, *self._came)

    def takes(self, message: Message | Event) -> bool:
        """Keep a message that names this request, and say so. It gets one."""
        name = self._wire.route.paired
        if self._came is not None or name is None or isinstance(message, Event):
            return False
        body = message[1]
        if not isinstance(body, dict) or name not in body or body[name] != self._args.get(name):
            return False
        self._came = message
        return True


def _message(text: bytes) -> Message | Event:
    """The status and the body that a text says."""
    try:
        message = strictjson.loads(text)
    except StrictJsonError as error:
        return Event(FailureMode.GARBAGE, f"a message that is no JSON: {error}")
    if not isinstance(message, dict) or not isinstance(message.get("code"), int):
        return Event(FailureMode.GARBAGE, "a message without a member `code`")
    return message["code"], message.get("body")


def _within_a_letter(text: bytes) -> int:
    """A place between the bytes of a letter; the end of a text in which each letter is one byte."""
    return next((at for at, byte in enumerate(text) if byte & 0xC0 == 0x80), len(text))


def _answer(route: Route, status: int, value: Any) -> Answer | Event:
    message = route.message(status, value)
    if message is None:
        return Event(FailureMode.GARBAGE, f"status {status} with body {value!r:.160}, which the route does not have")
    return message
