"""Honest, but shows an empty shelf to whoever looks: its refusals cannot be seen to be inert."""

from __future__ import annotations

from honest import Adapter, Json


class Blind(Adapter):
    name = "blind"

    def entries(self) -> list[Json]:
        return []


Blind().run()
