"""Sound variants of jcs: each does what a clause permits, and the reference does not do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.reference_impl.planting import Change, value

# The contract's depth_floor.
_FLOOR = 64


BUGS: Mapping[str, Change] = {
    "choice-no-deeper-than-the-floor": value(lambda limits: replace(limits, max_depth=_FLOOR)),
}
