"""Answers calls in prose."""

from __future__ import annotations

from honest import Adapter, Json


class GarbageOnCall(Adapter):
    name = "garbage-on-call"

    def send(self, message: Json) -> None:
        if message.get("outcome") in {"accepted", "refused"}:
            self.write(b"OK, done!\n")
        else:
            super().send(message)


GarbageOnCall().run()
