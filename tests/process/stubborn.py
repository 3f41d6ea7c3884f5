"""Honest, but hard to be rid of: it and its children ignore every signal that can be ignored, and one is a daemon.

With ARGV[1] `hang` a put is never answered.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "hostile" / "adapters"))

from honest import Adapter  # type: ignore[import-not-found]

SLEEP = "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep(600)"


class Stubborn(Adapter):  # type: ignore[misc]
    """See above."""

    name = "stubborn"

    def put(self, args: dict[str, Any]) -> Any:
        if sys.argv[1:] == ["hang"]:
            (self.workdir / "in-flight").touch()
            time.sleep(600)
        return super().put(args)


for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
for in_its_own_session in (False, True):
    subprocess.Popen([sys.executable, "-S", "-c", SLEEP], start_new_session=in_its_own_session)
Stubborn().run()
time.sleep(600)
