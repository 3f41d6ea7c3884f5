"""Answers hello and open, and no call ever."""

from __future__ import annotations

import time

from honest import Adapter, Json


class HangOnCall(Adapter):
    name = "hang-on-call"

    def call(self, method: str, args: Json) -> Json:
        time.sleep(3600)
        raise AssertionError


HangOnCall().run()
