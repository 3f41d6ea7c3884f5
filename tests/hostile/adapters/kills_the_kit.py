"""Kills its parent in the first put, so that no process is left to report it."""

from __future__ import annotations

import os
import signal
import time

from honest import Adapter, Json


class KillsTheKit(Adapter):
    name = "kills-the-kit"

    def put(self, args: Json) -> Json:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(3600)
        raise AssertionError


KillsTheKit().run()
