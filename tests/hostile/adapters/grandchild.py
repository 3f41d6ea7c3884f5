"""Honest, but leaves a child behind that holds its pipes open for an hour. With ARGV[1] it also dies in a put."""

from __future__ import annotations

import os
import subprocess
import sys

from honest import Adapter, Json


class Grandchild(Adapter):
    name = "grandchild"

    def put(self, args: Json) -> Json:
        if len(sys.argv) > 1:
            os._exit(0)
        return super().put(args)


subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
Grandchild().run()
os._exit(0)
