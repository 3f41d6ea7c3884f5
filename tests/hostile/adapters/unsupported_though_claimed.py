"""Claims the whole contract, and answers `unsupported` to every put."""

from __future__ import annotations

from honest import Adapter, Json


class Unsupported(Adapter):
    name = "unsupported-though-claimed"

    def put(self, args: Json) -> Json:
        return {"outcome": "unsupported", "capability": "put"}


Unsupported().run()
