"""The layers, in groups by what they need."""

from __future__ import annotations

from holdfast.conformance.faults.report import Layer

# Layers that are judged from recordings, or in which the tracer itself strikes. They are trials of a `Sweep`.
RECORDED = frozenset(
    {
        Layer.POWER,
        Layer.KILL,
        Layer.TORN_KILL,
        Layer.RECOVERY,
        Layer.ERRORS,
        Layer.SHORT,
        Layer.SYNC_ERRORS,
    }
)
# Layers that need only starts and answers: trials of `Dependencies`.
DEPRIVED = frozenset(
    {
        Layer.MISSING,
        Layer.TRUNCATED,
        Layer.CORRUPT,
        Layer.FOREIGN,
        Layer.LOST_RUNNING,
        Layer.LOCKED,
        Layer.READ_ONLY,
        Layer.FULL,
        Layer.DAMAGE,
        Layer.DOWN,
        Layer.SLOW,
    }
)
# Layers with many restarts for each try: they strike in the first session alone.
IN_ONE = frozenset({Layer.RECOVERY, Layer.SYNC_ERRORS})
