"""Answers each put twice, under the same id."""

from __future__ import annotations

from honest import Adapter, Json


class RepeatedId(Adapter):
    name = "repeated-id"

    def send(self, message: Json) -> None:
        super().send(message)
        if message.get("outcome") in {"accepted", "refused"}:
            super().send(message)


RepeatedId().run()
