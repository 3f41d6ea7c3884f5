"""What holds for all tests of the kit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings

from holdfast.conformance.faults.probe import probe
from holdfast.conformance.inspection.helper import HELPER

# Tests start processes and wait for them; how long an example takes says nothing about it. Each run draws others.
settings.register_profile(
    "kit", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("kit")


# The files that take longest, the longest first: they go to the workers before all others, so that none is left alone
# with one of them at the end (`--no-loadscope-reorder` keeps xdist from sorting by the number of tests).
_LONG = (
    "cli/test_reference_run.py", "vectors/spark/test_jobs.py", "selfcheck/test_selfcheck.py",
    "hostile/test_adapters.py", "cli/test_new_adapter.py", "packaging/test_docs.py", "wires/test_service.py",
    "durability/test_faults.py", "faults/test_sweep.py", "cli/test_vectors.py", "harness/test_verify_cli.py",
    "process/test_nothing_remains.py", "cli/test_crash.py", "scratch/test_scratch_contract.py", "harness/test_fuzz.py",
    "cli/test_readme.py", "harness/test_inspecting.py", "cli/test_findings.py", "wires/test_gallery.py",
    "fitness/test_corpus.py", "rs4a_replay/test_fitness.py", "cli/test_again.py", "fitness/test_command.py",
    "faults/test_real_file_systems.py", "durability/test_commands.py", "reference/test_mutants.py",
    "rs4a_replay/test_launcher.py", "faults/test_dependencies.py", "calyx_replay/test_histories.py",
    "mesh_delivery/test_foreign.py", "vectors/sdk/test_runners.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long files first; the others keep their order."""
    rank = {name: number for number, name in enumerate(_LONG)}
    here = Path(__file__).parent
    items.sort(key=lambda item: rank.get(item.path.relative_to(here).as_posix(), len(rank)))


def thinned(values: Sequence[object]) -> list[object]:
    """Parameters that go much the same way: every third by default, the others in the sweep."""
    rows = [one if isinstance(one, tuple) else (one,) for one in values]
    return [pytest.param(*row, marks=pytest.mark.sweep if number % 3 else ()) for number, row in enumerate(rows)]


def missing(what: str) -> NoReturn:
    """What a test needs is not on this machine: unproven, which CI does not take for a pass."""
    if os.environ.get("CI"):
        pytest.fail(f"CI=true and not here: {what}")
    pytest.skip(f"not here: {what}")


@pytest.fixture(scope="session")
def tracer() -> None:
    """For tests that trace: the right to trace one's own children."""
    unable = probe().tracer
    if unable:
        missing(f"tracing: {unable}")


@pytest.fixture(scope="module")
def helper() -> Iterator[None]:
    """For tests whose process looks into databases: its helper is not left behind."""
    yield
    HELPER.close()
