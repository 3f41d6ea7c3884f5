"""A store of the reference for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.m5_log.logs import Box


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    """An empty store."""
    made = Box(tmp_path).make()
    yield made
    made.parts.store.release()
