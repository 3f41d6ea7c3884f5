"""Honest, but the put of the first run of a case never comes to its answer, or comes by a crash."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from honest import Adapter, Json

MARK, HOW = Path(sys.argv[1]), sys.argv[2]


class HangsOnce(Adapter):
    name = "hangs-once"

    def put(self, args: Json) -> Json:
        if HOW == "hang always" or not MARK.exists():
            MARK.touch()
            if HOW == "crash once":
                os._exit(3)
            time.sleep(3600)
        return super().put(args)


HangsOnce().run()
