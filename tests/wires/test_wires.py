"""Sink, proxy and client, each by itself."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import os
import socket
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest

from holdfast.servers.wires.client import ClientRequest, Exchange, unpacked
from holdfast.servers.wires.instances import EndedError, Running, free_port
from holdfast.servers.wires.profile import ProfileError, read
from holdfast.servers.wires.proxy import LineFault, Proxy
from holdfast.servers.wires.sink import THROW, Ending, Sink, encoded
from holdfast.servers.wires.world import SINK, ServiceEnvironment
from tests.process.leftovers import until

TAG = "hf-0123456789abcdef"
BODY = f'{{"tag":"{TAG}"}}'.encode()


@pytest.fixture
def sink() -> Iterator[Sink]:
    found = Sink()
    yield found
    found.close()


def _post(sink: Sink, body: bytes = BODY) -> tuple[int, bytes, str | None]:
    return _post_to(sink.url, body)


def _post_to(url: str, body: bytes) -> tuple[int, bytes, str | None]:
    place = urlsplit(url)
    with contextlib.closing(http.client.HTTPConnection(place.hostname or "", place.port, timeout=20)) as connection:
        connection.request("POST", place.path, body)
        response = connection.getresponse()
        return response.status, response.read(), response.getheader(THROW)


def test_the_sink_counts_each_attempt_by_the_tag_in_its_body(sink: Sink) -> None:
    first, second = _post(sink), _post(sink)
    assert sink.of(TAG).effects == 2
    # So that a replay can be told from an execution.
    assert first[1] != second[1]
    assert _post(sink, b"no tag")[0] == 400
    assert sink.totals() == {TAG: 2}


def test_a_client_reads_a_body_as_its_content_encoding_says() -> None:
    packed = gzip.compress(BODY)
    assert unpacked(packed, "gzip") == BODY
    # What unpacks to far more than any answer is no answer.
    bomb = gzip.compress(bytes(80 << 20))
    assert unpacked(bomb, "gzip") == bomb
    assert unpacked(packed, "") == unpacked(packed[:20], "gzip")[:20] + packed[20:] == packed


@pytest.mark.parametrize("after", [False, True])
def test_the_sink_holds_only_as_many_as_it_was_told_before_or_behind_their_effect(sink: Sink, after: bool) -> None:
    sink.hold(TAG, 1, after=after)
    held = threading.Thread(target=_post, args=(sink,))
    held.start()
    assert until(lambda: sink.of(TAG).held == 1, within=10)
    assert sink.of(TAG).effects == after
    _post(sink)
    assert sink.of(TAG).effects == 1 + after
    sink.release(TAG)
    held.join(60)
    assert sink.of(TAG).effects == 2


def test_the_sink_dictates_how_a_handler_ends(sink: Sink) -> None:
    sink.of(TAG).ending = Ending(status=402, body=b"declined", throw=True)
    assert _post(sink) == (402, b"declined", "1")
    sink.of(TAG).ending = Ending(cut=True)
    with pytest.raises((http.client.HTTPException, OSError)):
        _post(sink)
    assert sink.of(TAG).effects == 2


class _Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(100):
            self.request.sendall(data)


@pytest.fixture
def line() -> Iterator[Proxy]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        proxy = Proxy(f"127.0.0.1:{server.server_address[1]}")
        yield proxy
        proxy.close()
        server.shutdown()


def _said(proxy: Proxy, timeout: float = 10.0) -> bytes:
    with socket.create_connection(("127.0.0.1", proxy.port), timeout) as end:
        end.sendall(b"0123456789")
        found = b""
        while len(found) < 10 and (data := end.recv(100)):
            found += data
        return found


def test_a_line_passes_bytes_on_and_fails_as_it_is_told(line: Proxy) -> None:
    assert _said(line) == b"0123456789"
    for fault in (LineFault.REFUSED, LineFault.RESET):
        line.fail(fault)
        with pytest.raises(ConnectionError):
            _said(line)
    for fault in (LineFault.SILENT, LineFault.ONE_WAY):
        line.fail(fault)
        with pytest.raises(TimeoutError):
            _said(line, 0.3)
    line.fail(LineFault.CUT)
    with pytest.raises(ConnectionError):
        _said(line)
    line.fail(LineFault.NONE)
    assert _said(line) == b"0123456789"


def test_what_was_open_fails_with_the_line(line: Proxy) -> None:
    with socket.create_connection(("127.0.0.1", line.port), 10) as end:
        end.sendall(b"x")
        assert end.recv(10) == b"x"
        line.fail(LineFault.RESET)
        with pytest.raises(ConnectionError):
            end.recv(10)


def _sent(request: ClientRequest) -> bytes:
    with socket.create_server(("127.0.0.1", 0)) as server:
        exchange = Exchange("127.0.0.1", server.getsockname()[1], request, 10)
        end, _ = server.accept()
        found = end.recv(65_536)
        while not found.endswith(request.rest()):
            found += end.recv(65_536)
        end.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Y: z\r\n\r\nok")
        end.close()
        response = exchange.wait(60)
        assert (response.status, response.body, response.header("x-y")) == (200, b"ok", "z")
        return found


def test_the_client_sends_lines_and_bodies_as_they_are_given() -> None:
    sent = _sent(ClientRequest("POST", "/a?b=c", [("K", "one"), ("K", "two")], b"\x00\xff"))
    assert sent.count(b"\r\nK: ") == 2
    assert sent.endswith(b"Content-Length: 2\r\n\r\n\x00\xff")
    assert b"Transfer-Encoding: chunked" in _sent(ClientRequest("POST", "/", [], b"x" * 100_000, chunked=True))


def test_half_a_body_is_sent_and_then_the_client_is_gone() -> None:
    request = ClientRequest("POST", "/", [], b"0123456789", half=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        exchange = Exchange("127.0.0.1", server.getsockname()[1], request, 10)
        end, _ = server.accept()
        with end:
            found = b""
            while data := end.recv(65_536):
                found += data
        assert found.endswith(b"Content-Length: 10\r\n\r\n01234")
        assert exchange.wait(60).lost


def test_a_program_is_ready_only_when_it_listens_itself(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as another:
        running = Running("it", "sleep 60", folder=tmp_path, env=os.environ, log=tmp_path / "log")
        try:
            with pytest.raises(EndedError, match="does not listen"):
                running.await_port(f"127.0.0.1:{another.getsockname()[1]}", 0.3)
        finally:
            running.end(kill=True)
    assert not running.is_running


def test_a_program_that_ends_is_named_with_its_last_words(tmp_path: Path) -> None:
    running = Running("it", "sh -c 'echo no store; exit 7'", folder=tmp_path, env=os.environ, log=tmp_path / "log")
    with pytest.raises(EndedError, match="status 7: no store"):
        running.await_port(f"127.0.0.1:{free_port()}", 10)


def test_no_answer_in_time_is_a_hang_and_a_closed_connection_is_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert Exchange("127.0.0.1", port, ClientRequest("GET", "/", [], b""), 0.2).wait(60).lost == "hang"
        server.accept()[0].close()
        exchange = Exchange("127.0.0.1", port, ClientRequest("GET", "/", [], b""), 10)
        end, _ = server.accept()
        exchange.cut()
        end.close()
        lost = exchange.wait(60).lost
        assert lost
        assert lost != "hang"


class _LateBroker(BaseHTTPRequestHandler):
    """Takes a message once, and lets its effect come a moment later. What comes again is answered as a duplicate."""

    taken: ClassVar[set[bytes]] = set()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_new = body not in self.taken
        self.taken.add(body)
        self.send_response(202 if is_new else 409)
        self.send_header("Content-Length", "0")
        self.end_headers()
        if is_new:
            threading.Timer(0.7, _post_to, (self.headers[SINK], body)).start()

    def log_message(self, *_: Any) -> None:
        return


def test_a_burst_waits_for_the_effect_of_each_message_that_was_taken_whatever_came_last(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _LateBroker) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        file = tmp_path / "service.toml"
        file.write_text(
            f'[service]\nurl = "http://127.0.0.1:{server.server_address[1]}"\n[route.create]\npath = "/"\n'
            '[profile]\nhandler = "behind"\nduplicate = "reject"\ncodes = { duplicate = 409 }\n',
            encoding="utf-8",
        )
        with contextlib.closing(ServiceEnvironment(read(file), tmp_path, fresh=True, now=0)) as world:
            asked = {"tag": TAG, "keys": ["k"], "body": encoded(BODY)}
            found = world.burst([asked] * 4)
            assert sorted(each["outcome"] for each in found) == ["accepted", "refused", "refused", "refused"]
            assert world.seen(TAG)["effects"] == 1
        server.shutdown()


# service.toml: what is wrong in it is said.

_GOOD = """
[service]
start = "node server.js"
[service.env]
SINK_URL = "{sink}"
[route.create]
path = "/orders"
"""


def _read(folder: Path, text: str) -> str:
    file = folder / "service.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError) as found:
        read(file)
    return str(found.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[service", "TOML"),
        (_GOOD + "colour = 1\n", "colour"),
        (_GOOD.replace('start = "node server.js"', ""), "start"),
        (_GOOD.replace('start = "node', 'url = "http://x"\nstart = "node'), "url"),
        (_GOOD.replace("{sink}", "http://here"), "{sink}"),
        (_GOOD.replace("[route.create]\npath", "[profile]\nheader"), "route"),
        (_GOOD + "[credentials.c]\nAuthorization = 'x'\n", "credentials.c"),
        (_GOOD + "[profile]\nkey_syntax = 'text'\n", "key_syntax"),
        (_GOOD.replace("[route.create]", "[route.other]"), "create"),
        (_GOOD + "[profile]\nanswer_s = 60\n", "answer_s"),
        (_GOOD + "[profile]\nkey_pattern = '['\n", "key_pattern"),
        (_GOOD.replace("{sink}'", "") + "[service.more]\n", "more"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    assert said in _read(tmp_path, text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"service\.toml"):
        read(tmp_path / "service.toml")


def test_the_wires_follow_from_what_the_service_is_given(tmp_path: Path) -> None:
    file = tmp_path / "service.toml"
    file.write_text(_GOOD, encoding="utf-8")
    assert read(file).wires() == ["sink", "process"]
    given = 'STORE = "redis://{store}"\nCLOCK = "{clock}"\n[store]\nstart = "redis-server"\n[route.create]'
    file.write_text(_GOOD.replace("[route.create]", given), encoding="utf-8")
    assert read(file).wires() == ["sink", "process", "proxy", "server", "clock"]
    file.write_text(_GOOD.replace('start = "node server.js"', 'url = "http://127.0.0.1:1"'), encoding="utf-8")
    assert "process" not in read(file).wires()
