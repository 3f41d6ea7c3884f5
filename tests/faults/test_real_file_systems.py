"""The model against what it models: ext4, xfs and btrfs in files, cut off at the instant of the last acknowledgement.

The model has to allow every loss of a real file system. Otherwise it would accept stores that are wrong. The other way
round it may be stricter: a disk also writes data without a sync.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from holdfast.conformance.faults import sweep as subject_of_tests
from holdfast.conformance.faults.lines import Limits, Lines, puts
from holdfast.conformance.faults.oracle import CrashClass, judge
from holdfast.conformance.faults.probe import probe
from holdfast.conformance.faults.report import Layer
from holdfast.conformance.faults.subject import SubjectError, perform
from tests.conftest import missing
from tests.faults import real_disks
from tests.faults.real_disks import LATE_S, SOON_S, WAYS, Cut, apart, copied, made, mounted, possible, shut_down
from tests.faults.stores.catalogue import ENVIRONMENT, STORES, swept

WORKLOAD = puts(10)
Words: TypeAlias = "Callable[[str], tuple[str, ...]]"
Accused: TypeAlias = "Callable[[str], frozenset[CrashClass]]"
_LEVEL, _FETCH_S = Path(__file__).parent / "stores" / "level", 180
KEPT = (
    "sqlite-wal_full", "sqlite-delete_extra", "rocks-sync", "lmdb_store-default", "plain-right", "log-right",
    "snapshot-right", "marker-right", "level-sync",
)  # fmt: skip
LOST = (
    "sqlite-wal_normal", "sqlite-wal_off", "sqlite-delete_full", "rocks-no_sync", "plain-none",
    "plain-no_folder_fsync", "log-no_fsync", "level-no_sync",
)  # fmt: skip
# Up to a race: ext4 begins to write a file when it is renamed over another, and what is synced right after its
# acknowledgement is late by less than a millisecond.
OPEN = ("plain-no_fsync", "log-ack_first", "log-every_third", "lmdb_store-no_sync")
# Which file systems lose it. Each differs in one thing from `marker-right`, which all three keep for the sake of that
# one thing.
SOME = {
    "marker-bare": frozenset({"btrfs"}),
    "marker-in_place": frozenset({"ext4", "xfs"}),
    "marker-late": frozenset({"btrfs"}),
}
# It waits between its start and its first write until the clock has committed.
_WAITS = frozenset({"marker-late"})
_WAIT_S = 2.5 * SOON_S
# What every run of the tests does.
_SLICE = {(name, "ext4") for name in ("sqlite-wal_full", "plain-right", "sqlite-delete_full", "log-no_fsync")}
_SLICE |= {("marker-right", system) for system in ("ext4", "xfs", "btrfs")}
_SLICE |= {("marker-bare", "btrfs"), ("marker-in_place", "xfs")}


def _cases() -> Iterator[pytest.ParameterSet]:
    for name in (*KEPT, *LOST, *OPEN, *SOME):
        for system, cut in WAYS:
            marks = () if (name, system) in _SLICE else pytest.mark.sweep
            yield pytest.param(name, system, cut, id=f"{name}-{system}-{cut}", marks=marks)


@pytest.mark.parametrize(("name", "system", "cut"), list(_cases()))
def test_a_real_disk_keeps_what_is_right_and_what_it_loses_the_model_loses(
    name: str, system: str, cut: Cut, tmp_path: Path, words: Words, accused: Accused
) -> None:
    kind, text = _after_power_loss(words(name), system, cut, tmp_path, waits=name in _WAITS)
    is_lost = kind in (CrashClass.LOST, CrashClass.UNRECOVERABLE)
    assert is_lost or (kind, text) == (CrashClass.CLEAN, "")
    if name not in OPEN:
        assert is_lost is (name in LOST or system in SOME.get(name, ())), text
    if name not in KEPT:
        found = accused(name)
        assert (CrashClass.UNRECOVERABLE in found) if name in SOME else found
        assert not is_lost or kind in found


@pytest.mark.sweep
@pytest.mark.parametrize("name", KEPT)
def test_the_model_accuses_nobody_whom_all_three_keep(name: str, accused: Accused) -> None:
    assert accused(name) == frozenset()


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_without_loop_devices_the_calibration_is_not_proven_and_in_ci_a_failure(
    ci: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = probe()._replace(real_file_systems="it needs root")
    monkeypatch.setattr(real_disks, "probe", lambda: nothing)
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="NOT PROVEN"):
        possible("ext4")


def test_nothing_stays_mounted_after_a_failure(tmp_path: Path) -> None:
    possible("ext4")
    done = apart(__name__, "ext4", Cut.COPY.value, json.dumps([["/nowhere"], False]), str(tmp_path))
    assert done.returncode
    assert "/nowhere" in done.stderr
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text(encoding="utf-8")
    assert str(tmp_path) not in subprocess.run(["losetup", "-a"], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Words:
    """A function from a store's name to its command. What is to be fetched for it is fetched once."""
    fetched: list[str] = []

    def command(name: str) -> tuple[str, ...]:
        if not name.startswith("level-"):
            return next(store for store in STORES if store.name == name).command()
        if not fetched:
            fetched.append(_fetched(tmp_path_factory.mktemp("level")))
        return ("node", fetched[0], name.removeprefix("level-"))

    return command


