"""Honest, but its first put, its first four or each of them never comes to an answer; or it ends by a crash."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from honest import Adapter, Json

TIMES = {"hang once": 1, "crash once": 1, "hang four times": 4, "hang always": 1000}
MARK, HOW = Path(sys.argv[1]), sys.argv[2]


class HangsOnce(Adapter):
    name = "hangs-once"

    def put(self, args: Json) -> Json:
        before = MARK.stat().st_size if MARK.exists() else 0
        if before < TIMES[HOW]:
            with MARK.open("ab") as file:
                file.write(b"x")
            if HOW == "crash once":
                os._exit(3)
            time.sleep(3600)
        return super().put(args)


HangsOnce().run()
