"""Refuses everything, with a reason of the contract."""

from __future__ import annotations

from honest import Adapter, Json


class RefuseAll(Adapter):
    name = "refuse-all"

    def decide(self, args: Json) -> str | None:
        return "DUPLICATE"


RefuseAll().run()
