"""The store side: a line between the service and its store that can fail. Any protocol over TCP."""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
import time
from enum import Enum, unique

_CHUNK = 65_536
_POLL_S = 0.05
# Of a reply that is cut, so many bytes come through.
_PART = 3


@unique
class LineFault(Enum):
    """How the line fails. What is open when it begins fails too."""

    NONE = "none"
    REFUSED = "refused"
    RESET = "reset"
    SILENT = "silent"
    CUT = "cut"
    SLOW = "slow"
    ONE_WAY = "one-way"


class Proxy:
    """Listens on loopback and passes bytes on to an address: `HOST:PORT`, or `unix:PATH`."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._fault = LineFault.NONE
        self._delay = 0.0
        self._lines: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._closed = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """Where the service finds its store."""
        return f"127.0.0.1:{self.port}"

    def fail(self, fault: LineFault, *, delay_s: float = 0.0) -> None:
        """Let the line fail from now on, or no more."""
        self._fault, self._delay = fault, delay_s
        if fault is LineFault.REFUSED:
            self._refuse()
            self._reset_all()
        elif self._listener.fileno() == -1:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            threading.Thread(target=self._accept, daemon=True).start()
        if fault in (LineFault.RESET, LineFault.NONE):
            # Nobody knows what is half said on a line that failed.
            self._reset_all()

    def close(self) -> None:
        """Stop, with all lines."""
        self._closed = True
        self._refuse()
        self._reset_all()

    def _refuse(self) -> None:
        # Closed alone, it would take one connection more: a thread waits in `accept`.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _reset_all(self) -> None:
        with self._lock:
            lines, self._lines = self._lines, []
        for line in lines:
            for end in line:
                _reset(end)

    def _accept(self) -> None:
        listener = self._listener
        while not self._closed:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            if self._fault is LineFault.RESET:
                _reset(client)
                continue
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        try:
            server = _connected(self._upstream)
        except OSError:
            _reset(client)
            return
        with self._lock:
            self._lines.append((client, server))
        with contextlib.suppress(OSError, ValueError), selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ, server)
            selector.register(server, selectors.EVENT_READ, client)
            while not self._closed and -1 not in (client.fileno(), server.fileno()):
                for key, _ in selector.select(_POLL_S):
                    if not self._pass_on(key.fileobj, key.data, is_reply=key.fileobj is server):  # type: ignore[arg-type]
                        return
        for end in (client, server):
            with contextlib.suppress(OSError):
                end.close()

    def _pass_on(self, source: socket.socket, to: socket.socket, *, is_reply: bool) -> bool:
        fault = self._fault
        if fault is LineFault.SILENT:
            time.sleep(_POLL_S)
            return True
        data = source.recv(_CHUNK)
        if not data:
            with contextlib.suppress(OSError):
                to.shutdown(socket.SHUT_WR)
            source.close()
            to.close()
            return False
        if fault is LineFault.SLOW:
            time.sleep(self._delay)
        if is_reply and fault is LineFault.CUT:
            to.sendall(data[:_PART])
            _reset(to)
            _reset(source)
            return False
        if is_reply and fault is LineFault.ONE_WAY:
            return True
        to.sendall(data)
        return True


def _connected(address: str) -> socket.socket:
    if address.startswith("unix:"):
        found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        found.connect(address.removeprefix("unix:"))
        return found
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), 5.0)


def _reset(end: socket.socket) -> None:
    """Close it so that the other side is told at once (RST)."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()
