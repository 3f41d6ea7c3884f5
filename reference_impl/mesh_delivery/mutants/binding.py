"""Bugs of the broker's sockets: codes and bodies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from holdfast.reference_impl.answers import Accepted, Answer, Refused
from holdfast.reference_impl.mesh_delivery.broker_http import BrokerHttp
from holdfast.reference_impl.planting import Change, part


class ConflictIsRetry(BrokerHttp):
    """Tells a conflict as it tells a retry, with nulls where it has nothing."""

    def response(self, answer: Answer) -> dict[str, Any]:
        found = super().response(answer)
        if not isinstance(answer, Refused) or found["code"] != self.route.statuses["IDEMPOTENCY_KEY_REUSED"]:
            return found
        body = {
            "broker_message_id": "00000000-0000-4000-8000-000000000000",
            "client_message_id": found["body"]["client_message_id"],
            "history_id": None,
            "duplicate": True,
            "history_available": False,
            "first_seen_at": "2026-01-01T00:00:00Z",
        }
        return {"code": self.route.statuses["prior"], "body": body}


class OverWebSocket(BrokerHttp):
    async def over_websocket(self, connection: WebSocket) -> None:
        await ConflictIsRetry(self.operation, self.route, self.call).over_websocket(connection)


class AlwaysOk(BrokerHttp):
    def response(self, answer: Answer) -> dict[str, Any]:
        found = super().response(answer)
        return {**found, "code": self.route.statuses["prior"]} if isinstance(answer, Accepted) else found


class OneReason(BrokerHttp):
    def response(self, answer: Answer) -> dict[str, Any]:
        found = super().response(answer)
        gone = self.route.statuses["DESTINATION_NOT_FOUND"]
        return {**found, "code": gone} if found["code"] == self.route.statuses["AUTH_MISSING"] else found


class OnePlace(BrokerHttp):
    """A task answers each frame. It finds what came in the connection, where the next frame may stand already."""

    async def over_websocket(self, connection: WebSocket) -> None:
        await connection.accept()
        tasks: list[asyncio.Task[None]] = []

        async def answer() -> None:
            text = connection.state.text
            found = await self.answered(text.encode(), connection.path_params, connection.headers)
            await connection.send_text(json.dumps(found))

        try:
            while True:
                connection.state.text = await connection.receive_text()
                tasks.append(asyncio.create_task(answer()))
        except WebSocketDisconnect:
            await asyncio.gather(*tasks, return_exceptions=True)


BUGS: Mapping[str, Change] = {
    "conflict-is-a-retry-over-sockets": part(broker_http=ConflictIsRetry),
    "conflict-is-a-retry-over-websocket": part(broker_http=OverWebSocket),
    "first-send-has-the-code-of-a-retry": part(broker_http=AlwaysOk),
    "stranger-has-the-code-of-a-destination": part(broker_http=OneReason),
    "frames-of-a-connection-in-one-place": part(broker_http=OnePlace),
}
