"""What the wires around a service cost: line and sink against a direct connection, and cases a second.

Sides take turns in small batches, and in turn go first. What counts is the ratio of their medians.

- *line*: 100 bytes to an echo server and back on one open connection, through the proxy against a direct one.
- *sink*: one POST to the sink against the same POST to a server that only answers, each on a connection of its own.
- *requests*: a request through the whole of it: the kit's client, the reference on SQLite, the sink. Its rate, and the
  rate of the tests of `idempotency-key` that need no store at an address, in one worker.

Run: `python -m bench.services [--batches N] [--batch N]`
"""

from __future__ import annotations

import http.client
import os
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import holdfast.reference_impl.idempotency_key as reference
from bench.turns import Taken, arguments, in_turns, median, seconds, show
from holdfast.servers.wires.profile import read
from holdfast.servers.wires.proxy import Proxy
from holdfast.servers.wires.sink import Sink, encoded
from holdfast.servers.wires.world import ServiceEnvironment

WARM_UP = 20
BODY = b'{"tag":"hf-0123456789abcdef","amount":100}'
_NOW = 1_767_225_600_000


class _Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(4096):
            self.request.sendall(data)


class _Bare(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def _serving(server: socketserver.TCPServer) -> Iterator[int]:
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()


def lines(*, batches: int, batch: int) -> list[Taken]:
    """An exchange of 100 bytes through the line, and without it."""
    with ExitStack() as stack:
        port = stack.enter_context(_serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Echo)))
        proxy = Proxy(f"127.0.0.1:{port}")
        stack.callback(proxy.close)
        ends = [stack.enter_context(socket.create_connection(("127.0.0.1", each))) for each in (proxy.port, port)]

        def exchange(end: socket.socket) -> Callable[[int], object]:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

            def one(_: int) -> None:
                end.sendall(b"x" * 100)
                left = 100
                while left:
                    left -= len(end.recv(left))

            return one

        return in_turns([exchange(end) for end in ends], warm_up=WARM_UP, batches=batches, batch=batch)


def effects(*, batches: int, batch: int) -> list[Taken]:
    """A POST to the sink, and to a server that only answers."""
    with ExitStack() as stack:
        sink = Sink()
        stack.callback(sink.close)
        bare = stack.enter_context(_serving(ThreadingHTTPServer(("127.0.0.1", 0), _Bare)))

        def post(port: int, path: str) -> Callable[[int], object]:
            def one(_: int) -> None:
                with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
                    connection.request("POST", path, BODY)
                    connection.getresponse().read()

            return one

        place = urlsplit(sink.url)
        sides = [post(place.port or 0, place.path), post(bare, "/")]
        return in_turns(sides, warm_up=WARM_UP, batches=batches, batch=batch)


def requests(count: int) -> float:
    """The median seconds of a request with a new key through client, reference and sink."""
    service = read(Path(reference.__file__).with_name("service.toml"))
    with (
        tempfile.TemporaryDirectory(prefix="hf-bench-") as scratch,
        closing(ServiceEnvironment(service, Path(scratch), fresh=True, now=_NOW, given={"mutant": ""})) as world,
    ):

        def one(number: int) -> None:
            tag = f"hf-{number:016x}"
            body = encoded(BODY.replace(b"hf-0123456789abcdef", tag.encode()))
            found = world.submit({"tag": tag, "keys": [f'"{number}"'], "body": body})
            assert found["effect"] == "new"

        taken = [seconds(one, 0, WARM_UP), seconds(one, WARM_UP, count)]
    return median(taken[1:])


def cases() -> float:
    """Tests a second of the whole contract against the reference, in one worker, with what starts and stops."""
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as scratch:
        words = [sys.executable, "-m", "holdfast.conformance.cli", "verify", "reference"]
        words += ["--contract", "idempotency-key", "--jobs", "1", "--evidence", f"{scratch}/run.jsonl"]
        began = time.perf_counter()
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        took = time.perf_counter() - began
    count = next(line.split()[1] for line in done.stdout.splitlines() if line.startswith("cases:"))
    return int(count) / took


def main() -> None:
    """Print the ratios and the rates."""
    options = arguments(__doc__, batches=100, batch=10)
    for name, measured in (("line", lines), ("sink", effects)):
        ours, bare = measured(batches=options.batches, batch=options.batch)
        show({name: ours, "direct": bare})
    print(f"requests  {1 / requests(options.batches * options.batch):8.0f} a second through client, reference and sink")
    print(f"cases     {cases():8.2f} a second   load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
