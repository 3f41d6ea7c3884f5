"""Answers hello, then closes its standard output and stays."""

from __future__ import annotations

import os
import time

from honest import Adapter, Json


class StopsReading(Adapter):
    name = "stops-reading"

    def open(self, request: Json) -> None:
        os.close(1)
        time.sleep(3600)


StopsReading().run()
