"""What may stand between a client and a server: what forwards, stops forwarding, is slow, or keeps sessions."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.fitness.lives import LiveServer

_CHUNK = 16384
_TERMINATE = b"X\x00\x00\x00\x04"
_SSL_REQUESTS = (80877103, 80877104)


@dataclass(slots=True)
class Relay:
    """Forwards each connection to the server's Unix socket, as a forwarded port does.

    After `limit` bytes, counted over all connections and both directions, nothing is forwarded any more and nothing is
    closed. `delay` is what each chunk takes, in seconds. With `keeps`, the session of a client that has gone serves the
    next one, who is given its real number.
    """

    server: LiveServer
    limit: float = float("inf")
    delay: float = 0.0
    keeps: bool = False
    passed: int = 0
    port: int = 0
    stalled: Event = field(default_factory=Event)
    _lock: Lock = field(default_factory=Lock)
    _open: list[socket.socket] = field(default_factory=list)
    _kept: tuple[socket.socket, bytes] | None = None

    def dsn_of(self, database: str, *, user: str | None = None) -> str:
        """DSN of a database through it."""
        who = user or str(conninfo_to_dict(self.server.dsn)["user"])
        # The negotiation would be one more connection for nothing.
        return make_conninfo(
            "", host="127.0.0.1", port=self.port, dbname=database, user=who, sslmode="disable", gssencmode="disable"
        )

    def serve(self, listening: socket.socket) -> None:
        """Take clients until the socket is closed."""
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            self._open.append(client)
            with suppress(OSError):
                if self.keeps:
                    Thread(target=self._pooled, args=(client,), daemon=True).start()
                else:
                    self._forward(client, self._server())

    def close(self) -> None:
        """Cut everything."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _server(self) -> socket.socket:
        parts = conninfo_to_dict(self.server.dsn)
        made = socket.socket(socket.AF_UNIX)
        made.connect(str(Path(str(parts["host"])) / f".s.PGSQL.{parts['port']}"))
        self._open.append(made)
        return made

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        for source, sink in ((client, server), (server, client)):
            Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                time.sleep(self.delay)
                with self._lock:
                    allowed = data[: max(0, int(min(len(data), self.limit - self.passed)))]
                    self.passed += len(data)
                if allowed:
                    sink.sendall(allowed)
                if len(allowed) < len(data):
                    self.stalled.set()
                    return
        if not self.stalled.is_set():
            for each in (source, sink):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _pooled(self, client: socket.socket) -> None:
        """One client after the other on one session of the server, until the relay is closed."""
        with suppress(OSError):
            startup = _startup(client)
            if self._kept is None:
                server = self._server()
                server.sendall(startup)
                self._kept = (server, _until_ready(server))
            server, greeting = self._kept
            client.sendall(greeting)
            while data := client.recv(_CHUNK):
                if data.endswith(_TERMINATE):
                    data = data[: -len(_TERMINATE)]
                if data:
                    server.sendall(data)
                    client.sendall(_until_ready(server))


def _startup(client: socket.socket) -> bytes:
    while True:
        head = _exactly(client, 8)
        length, code = struct.unpack("!ii", head)
        if code not in _SSL_REQUESTS:
            return head + _exactly(client, length - 8)
        client.sendall(b"N")


def _until_ready(server: socket.socket) -> bytes:
    """All messages up to ReadyForQuery. Enough for clients that end each request with a Sync."""
    data = b""
    while True:
        head = _exactly(server, 5)
        data += head + _exactly(server, struct.unpack("!i", head[1:])[0] - 4)
        if head[:1] == b"Z":
            return data


def _exactly(source: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        got = source.recv(count - len(data))
        if not got:
            raise ConnectionError("closed")
        data += got
    return data


@contextmanager
def relay(
    server: LiveServer, *, limit: float = float("inf"), delay: float = 0.0, keeps: bool = False
) -> Iterator[Relay]:
    """A running one."""
    made = Relay(server, limit, delay, keeps)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made.port = int(listening.getsockname()[1])
        Thread(target=made.serve, args=(listening,), daemon=True).start()
        try:
            yield made
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            made.close()
