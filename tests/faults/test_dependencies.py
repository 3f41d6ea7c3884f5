"""The layers that take something away: each planted bug is caught by the one that has to, and no right store is."""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from holdfast.conformance.faults import dependencies, helpers, sweep
from holdfast.conformance.faults import mounts as mounts_module
from holdfast.conformance.faults.dependencies import Dependencies, Made
from holdfast.conformance.faults.lines import Limits, Lines, puts
from holdfast.conformance.faults.oracle import CrashClass
from holdfast.conformance.faults.probe import mounting
from holdfast.conformance.faults.report import Layer, SweepReport
from holdfast.conformance.faults.subject import Workload
from holdfast.conformance.faults.sweep import Sweep
from tests.conftest import missing
from tests.faults.stores.catalogue import BUGS, ENVIRONMENT, RIGHT, STORES, Store
from tests.hostile.verify import processes_of

# What a layer has to find it finds in far less.
SECONDS = 60.0
# Pages of a disk are larger than the values of most workloads.
LARGE = 1500
_LAYERS = tuple(layer for layer in Layer if layer.option and not layer.is_recorded)
_MOUNTED = (Layer.READ_ONLY, Layer.FULL)
# For every run of the tests; the rest is for `tox -e sweep`.
_RIGHT_SLICE: dict[str, tuple[Layer, ...]] = {
    "log-right": _LAYERS,
    "snapshot-right": (Layer.MISSING,),
    "sqlite-wal_full": (Layer.LOCKED,),
    "shards-right": (Layer.TRUNCATED, Layer.CORRUPT),
    "served-right": (Layer.DOWN, Layer.SLOW),
}
# They are waited for until their time is over.
_SLOW_BUGS = {"log-waits_for_lock", "served-waits"}
STORE = {store.name: store for store in STORES}

Make = Callable[..., Dependencies]


@pytest.fixture
def mounts() -> None:
    """For tests that mount a disk of their own."""
    if unable := mounting():
        missing(unable)


