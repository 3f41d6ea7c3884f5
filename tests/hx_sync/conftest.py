"""A session with three devices for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hx_sync.devices import Devices, opened


@pytest.fixture
def devices(tmp_path: Path) -> Iterator[Devices]:
    with opened(tmp_path) as made:
        yield made
