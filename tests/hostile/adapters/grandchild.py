"""Honest, but leaves a child behind that holds its pipes open for an hour.

ARGV[1] says more: `escapes`, and the child is in a session of its own; `dies`, and the adapter ends in its first put.
"""

from __future__ import annotations

import os
import subprocess
import sys

from honest import Adapter, Json

HOW = sys.argv[1] if len(sys.argv) > 1 else "stays"


class Grandchild(Adapter):
    name = "grandchild"

    def put(self, args: Json) -> Json:
        if HOW == "dies":
            os._exit(0)
        return super().put(args)


subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=HOW == "escapes")
Grandchild().run()
os._exit(0)
