"""Honest, but its first put makes the file that it was given, and takes seconds, seconds of work, or for ever."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from honest import Adapter, Json

MARK, TAKES = Path(sys.argv[1]), sys.argv[2]


class Marks(Adapter):
    name = "marks"

    def put(self, args: Json) -> Json:
        if not MARK.exists():
            MARK.touch()
            if TAKES.startswith("work-"):
                done = time.process_time() + float(TAKES.removeprefix("work-"))
                while time.process_time() < done:
                    pass
            else:
                time.sleep(3600 if TAKES == "for-ever" else float(TAKES))
        return super().put(args)


Marks().run()
