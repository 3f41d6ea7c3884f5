"""Says both: `refused` and then `accepted`, under one member name, and lets the reader choose."""

from __future__ import annotations

import json

from honest import Adapter, Json


class DuplicateNames(Adapter):
    name = "duplicate-names"

    def send(self, message: Json) -> None:
        if message.get("outcome") in {"accepted", "refused"}:
            self.write(b'{"outcome":"refused",' + json.dumps(message).encode()[1:] + b"\n")
        else:
            super().send(message)


DuplicateNames().run()
