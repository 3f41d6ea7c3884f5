"""Which layers there are, by what they need."""

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
# What is judged by starts and answers alone: trials of `Dependencies`.
DEPRIVED = frozenset(
    {
        Layer.MISSING,
        Layer.TRUNCATED,
        Layer.CORRUPT,
        Layer.FOREIGN,
        Layer.LOCKED,
        Layer.READ_ONLY,
        Layer.FULL,
        Layer.DAMAGE,
        Layer.DOWN,
        Layer.SLOW,
    }
)
