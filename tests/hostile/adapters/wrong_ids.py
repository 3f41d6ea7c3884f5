"""Answers each call under the id of another."""

from __future__ import annotations

from honest import Adapter, Json


class WrongIds(Adapter):
    name = "wrong-ids"

    def send(self, message: Json) -> None:
        if message.get("outcome") in {"accepted", "refused"}:
            message["id"] = str(int(message["id"]) + 1000)
        super().send(message)


WrongIds().run()
