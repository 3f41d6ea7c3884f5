"""What holds for all tests of the kit."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from conformance.faults.probe import probe

# Tests start processes and wait for them; how long an example takes says nothing about it.
settings.register_profile("kit", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("kit")


def missing(what: str) -> None:
    """What a test needs is not on this machine: unproven, which CI does not take for a pass."""
    if os.environ.get("CI"):
        pytest.fail(f"CI=true and not here: {what}")
    pytest.skip(f"not here: {what}")


@pytest.fixture(scope="session")
def tracer() -> None:
    """For tests that trace: the right to trace one's own children."""
    unable = probe().tracer.reason
    if unable:
        missing(f"tracing: {unable}")