@pytest.fixture
def without(subject_of: Callable[[Store], Lines], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """A function from a store to the layers, each of which ends at the first finding."""
    monkeypatch.setattr(sweep, "MOST_FINDINGS", 1)
    made: list[Sweep] = []

    def make(
        store: Store | Sequence[str], workload: Workload | None = None, *, least: int = 3, **more: Any
    ) -> Dependencies:
        limits = Limits().scaled(4)
        if isinstance(store, Store):
            command, more = subject_of(store)._command, {"promise": store.promise, **more}
            if store.caught_by in (Layer.LOCKED, Layer.SLOW):
                # A store that hangs is waited for.
                limits = Limits(start=5.0, answer=3.0, stop=3.0)
        else:
            command, limits = tuple(store), Limits(start=20.0, answer=1.0, stop=3.0)
        made.append(
            Sweep(
                lambda: Lines(command, environment=ENVIRONMENT, limits=limits),
                workload or puts(6),
                least=least,
                parent=tmp_path,
                keep=tmp_path / "kept",
            )
        )
        return Dependencies(made[-1], **more)

    yield make
    for one in made:
        one.close()
    assert [one for one in tmp_path.iterdir() if one.name.startswith("holdfast-crash-")] == []


def _bugs() -> Iterator[pytest.ParameterSet]:
    for store in BUGS:
        if store.caught_by in _LAYERS:
            yield pytest.param(store, id=store.name, marks=pytest.mark.sweep if store.name in _SLOW_BUGS else ())


@pytest.mark.parametrize("store", list(_bugs()))
def test_a_bug_is_caught_by_the_layer_that_has_to(
    store: Store, without: Make, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    assert store.caught_by is not None
    if store.caught_by in _MOUNTED:
        request.getfixturevalue("mounts")
    workload = puts(6, size=LARGE) if store.caught_by is Layer.FULL else None
    report = without(store, workload).trial(store.caught_by).report(SECONDS)
    assert report.unproven == ()
    broken = [finding for finding in report.findings if finding.verdict.kind is not CrashClass.INIT]
    assert broken, f"{store.wrong}: {report.tally}"
    assert not report.clean
    assert report.layer is store.caught_by
    assert "seed 0" in report.tally
    for finding in broken:
        assert finding.story
        assert finding.verdict.expected
        assert finding.verdict.came
    assert broken[0].kept is not None
    with tarfile.open(broken[0].kept) as archive:
        assert archive.getnames()


def _right() -> Iterator[pytest.ParameterSet]:
    for store in RIGHT:
        if store.name in _RIGHT_SLICE:
            yield pytest.param(store, _RIGHT_SLICE[store.name], 0.0, id=store.name)
        yield pytest.param(store, _LAYERS, 10.0, id=f"{store.name}-whole", marks=pytest.mark.sweep)


@pytest.mark.parametrize(("store", "layers", "seconds"), list(_right()))
def test_a_right_store_is_not_accused(
    store: Store, layers: tuple[Layer, ...], seconds: float, without: Make, mounts: None
) -> None:
    small, large = without(store, least=1), without(store, puts(6, size=LARGE), least=1)
    for caught_by in layers:
        report = (large if caught_by is Layer.FULL else small).trial(caught_by).report(seconds)
        # A loss before the first acknowledgement breaks no promise.
        accused = [str(one) for one in report.findings if one.verdict.kind is not CrashClass.INIT]
        assert accused == [], report.layer
        assert report.unproven == ()
        assert report.clean or report.findings
        # What becomes of single bytes of its files is the business of the process that keeps them.
        beside = (Layer.DAMAGE,) if store.family == "served" else (Layer.DOWN, Layer.SLOW)
        applies = caught_by not in beside
        assert bool(report.tried) == applies, report.tally


def test_nothing_tried_is_no_pass_where_a_layer_applies() -> None:
    report = SweepReport(Layer.DOWN, 0, 12, "0 of 12 moments, seed 0")
    assert not report.clean
    assert replace(report, beside="does not apply").clean
    assert not replace(report, beside="does not apply", unproven=("it could not be seen",)).clean


def test_who_makes_its_own_store_may_make_it_again_and_nobody_elses(without: Make) -> None:
    assert without(STORE["log-right"]).trial(Layer.MISSING).report(SECONDS).clean
    report = without(STORE["log-right"], made=Made.BY_OTHERS).trial(Layer.MISSING).report(SECONDS)
    assert [finding.verdict.kind for finding in report.findings] == [CrashClass.LOST]
    assert "as if nothing had ever been" in str(report.findings[0])
    assert without(STORE["plain-right"], made=Made.BY_OTHERS).trial(Layer.CORRUPT).report(SECONDS).clean


_FORGETFUL = """
import json, sys
facts = {}
print('READY', flush=True)
for line in sys.stdin:
    words = line.split()
    if words == ['DUMP']:
        print(json.dumps(facts), flush=True)
    else:
        facts |= {words[1] + '.left': words[2], words[1] + '.right': words[2]}
        print('OK', flush=True)
"""


@pytest.mark.parametrize("layer", _LAYERS)
def test_a_store_that_keeps_nothing_is_not_proven_by_any_layer(layer: Layer, without: Make) -> None:
    report = without((sys.executable, "-c", _FORGETFUL), puts(3)).trial(layer).report(1)
    assert not report.clean
    assert report.tried == 0
    assert any(words in report.unproven[0] for words in ("keeps nothing in its work directory", "although", "NOT TES"))


def test_a_store_that_starts_only_where_it_ran_before_proves_nothing(without: Make) -> None:
    """Its failures resemble refusals, so its twin has to start."""
    store = Path(__file__).parent / "stores" / "guard.py"
    text = f"""
import os, sys
mark = os.path.join(sys.argv[1], 'here')
if os.path.exists(mark) and open(mark).read() != sys.argv[1]: sys.exit('not here')
open(mark, 'w').write(sys.argv[1])
sys.argv[1:1] = ['FULL']
exec(open({str(store)!r}).read())
"""
    report = without((sys.executable, "-c", text), puts(3)).trial(Layer.MISSING).report(1)
    assert not report.clean
    assert report.tried == 0
    assert "although nothing was away: unrecoverable" in report.unproven[0]


def test_a_workload_of_one_operation_is_too_short(without: Make) -> None:
    report = without(STORE["log-right"], puts(1)).trial(Layer.MISSING).report(1)
    assert report.unproven[0].startswith("expected a workload of two operations or more")


def test_a_disk_that_could_not_be_mounted_is_no_refusal(
    without: Make, mounts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command fails loudly, which would be right on a disk that cannot be written to."""
    failing = lambda *_: ["/bin/false"]  # noqa: E731
    monkeypatch.setattr(mounts_module, "argv", failing)
    for layer in (Layer.READ_ONLY, Layer.FULL):
        report = without(STORE["log-right"]).trial(layer).report(1)
        assert not report.clean
        assert report.unproven[0].startswith("NOT TESTED")


def test_a_disk_that_was_never_full_proves_nothing(
    without: Make, mounts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependencies, "_MORE_PAGES", 1)
    report = without(STORE["log-right"], puts(2)).trial(Layer.FULL).report(0)
    assert not report.clean
    assert "no disk became full" in report.unproven[0]


@pytest.mark.parametrize("layer", [Layer.DOWN, Layer.SLOW])
def test_nothing_is_left_after_ctrl_c(
    layer: Layer, without: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there: list[psutil.Process] = []

    def interrupted(*_: object) -> None:
        there.extend(processes_of(tmp_path))
        raise KeyboardInterrupt

    monkeypatch.setattr(helpers, "judge_running", interrupted)
    with pytest.raises(KeyboardInterrupt):
        without(STORE["served-right"]).trial(layer).report(1)
    assert processes_of(tmp_path) == []
    # Those that were only stopped were there, and would have been found.
    assert there or layer is Layer.DOWN


def test_no_mount_is_left(without: Make, mounts: None) -> None:
    before = Path("/proc/self/mounts").read_text(encoding="utf-8")
    assert without(STORE["log-right"]).trial(Layer.READ_ONLY).report(0).tried
    assert Path("/proc/self/mounts").read_text(encoding="utf-8") == before


def test_a_process_that_reads_the_requests_is_not_called_help(without: Make) -> None:
    """A shell that waits for the store which it started: stopped, the store answers nothing, and is not to blame."""
    python = " ".join((sys.executable, *STORE["log-right"].command()[1:]))
    shell = without(("/bin/sh", "-c", f'{python} "$0"; exit $?'), puts(3), least=2)
    report = shell.trial(Layer.SLOW).report(1)
    assert not report.clean
    assert "one of the processes that it started reads its requests" in report.unproven[0]
    assert report.findings == ()
    # Killed it is no more than a store that is killed.
    assert shell.trial(Layer.DOWN).report(1).clean
