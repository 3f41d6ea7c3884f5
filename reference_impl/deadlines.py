"""The factor that `holdfast --slow` puts on the kit's deadlines, and so on what this side may take within them."""

from __future__ import annotations

import os

# docs/adapter-protocol.md, "What counts against an adapter".
VARIABLE = "HOLDFAST_SLOW"


def _factor(text: str) -> float:
    """The factor of a text; never less than 1, because what is waited for here takes its time on any machine."""
    try:
        return max(1.0, float(text))
    except ValueError:
        return 1.0


_FACTOR = _factor(os.environ.get(VARIABLE, ""))


def scaled(seconds: float) -> float:
    """A limit of time that is made for the deadlines without a factor, as it is with the one of this run."""
    return seconds * _FACTOR
