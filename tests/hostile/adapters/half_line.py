"""Writes half of an answer to a put, and goes."""

from __future__ import annotations

import json
import os

from honest import Adapter, Json


class HalfLine(Adapter):
    name = "half-line"

    def send(self, message: Json) -> None:
        if message.get("outcome") in {"accepted", "refused"}:
            line = json.dumps(message).encode()
            self.write(line[: len(line) // 2])
            os._exit(0)
        super().send(message)


HalfLine().run()
