"""Writes a whole refusal without its newline, and goes: the last line of a dead process is not an answer."""

from __future__ import annotations

import json
import os

from honest import Adapter, Json


class NoNewline(Adapter):
    name = "whole-line-without-end"

    def send(self, message: Json) -> None:
        if message.get("outcome") == "refused":
            self.write(json.dumps(message).encode())
            os._exit(0)
        super().send(message)


NoNewline().run()
