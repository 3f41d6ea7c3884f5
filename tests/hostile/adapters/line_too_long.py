"""Answers a put correctly, in a line of more than a mebibyte."""

from __future__ import annotations

import json

from honest import Adapter, Json


class LineTooLong(Adapter):
    name = "line-too-long"

    def send(self, message: Json) -> None:
        if message.get("outcome") in {"accepted", "refused"}:
            self.write(json.dumps(message).encode() + b" " * 1024 * 1024 + b"\n")
        else:
            super().send(message)


LineTooLong().run()
