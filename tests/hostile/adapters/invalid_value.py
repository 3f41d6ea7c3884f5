"""Accepts correctly, with a value that breaks the method's schema."""

from __future__ import annotations

from honest import Adapter, Json


class InvalidValue(Adapter):
    name = "invalid-value"

    def told(self, args: Json) -> Json:
        return {**super().told(args), "extra": True}


InvalidValue().run()
