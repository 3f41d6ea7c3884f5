"""Honest, but stays after `bye`, end of file and SIGTERM."""

from __future__ import annotations

import signal
import time

from honest import Adapter

signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
Adapter().run()
while True:
    time.sleep(3600)
