"""Refuses what it must, and everything else once anything stands on the shelf."""

from __future__ import annotations

from honest import Adapter, Json


class RefusesOthers(Adapter):
    name = "refuses-others"

    def decide(self, args: Json) -> str | None:
        return super().decide(args) or ("DUPLICATE" if self.entries() else None)


RefusesOthers().run()
