"""Leaves the id out of its answers to put."""

from __future__ import annotations

from honest import Adapter, Json


class NoId(Adapter):
    name = "no-id"

    def send(self, message: Json) -> None:
        if message.get("outcome") in {"accepted", "refused"}:
            del message["id"]
        super().send(message)


NoId().run()
