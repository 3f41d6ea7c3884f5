"""Passes the lines of another adapter on, in both directions, each call ARGV[1] seconds late: honest, and slow.

ARGV[2:] is the command of the other adapter, which stays in this process group.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time

DELAY_S = float(sys.argv[1])
other = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert other.stdin is not None
assert other.stdout is not None
asked, told = other.stdin, other.stdout


def pass_back() -> None:
    """What it says goes out at once; when it is gone, so is this."""
    for line in told:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    os._exit(other.wait())


back = threading.Thread(target=pass_back)
back.start()
for request in sys.stdin.buffer:
    if json.loads(request)["op"] == "call":
        time.sleep(DELAY_S)
    asked.write(request)
    asked.flush()
asked.close()
back.join()
