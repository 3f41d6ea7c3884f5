"""Every layer by its name, as it is run on a sweep, or on what takes something away."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping

from conformance.faults.dependencies import Dependencies
from conformance.faults.report import Layer, Report
from conformance.faults.sweep import Sweep

# What is judged from recordings, or struck by whoever records: these need the tracer.
RECORDED: Mapping[Layer, Callable[[Sweep, float], Report]] = {
    Layer.POWER: Sweep.power_loss,
    Layer.KILL: Sweep.kills,
    Layer.TORN_KILL: lambda sweep, seconds: sweep.kills(seconds, torn=True),
    Layer.RECOVERY: Sweep.recovery,
    Layer.ERRORS: lambda sweep, seconds: sweep.errors(seconds, errno.ENOSPC),
    Layer.SHORT: Sweep.short_writes,
    Layer.SYNC_ERRORS: Sweep.sync_errors,
}
# What is judged by starts and answers alone.
DEPRIVED: Mapping[Layer, Callable[[Dependencies, float], Report]] = {
    Layer.MISSING: Dependencies.missing,
    Layer.TRUNCATED: Dependencies.truncated,
    Layer.CORRUPT: Dependencies.corrupt,
    Layer.FOREIGN: Dependencies.foreign,
    Layer.LOCKED: Dependencies.locked,
    Layer.READ_ONLY: Dependencies.read_only,
    Layer.FULL: Dependencies.full,
    Layer.DAMAGE: Dependencies.damage,
    Layer.DOWN: Dependencies.down,
    Layer.SLOW: Dependencies.slow,
}
