"""The start of a daemon over a WebSocket: the broker's first message is its handshake (sections 15.2 and 15.5)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, TypeAlias

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from holdfast.reference_impl.answers import Answer, Fault, Refused
from holdfast.reference_impl.mesh_delivery.negotiation import HANDSHAKE, Negotiator
from holdfast.servers.pace import scaled

# Of a WebSocket, as ws://HOST:PORT/PATH.
Address: TypeAlias = str
_PATIENCE_S = scaled(1.0)
_NORMAL = 1000


def negotiated(negotiator: Negotiator, args: Mapping[str, Any], broker: Address) -> Answer:
    """Start against the handshake of the broker at this address. A refusal closes the connection with its code."""
    try:
        with connect(broker, open_timeout=_PATIENCE_S, close_timeout=_PATIENCE_S, proxy=None) as connection:
            came = connection.recv(_PATIENCE_S)
            data = came.encode() if isinstance(came, str) else came
            handshake = base64.urlsafe_b64encode(data).rstrip(b"=").decode()
            answer = negotiator.start({**args, HANDSHAKE: handshake})
            told = answer.data if isinstance(answer, Refused) and answer.data is not None else {}
            connection.close(told.get("close_code", _NORMAL))
            return answer
    except (OSError, WebSocketException) as error:
        return Fault(f"no handshake came: {type(error).__name__}")