@pytest.fixture(scope="module")
def accused(tmp_path_factory: pytest.TempPathFactory, words: Words) -> Accused:
    """A function from a store's name to what the model found it to be, at the acknowledgements alone."""
    known: dict[str, frozenset[CrashClass]] = {}

    def found(name: str) -> frozenset[CrashClass]:
        if name not in known:
            with (
                pytest.MonkeyPatch.context() as patch,
                swept(words(name), WORKLOAD, parent=tmp_path_factory.mktemp("model")) as sweep,
            ):
                patch.setattr(subject_of_tests, "MOST_FINDINGS", len(WORKLOAD.ops))
                report = sweep.trial(Layer.POWER).report(5)
            assert report.unproven == ()
            known[name] = frozenset(finding.verdict.kind for finding in report.findings)
        return known[name]

    return found


def _fetched(folder: Path) -> str:
    """LevelDB for Node, in the version that is pinned. Nothing of it is run to install it: the package has binaries."""
    for name in ("package.json", "package-lock.json", "store.mjs"):
        shutil.copy(_LEVEL / name, folder)
    if shutil.which("npm") is None:
        missing("npm")
    done = subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_FETCH_S,
        check=False,
    )
    if done.returncode:
        missing(f"classic-level of npm: {done.stderr.strip()[-200:]}")
    return str(folder / "store.mjs")


def _after_power_loss(
    command: tuple[str, ...], system: str, cut: Cut, folder: Path, *, waits: bool
) -> tuple[CrashClass, str]:
    possible(system)
    done = apart(__name__, system, cut.value, json.dumps([command, waits]), str(folder))
    assert done.returncode == 0, done.stderr
    kind, text = json.loads(done.stdout)
    return CrashClass(kind), text


def _cut_off(system: str, cut: Cut, told: str, folder: Path) -> tuple[CrashClass, str]:
    """Run a store on a file system of its own, cut it off at the last acknowledgement, and judge what is left."""
    disk, copy, place = folder / "disk", folder / "copy", folder / "mounted"
    command, waits = json.loads(told)
    place.mkdir()
    made(system, disk)
    # One write: the next commit of the clock would save the name.
    workload = puts(1) if waits else WORKLOAD
    with mounted(system, disk, place, SOON_S if waits else LATE_S):
        work = place / "work"
        work.mkdir()
        os.sync()
        subject = Lines(command, environment=ENVIRONMENT, limits=Limits().scaled(10))
        subject.start(work)
        if waits:
            time.sleep(_WAIT_S)
        history = perform(subject, workload)
        if cut is Cut.COPY:
            copied(disk, copy)
        else:
            shut_down(place)
        # It may go on, on a disk that is no more.
        with contextlib.suppress(SubjectError):
            subject.stop()
    with mounted(system, copy if cut is Cut.COPY else disk, place):
        subject = Lines(command, environment=ENVIRONMENT, limits=Limits().scaled(10))
        verdict = judge(subject, place / "work", workload, history.must, history.may)
    assert len(history.must) == len(workload.ops)
    return verdict.kind, "" if verdict.kind is CrashClass.CLEAN else str(verdict)


if __name__ == "__main__":
    found, said = _cut_off(sys.argv[1], Cut(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
    print(json.dumps([found.value, said]))
