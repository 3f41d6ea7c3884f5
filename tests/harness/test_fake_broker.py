"""The broker that the kit plays: it keeps what comes byte for byte, and answers what it was given, however badly."""

from __future__ import annotations

import base64
import http.client
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from websockets.sync.client import connect

from holdfast.conformance.adapter.fake_broker import FakeBroker


@pytest.fixture
def peer() -> Iterator[FakeBroker]:
    """A peer that is closed at the end."""
    made = FakeBroker()
    yield made
    made.close()


def connected(peer: FakeBroker, *, timeout: float = 5.0) -> http.client.HTTPConnection:
    """A connection to it, which its first request makes."""
    place = urlsplit(peer.url)
    return http.client.HTTPConnection(place.hostname or "", place.port, timeout=timeout)


def asked(peer: FakeBroker, body: bytes = b"{}", *, timeout: float = 5.0) -> tuple[int, bytes]:
    """The status and the body of one answer. Raises OSError, http.client.HTTPException."""
    link = connected(peer, timeout=timeout)
    try:
        link.request("POST", "/v1/messages", body, {"Client-Message-Id": "c%201", "Mesh-Member": "me"})
        response = link.getresponse()
        return response.status, response.read()
    finally:
        link.close()


def test_requests_are_kept_in_their_order_byte_for_byte(peer: FakeBroker) -> None:
    bodies = [b'{"a": 1.0}', b"\xff\x00 no text", b""]
    for body in bodies:
        asked(peer, body)
    received = peer.received()
    assert [base64.urlsafe_b64decode(each["body"] + "==") for each in received] == bodies
    assert {each["path"] for each in received} == {"/v1/messages"}
    assert received[0]["headers"] == {"client-message-id": "c%201", "mesh-member": "me"}


def test_answers_come_in_their_order_and_behind_them_it_is_not_available(peer: FakeBroker) -> None:
    peer.arm([{"status": 201, "body": {"id": "{client_message_id}", "n": 1}}, {"status": 204}])
    assert asked(peer) == (201, b'{"id": "c 1", "n": 1}')
    assert asked(peer)[0] == 204
    assert asked(peer) == (503, b"")


def test_an_answer_has_the_headers_and_the_near_misses_of_an_id_that_are_asked_for(peer: FakeBroker) -> None:
    body = {"a": "{CLIENT_MESSAGE_ID}", "b": "{client_message_id} "}
    peer.arm([{"status": 503, "headers": {"Retry-After": "9"}, "body": body}])
    link = connected(peer)
    link.request("POST", "/v1/messages", b"{}", {"Client-Message-Id": "c%201"})
    response = link.getresponse()
    assert (response.getheader("Retry-After"), response.read()) == ("9", b'{"a": "C 1", "b": "c 1 "}')
    link.close()


def test_an_answer_that_drips_comes_byte_by_byte(peer: FakeBroker) -> None:
    peer.arm([{"status": 204, "how": "drip"}])
    place = urlsplit(peer.url)
    with socket.create_connection((place.hostname or "", place.port or 0), 5.0) as link:
        link.sendall(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
        assert [len(link.recv(100)) for _ in range(3)] == [1, 1, 1]


def test_a_standing_answer_is_of_one_id_each_time_and_comes_behind_the_script() -> None:
    peer = FakeBroker({"c 1": {"status": 200, "body": {"id": "{client_message_id}"}}, "c 2": {"status": 409}})
    try:
        peer.arm([{"status": 204}])
        assert [asked(peer)[0] for _ in range(3)] == [204, 200, 200]
    finally:
        peer.close()


def test_half_an_answer_and_none_are_no_answers(peer: FakeBroker) -> None:
    peer.arm([{"status": 201, "body": {"n": 1}, "how": "cut"}, {"how": "drop"}])
    with pytest.raises(http.client.IncompleteRead):
        asked(peer)
    with pytest.raises((OSError, http.client.HTTPException)):
        asked(peer)
    assert len(peer.received()) == 2


def test_a_late_answer_is_not_there_when_it_is_waited_for(peer: FakeBroker) -> None:
    peer.arm([{"status": 201, "how": "late"}])
    with pytest.raises(TimeoutError):
        asked(peer, timeout=0.3)
    assert len(peer.received()) == 1


def test_what_is_passed_on_reaches_the_broker_whole_twice_or_by_half_and_its_answer_may_be_lost() -> None:
    broker = FakeBroker()
    relay = FakeBroker(behind=lambda: broker.url)
    try:
        broker.arm([{"status": 201, "body": {"n": number}} for number in range(6)])
        relay.arm([{"through": True}, *({"through": True, "how": how} for how in ("again", "cut", "drop", "half"))])
        assert asked(relay, b"first") == (201, b'{"n": 0}')
        assert asked(relay, b"repeated") == (201, b'{"n": 2}')
        for body in (b"cut", b"dropped", b"in half"):
            with pytest.raises((http.client.HTTPException, OSError)):
                asked(relay, body)
        came = [base64.urlsafe_b64decode(each["body"] + "==") for each in broker.received()]
        assert came[:5] == [b"first", b"repeated", b"repeated", b"cut", b"dropped"]
        assert b"in half" not in came
        assert broker.received()[0]["headers"] == relay.received()[0]["headers"]
    finally:
        relay.close()
        broker.close()


HANDSHAKE = base64.urlsafe_b64encode('{"of": "é\u2028"}'.encode()).decode().rstrip("=")


@pytest.mark.parametrize("code", [1000, 4011])
def test_one_who_connects_by_a_websocket_gets_the_handshake_whole_and_its_code_is_kept(
    peer: FakeBroker, code: int
) -> None:
    peer.arm([{"handshake": HANDSHAKE, "closes": True}])
    with connect(f"ws://{peer.address}/v1/socket", additional_headers={"Mesh-Member": "me"}, proxy=None) as link:
        assert link.recv(5) == '{"of": "é\u2028"}'
        link.close(code)
    (kept,) = peer.received()
    assert (kept["path"], kept["close_code"]) == ("/v1/socket", code)
    assert kept["headers"]["mesh-member"] == "me"


def test_a_websocket_that_is_cut_has_no_code(peer: FakeBroker) -> None:
    peer.arm([{"handshake": HANDSHAKE, "closes": True}])
    with connect(f"ws://{peer.address}/v1/socket", proxy=None) as link:
        link.recv(5)
        link.socket.shutdown(socket.SHUT_RDWR)
    assert [each["close_code"] for each in peer.received()] == [None]


def test_what_asks_for_no_websocket_gets_no_handshake(peer: FakeBroker) -> None:
    peer.arm([{"handshake": HANDSHAKE, "closes": True}])
    with socket.create_connection(("127.0.0.1", int(peer.address.rpartition(":")[2])), timeout=5) as link:
        link.sendall(b"GET /v1/socket HTTP/1.1\r\nHost: x\r\n\r\n")
        link.shutdown(socket.SHUT_WR)
        came = b"".join(iter(lambda: link.recv(4096), b""))
    assert b"of" not in came
    assert not came.startswith(b"HTTP/1.1 101")
    assert [each["close_code"] for each in peer.received()] == [None]
