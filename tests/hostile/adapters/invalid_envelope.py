"""Adds a member to every answer that the protocol does not know."""

from __future__ import annotations

from honest import Adapter, Json


class InvalidEnvelope(Adapter):
    name = "invalid-envelope"

    def send(self, message: Json) -> None:
        if message.get("outcome") in {"accepted", "refused"}:
            message["status"] = 200
        super().send(message)


InvalidEnvelope().run()
