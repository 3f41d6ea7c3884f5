"""Honest, but every observation shows an empty shelf: its refusals cannot be observed to be inert."""

from __future__ import annotations

from honest import Adapter, Json


class Blind(Adapter):
    name = "blind"

    def entries(self) -> list[Json]:
        return []


Blind().run()
