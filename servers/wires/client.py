"""The client side: requests that are sent byte for byte, and what came of each."""

from __future__ import annotations

import contextlib
import http.client
import socket
import struct
import threading
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

_CHUNK = 65_536
# No answer that is tested is as large; a few packed bytes may be a great deal more.
_LARGEST = 64 << 20
# So that half a body is read before its client is gone.
_HALF_S = 0.1


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """One request. `headers` are lines, so a name may come twice."""

    method: str
    target: str
    headers: Sequence[tuple[str, str]]
    body: bytes
    chunked: bool = False
    # Only half of the body is sent, and the client goes away.
    half: bool = False
    # In what the characters of the headers are bytes.
    charset: str = "utf-8"

    def head(self) -> bytes:
        """Request line and headers."""
        length = ("Transfer-Encoding", "chunked") if self.chunked else ("Content-Length", str(len(self.body)))
        lines = [f"{self.method} {self.target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in (*self.headers, length)]
        return "\r\n".join(lines).encode(self.charset, "surrogateescape") + b"\r\n\r\n"

    def rest(self) -> bytes:
        """The body as it travels."""
        if not self.chunked:
            return self.body
        pieces = [self.body[at : at + _CHUNK] for at in range(0, len(self.body), _CHUNK)]
        return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Response:
    """What came: `status` 0 if no whole response did, with `lost` saying why."""

    status: int
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    lost: str = ""

    def header(self, name: str) -> str | None:
        """The first header of that name."""
        return next((value for known, value in self.headers if known.lower() == name.lower()), None)


def unpacked(body: bytes, coding: str) -> bytes:
    """What a client sees of a body with this Content-Encoding: the bytes as they came if they are not so encoded."""
    if coding.strip().lower() in ("gzip", "x-gzip", "deflate"):
        packed = zlib.decompressobj(wbits=47)
        with contextlib.suppress(zlib.error):
            made = packed.decompress(body, _LARGEST)
            return made if packed.eof else body
    return body


class Exchange:
    """A request under way, in a thread of its own."""

    def __init__(self, host: str, port: int, request: ClientRequest, timeout: float) -> None:
        self._done = threading.Event()
        self._response = Response(0, lost="cut")
        self._socket: socket.socket | None = None
        self._place, self._request, self._timeout = (host, port), request, timeout
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with socket.create_connection(self._place, self._timeout) as line:
                self._socket = line
                line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._request.half:
                    line.sendall(self._request.head() + self._request.rest()[: len(self._request.body) // 2])
                    time.sleep(_HALF_S)
                    return
                line.sendall(self._request.head() + self._request.rest())
                response = http.client.HTTPResponse(line, method=self._request.method)
                response.begin()
                body = unpacked(response.read(), response.getheader("Content-Encoding", ""))
                self._response = Response(response.status, tuple(response.getheaders()), body)
        except TimeoutError:
            self._response = Response(0, lost="hang")
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._response = Response(0, lost=f"{type(error).__name__}: {error}")
        finally:
            self._done.set()

    def wait(self, timeout: float) -> Response:
        """What came, or `hang` if nothing did in that time."""
        return self._response if self._done.wait(timeout) else Response(0, lost="hang")

    @property
    def is_done(self) -> bool:
        """Whether there is a response, or none can come."""
        return self._done.is_set()

    def cut(self) -> None:
        """Close the connection as a client does that goes away."""
        line = self._socket
        if line is not None:
            with contextlib.suppress(OSError):
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
