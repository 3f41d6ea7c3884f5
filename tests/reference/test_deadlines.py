"""The limits of time that the reference sets itself are made for the kit's deadlines, and obey --slow as those do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from holdfast.conformance.adapter.process import Deadlines
from holdfast.conformance.inspection.helper import LIMIT_S
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.settings import RunSettings
from holdfast.servers.errors import StartError
from holdfast.servers.janitor import Janitor
from holdfast.servers.launcher import Launcher
from holdfast.servers.pace import USUAL, scaled, slowed

LIMITS = """
import json
from holdfast.reference_impl import commanding, failpoints, patience
from holdfast.servers.postgres import cluster, confined
from holdfast.reference_impl.rs4a_replay import postgres_store
print(json.dumps({
    "op": [patience.PATIENCE_S, postgres_store.LOCK_TIMEOUT_S],
    "start": [cluster._START_S, commanding.GIVE_UP_S], "quit": [confined._STOP_S], "hold": [failpoints.HOLD_GIVE_UP_S],
}))
"""
READY = (
    "import sys, time; sys.stdin.readline(); time.sleep(0.8); print('{\"config\": {}}', flush=True); sys.stdin.read()"
)


def limits(slow: str) -> dict[str, list[float]]:
    """The limits of a reference that runs with this factor."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITS], env={**os.environ, "HOLDFAST_SLOW": slow}, capture_output=True, check=True
    )
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def test_every_limit_of_the_reference_is_within_its_deadline_and_grows_with_it() -> None:
    usual, slow = limits("1.0"), limits("5.0")
    for name, granted in (("op", Deadlines().op), ("start", Deadlines().start), ("quit", Deadlines().quit)):
        assert all(limit < granted for limit in usual[name])
    assert {name: [5 * limit for limit in found] for name, found in usual.items()} == slow


@pytest.mark.parametrize("told", ["0.1", "", "nan", "much"])
def test_a_factor_that_shortens_or_is_none_leaves_the_limits(told: str) -> None:
    assert limits(told) == limits("1.0")


def test_an_adapter_and_the_harness_own_looks_are_told_the_factor(tmp_path: Path) -> None:
    with Engine(RunSettings(("true",), (), "s", slow=3.0, pace=USUAL, workdir=str(tmp_path))) as engine:
        assert engine.pool.command.environment["HOLDFAST_SLOW"] == "3.0"
        assert scaled(LIMIT_S) == 3.0 * LIMIT_S


def test_who_gets_more_time_once_more_finds_both_factors_in_one() -> None:
    assert slowed({"HOME": "/"}, 5.0) == {"HOME": "/", "HOLDFAST_SLOW": "5.0"}
    assert slowed({"HOLDFAST_SLOW": "3.0"}, 5.0) == {"HOLDFAST_SLOW": "15.0"}


def test_a_launcher_has_more_time_to_become_ready_with_a_factor(tmp_path: Path) -> None:
    command = [sys.executable, "-c", READY]
    with Janitor() as janitor:
        start = partial(Launcher, command, contract="toy", folder=tmp_path, config={}, janitor=janitor, patience=0.3)
        with pytest.raises(StartError):
            start()
        start(slow=100.0).close()
