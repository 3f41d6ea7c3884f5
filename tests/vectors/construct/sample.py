"""The rows that the tests inspect."""

from __future__ import annotations

from functools import cache
from typing import Any

from holdfast.vectors.jcs.construct import batch

ROWS = 12_000


@cache
def first_rows() -> tuple[dict[str, Any], ...]:
    """The first ROWS rows of seed 0."""
    return tuple(batch(0, 0, ROWS).to_pylist())
