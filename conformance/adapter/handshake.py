"""The handshake of a broker over a WebSocket, from the side of the broker that the kit plays."""

from __future__ import annotations

import contextlib
from http.server import BaseHTTPRequestHandler

from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

_CHUNK = 65536
_WAIT_S = 10.0


def handed_over(handler: BaseHTTPRequestHandler, handshake: bytes) -> int | None:
    """Send a handshake as one text message of two frames, behind a ping; the code with which the other side closes.

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
