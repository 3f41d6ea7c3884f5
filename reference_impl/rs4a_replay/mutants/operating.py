"""Bugs of rs4a-replay in what is beside a registration: a disk or a store that fails, retention, and who overlaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.reference_impl.rs4a_replay.mutants.situations import _asked

# The disk


# The store


# Issuing


# Who overlaps


def _mark_of(store: Any, name: str) -> Path:
    return Path(_asked(store, "SELECT file FROM pragma_database_list LIMIT 1")).with_suffix(name)
