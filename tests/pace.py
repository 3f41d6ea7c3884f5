"""How long something may take beside whatever else this machine does: for limits of tests that wait in real time."""

from __future__ import annotations

import os


def busy(seconds: float) -> float:
    """What `seconds` of an idle machine are on this one, where others want the processors too."""
    return seconds * max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))
