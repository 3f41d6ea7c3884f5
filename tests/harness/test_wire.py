"""The kit's own side of a socket: only a whole response of the route is an answer, all else says why there is none."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.conformance.adapter.messages import Event
from holdfast.conformance.adapter.wire import Wire, wires_of
from holdfast.conformance.verdict import FailureMode
from holdfast.specs.routes import Route

ROUTE = Route(
    method="POST",
    path="/v1/{place}/things",
    websocket="/v1/{place}/socket",
    headers={"who": "Who"},
    connection=("who",),
    statuses={"new": 201, "prior": 200, "GONE": 404, "BUSY": 503},
)
ARGS = {"place": "here", "who": "me", "what": "ü"}
NEW = {"outcome": "accepted", "effect": "new", "value": {"id": 1}}
Peer = Callable[[socket.socket], None]


@pytest.fixture
def served() -> Iterator[Callable[[Peer], str]]:
    """Starts a peer for one connection: its endpoint."""
    listeners: list[socket.socket] = []
    peers: list[threading.Thread] = []

    def serve(peer: Peer) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def run() -> None:
            link, _ = listener.accept()
            with link:
                peer(link)

        peers.append(threading.Thread(target=run, daemon=True))
        peers[-1].start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield serve
    for each in peers:
        each.join(timeout=60)
    for listener in listeners:
        listener.close()


def head_of(link: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += link.recv(4096)
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"\r\nContent-Length: (\d+)", head)
    while length is not None and len(body) < int(length[1]):
        body += link.recv(4096)
    return head + b"\r\n\r\n" + body


def http(status: str, body: bytes, *, length: int | None = None) -> Peer:
    def peer(link: socket.socket) -> None:
        head_of(link)
        size = len(body) if length is None else length
        link.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\n\r\n".encode() + body)

    return peer


def asked(endpoint: str, *, websocket: bool = False) -> Any:
    sending = Wire(endpoint, ROUTE, websocket).connect(ARGS, timeout=60)
    sending.send()
    return sending.wait(60)


def test_a_request_is_sent_as_the_route_says(served: Callable[[Peer], str]) -> None:
    came: list[bytes] = []

    def peer(link: socket.socket) -> None:
        data = head_of(link)
        while not data.endswith(b"}"):
            data += link.recv(4096)
        came.append(data)
        link.sendall(b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n" + b'{"id":1}\r\n0\r\n\r\n')

    assert asked(served(peer)) == NEW
    head, _, body = came[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/here/things HTTP/1.1\r\n")
    assert b"\r\nWho: me" in head
    assert json.loads(body) == {"what": "ü"}


def test_the_packets_of_a_request_end_within_a_letter(served: Callable[[Peer], str]) -> None:
    came: list[bytes] = []

    def peer(link: socket.socket) -> None:
        while not b"".join(came).endswith(b"}"):
            came.append(link.recv(4096))
        link.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 8\r\n\r\n" + b'{"id":1}')

    assert asked(served(peer)) == NEW
    assert came[-2].endswith("ü".encode()[:1])
    assert came[-1].startswith("ü".encode()[1:])


@pytest.mark.parametrize(
    ("peer", "answer"),
    [
        (http("200 OK", b'{"id":1}'), {**NEW, "effect": "prior"}),
        (http("404 Not Found", b""), {"outcome": "refused", "reason": "GONE"}),
        (http("404 Not Found", b"{}"), {"outcome": "refused", "reason": "GONE"}),
        (http("500 Oops", b""), {"outcome": "fault", "detail": "status 500"}),
    ],
)
def test_a_whole_response_is_an_answer(served: Callable[[Peer], str], peer: Peer, answer: Any) -> None:
    assert asked(served(peer)) == answer


def test_a_slow_response_is_waited_for_in_parts(served: Callable[[Peer], str]) -> None:
    def peer(link: socket.socket) -> None:
        head_of(link)
        link.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 8\r\n\r\n")
        time.sleep(0.3)
        link.sendall(b'{"id":1}')

    sending = Wire(served(peer), ROUTE, websocket=False).connect(ARGS, timeout=60)
    sending.send()
    assert sending.wait(0.05) is None
    assert sending.wait(60) == NEW


def test_where_nothing_listens_there_is_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for websocket in (False, True):
        found = asked(f"http://127.0.0.1:{port}", websocket=websocket)
        assert isinstance(found, Event)
        assert found.kind is FailureMode.EOF


def websocket(*frames: bytes, accept: bytes | None = None, status: bytes = b"101 Switching Protocols") -> Peer:
    def peer(link: socket.socket) -> None:
        head = head_of(link)
        key = next(line.split(b": ")[1] for line in head.split(b"\r\n") if line.startswith(b"Sec-WebSocket-Key"))
        due = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        upgrade = b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: "
        link.sendall(b"HTTP/1.1 " + status + upgrade + (accept or due) + b"\r\n\r\n")
        if not status.startswith(b"101"):
            # A response without a length ends with its connection.
            return
        with contextlib.suppress(OSError):
            # Nothing comes of a client that refuses the handshake.
            if link.recv(4096)[:1] in (b"\x01", b"\x81"):
                for each in frames:
                    link.sendall(each)

    return peer


def frame(kind: int, content: bytes) -> bytes:
    size = len(content)
    return struct.pack(">BB", kind, size) + content if size < 126 else struct.pack(">BBH", kind, 126, size) + content


TOLD = frame(0x81, b'{"code":201,"body":{"id":1}}')


@pytest.mark.parametrize(
    "frames",
    [
        [TOLD],
        [frame(0x89, b"are you there"), TOLD],
        [TOLD[:1], TOLD[1:7], TOLD[7:]],
        [frame(0x81, b'{"code":201,"body":{"id":1}}' + b" " * 300)],
        [frame(0x01, b'{"code":201,'), frame(0x89, b"between"), frame(0x80, b'"body":{"id":1}}')],
        [TOLD + frame(0x88, struct.pack(">H", 1000))],
    ],
)
def test_a_frame_is_an_answer_whatever_comes_before_it(served: Callable[[Peer], str], frames: list[bytes]) -> None:
    assert asked(served(websocket(*frames)), websocket=True) == NEW


HTTP: list[tuple[Peer, FailureMode]] = [
    (http("201 Created", b'{"id":1}', length=9), FailureMode.EOF),
    (http("201 Created", b'{"id":1,"id":2}'), FailureMode.GARBAGE),
    (http("201 Created", b"created"), FailureMode.GARBAGE),
    (http("202 Accepted", b'{"id":1}'), FailureMode.GARBAGE),
    (http("301 Moved", b""), FailureMode.GARBAGE),
    (http("404 Not Found", b"<html>"), FailureMode.GARBAGE),
    (socket.socket.close, FailureMode.EOF),
    (lambda link: link.sendall(b"HTTP/1.1 2"), FailureMode.EOF),
    (lambda link: link.sendall(b"SSH-2.0-x\r\n"), FailureMode.EOF),
]
WEBSOCKET: list[tuple[Peer, FailureMode]] = [
    (websocket(frame(0x88, struct.pack(">H", 4011))), FailureMode.EOF),
    (websocket(), FailureMode.EOF),
    (websocket(TOLD[:9]), FailureMode.EOF),
    (websocket(frame(0x82, b"{}")), FailureMode.GARBAGE),
    (websocket(frame(0x01, b'{"code":201,"body":{"id":1}}')), FailureMode.EOF),
    (websocket(frame(0x80, b"{}")), FailureMode.GARBAGE),
    (websocket(frame(0x81, b"\xff")), FailureMode.GARBAGE),
    (websocket(frame(0x81, b"{}")), FailureMode.GARBAGE),
    (websocket(frame(0x81, b"[201]")), FailureMode.GARBAGE),
    (websocket(frame(0x81, b'{"code":299,"body":{}}')), FailureMode.GARBAGE),
    (websocket(TOLD, accept=b"x"), FailureMode.EOF),
    (websocket(TOLD, status=b"200 OK"), FailureMode.EOF),
]


@pytest.mark.parametrize(
    ("peer", "kind", "over"), [*((*row, False) for row in HTTP), *((*row, True) for row in WEBSOCKET)]
)
def test_what_is_no_response_of_the_route_is_no_answer(
    served: Callable[[Peer], str], peer: Peer, kind: FailureMode, over: bool
) -> None:
    found = asked(served(peer), websocket=over)
    assert isinstance(found, Event)
    assert found.kind is kind


def by_name(who: str, number: int) -> bytes:
    return frame(0x81, json.dumps({"code": 201, "body": {"what": who, "id": number}}).encode())


@pytest.mark.parametrize(
    ("frames", "told"),
    [
        ([by_name("a", 1), by_name("b", 2)], [1, 2]),
        ([by_name("b", 2), by_name("a", 1)], [1, 2]),
        ([by_name("b", 2), by_name("b", 3)], [3, 2]),
        ([TOLD, by_name("b", 2)], [1, 2]),
        ([by_name("b", 2), TOLD], [1, 2]),
        ([by_name("b", 2) + frame(0x88, struct.pack(">H", 1000))], [None, 2]),
    ],
)
def test_each_request_on_a_shared_connection_gets_the_answer_that_names_it(
    served: Callable[[Peer], str], frames: list[bytes], told: list[int | None]
) -> None:
    paired = Route(method="POST", path="/", websocket="/", statuses={"new": 201}, paired="what")
    wire = Wire(served(websocket(b"".join(frames))), paired, websocket=True)
    first = wire.connect({"what": "a"}, timeout=60)
    second = wire.connect({"what": "b"}, timeout=60, beside=first)
    first.send()
    second.send()
    came = [first.wait(60), second.wait(60)]
    assert [None if isinstance(each, Event) or each is None else each["value"]["id"] for each in came] == told


def test_the_transport_that_was_asked_for_is_never_replaced() -> None:
    routes, endpoint = {"put": ROUTE}, {"outcome": "ok", "value": {"endpoint": "http://127.0.0.1:1"}}
    assert wires_of(routes, None, {"outcome": "ok"}) == {}
    assert wires_of(routes, "pipe", endpoint) == {}
    assert wires_of(routes, None, endpoint)["put"] == Wire("http://127.0.0.1:1", ROUTE, websocket=False)
    assert wires_of(routes, "websocket", endpoint)["put"].websocket
    sending = wires_of(routes, "http", {"outcome": "ok"})["put"].connect(ARGS, timeout=1)
    sending.send()
    assert isinstance(sending.wait(1), Event)
