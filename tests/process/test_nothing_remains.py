"""No process, no server and no temp folder outlives a run, however it ends: by itself or by any signal."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

from tests.hostile.verify import processes_of
from tests.pace import busy
from tests.process.leftovers import APPEARS_S, Run, adapter, running, until

ENDS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
# The long ones: SIGKILL, which leaves most, goes for both by default.
LONG_ENDS = pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGINT, marks=pytest.mark.sweep), signal.SIGKILL],
    ids=lambda number: number.name,
)
TOY = ("--contract", "toy")


def assert_cut_off(run: Run, number: signal.Signals, status: int) -> None:
    """A run that was cut off has no footer, and says by its status that it proves nothing."""
    assert not [line for line in run.evidence if line["type"] == "footer"], run.output
    if number is signal.SIGKILL:
        assert status == -signal.SIGKILL
    else:
        assert status == 12, run.output
        assert "interrupted" in run.output
        assert "Traceback" not in run.output


@pytest.mark.parametrize("jobs", [1, 2])
def test_after_a_normal_end(jobs: int, tmp_path: Path) -> None:
    # Two workers, shut down by force because they ignore the request.
    some = ("-k", "shelf or concurrent", "--slow", "0.2", "--jobs", str(jobs))
    with running(*TOY, *some, *adapter(), cwd=tmp_path) as run:
        assert until(lambda: run.kit.poll() is not None, within=busy(APPEARS_S)), run.output
        assert {line["verdict"] for line in run.evidence if line["type"] == "verdict"} == {"conforms"}, run.output
        assert run.evidence[-1]["type"] == "footer"


@pytest.mark.parametrize(
    ("number", "jobs"),
    [
        *((number, 1) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)),
        # Several processes of the kit.
        pytest.param(signal.SIGINT, 2, marks=pytest.mark.sweep),
        (signal.SIGKILL, 2),
    ],
)
def test_after_an_end_in_the_middle_of_a_case(number: signal.Signals, jobs: int, tmp_path: Path) -> None:
    # Long deadlines: it is the end of the kit that ends the adapter, not the patience with it.
    some = ("-k", "shelf") if jobs == 1 else ("--jobs", str(jobs))
    with running(*TOY, "--slow", "20", *some, *adapter("hang"), cwd=tmp_path) as run:
        assert until(lambda: len(list(run.temp.rglob("in-flight"))) >= jobs, within=busy(APPEARS_S)), run.output
        # The kit, its janitor, the adapter, its child and its daemon.
        assert len(processes_of(run.temp)) >= 5
        assert_cut_off(run, number, run.interrupt(number))


def is_server(process: psutil.Process) -> bool:
    """Whether it is a PostgreSQL server."""
    try:
        return process.name().startswith("postgres")
    except psutil.Error:
        return False


def traces() -> set[Path]:
    """What a server could leave outside of its folder: by default sockets in /tmp, and the wheel's lock files there."""
    return {path for pattern in (".s.PGSQL*", "*pgserver*", "*pixeltable*") for path in Path("/tmp").glob(pattern)}


@pytest.mark.sweep
@pytest.mark.xdist_group("embedded")
def test_after_a_normal_end_of_the_reference(tmp_path: Path) -> None:
    before = traces()
    with running("-k", "second-effect", "reference", cwd=tmp_path) as run:
        assert until(lambda: run.kit.poll() is not None, within=busy(APPEARS_S)), run.output
        # Narrowed, so incomplete; what ran conforms.
        assert run.kit.returncode == 12, run.output
        assert {line["verdict"] for line in run.evidence if line["type"] == "verdict"} == {"conforms"}
    assert traces() <= before


@pytest.mark.xdist_group("embedded")
@LONG_ENDS
def test_after_an_end_in_the_middle_of_the_reference(number: signal.Signals, tmp_path: Path) -> None:
    before = traces()
    with running("reference", cwd=tmp_path) as run:
        assert until(
            lambda: any(line["type"] == "verdict" for line in run.evidence) or run.kit.poll() is not None,
            within=busy(APPEARS_S),
        ), run.output
        assert any(map(is_server, processes_of(run.temp)))
        assert_cut_off(run, number, run.interrupt(number))
    assert traces() <= before


@pytest.mark.xdist_group("embedded")
@ENDS
def test_after_an_end_while_the_server_is_being_made(number: signal.Signals, tmp_path: Path) -> None:
    with running("reference", cwd=tmp_path) as run:
        assert until(lambda: any(run.temp.rglob("PG_VERSION")), within=busy(APPEARS_S)), run.output
        assert_cut_off(run, number, run.interrupt(number))
