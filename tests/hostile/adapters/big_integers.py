"""Reports an integer beyond 2^53 as a number: two readers would read two values."""

from __future__ import annotations

from honest import Adapter, Json


class BigIntegers(Adapter):
    name = "big-integers"

    def told(self, args: Json) -> Json:
        return {**super().told(args), "row": 2**53 + 1}


BigIntegers().run()
