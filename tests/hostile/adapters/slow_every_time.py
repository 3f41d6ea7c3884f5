"""Honest, and every request takes as many seconds as it was given: each in its time, all together too long."""

from __future__ import annotations

import sys
import time

from honest import Adapter, Json


class SlowEveryTime(Adapter):
    name = "slow-every-time"

    def answer(self, request: Json) -> Json:
        if request["op"] == "call":
            time.sleep(float(sys.argv[1]))
        return super().answer(request)


SlowEveryTime().run()
