"""How many processors this process may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def processors(*, process: Path = Path("/proc/self"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """The processors that this process may use: of its affinity, and of the quota of its control group (version 2)."""
    affinity = len(os.sched_getaffinity(0))
    return max(1, min([affinity, *(int(quota) for quota in _quotas(process / "cgroup", groups))]))


def _quotas(membership: Path, groups: Path) -> Iterator[float]:
    """The quota of each control group that the process is in, in processors."""
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        if line.startswith("0::/"):
            own = groups / line.removeprefix("0::/")
            for folder in [own, *own.parents][: len(own.parts) - len(groups.parts) + 1]:
                try:
                    quota, period = (folder / "cpu.max").read_text(encoding="utf-8").split()
                    yield int(quota) / int(period)
                except (OSError, ValueError):
                    # The file is absent in the root group, and holds the word `max` where there is no limit.
                    continue
