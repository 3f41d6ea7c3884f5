"""The model against what it models: ext4, xfs and btrfs in files, cut off at the instant of the last acknowledgement.

Whatever a real file system loses the model has to allow, or it would call stores right that are not. The other way
round it may be stricter: a disk writes what nobody made it write.

Each power loss has a process of its own in a mount namespace of its own: wherever it ends, and however, the kernel
takes its mounts away, and with them the loop devices.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum, unique
from pathlib import Path

import pytest

from conformance.faults import sweep as subject_of_tests
from conformance.faults.lines import Limits, Lines, puts
from conformance.faults.oracle import Kind, judge
from conformance.faults.probe import probe
from conformance.faults.subject import SubjectError, perform
from conformance.faults.sweep import Sweep
from tests.faults.stores.catalogue import ENVIRONMENT, STORES, Store

WORKLOAD = puts(10)
# Megabytes of an image: xfs has a least size, and RocksDB reserves room for its log.
_SIZES_MB = {"ext4": 128, "xfs": 320, "btrfs": 256}
# _IOR('X', 125, u32), which all that have it took over from xfs, and its flag to leave the log in memory unwritten.
_SHUTDOWN, _NO_LOG_FLUSH = 0x8004587D, struct.pack("I", 2)
_PATIENCE_S = 120.0
_APART = ("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private")
# Its writes wait for a commit by the clock, so that a slow machine does not save what nobody synced.
_OPTIONS = {"ext4": "loop,commit=900", "xfs": "loop", "btrfs": "loop,commit=900"}

KEPT = (
    "sqlite-wal_full", "sqlite-delete_extra", "rocks-sync", "lmdb_store-default", "plain-right", "log-right",
    "snapshot-right",
)  # fmt: skip
LOST = (
    "sqlite-wal_normal", "sqlite-wal_off", "sqlite-delete_full", "rocks-no_sync", "plain-none",
    "plain-no_folder_fsync", "log-no_fsync",
)  # fmt: skip
# Up to a race: ext4 begins to write a file when it is renamed over another, and what is synced right after its
# acknowledgement is late by less than a millisecond.
OPEN = ("plain-no_fsync", "log-ack_first", "log-every_third", "lmdb_store-no_sync")
# What every run of the tests does.
_SLICE = {(name, "ext4") for name in ("sqlite-wal_full", "plain-right", "sqlite-delete_full", "log-no_fsync")}


@unique
class Cut(StrEnum):
    """How the power fails: the file system drops what it has not written, or its disk is copied as it is."""

    SHUTDOWN = "shutdown"
    COPY = "copy"


# btrfs has no shutdown before Linux 6.19.
_WAYS = [(system, cut) for system in _SIZES_MB for cut in Cut if (system, cut) != ("btrfs", Cut.SHUTDOWN)]


def _cases(names: tuple[str, ...]) -> Iterator[pytest.ParameterSet]:
    for name in names:
        for system, cut in _WAYS:
            marks = () if (name, system) in _SLICE else pytest.mark.sweep
            yield pytest.param(name, system, cut, id=f"{name}-{system}-{cut}", marks=marks)


@pytest.mark.parametrize(("name", "system", "cut"), list(_cases(KEPT)))
def test_a_right_store_is_whole_on_a_real_disk(name: str, system: str, cut: Cut, tmp_path: Path) -> None:
    assert _after_power_loss(name, system, cut, tmp_path) == (Kind.CLEAN, "")


@pytest.mark.parametrize(("name", "system", "cut"), list(_cases(LOST)))
def test_what_a_real_disk_loses_the_model_loses(
    name: str, system: str, cut: Cut, tmp_path: Path, accused: Callable[[str], frozenset[Kind]]
) -> None:
    kind, text = _after_power_loss(name, system, cut, tmp_path)
    assert kind in (Kind.LOST, Kind.UNRECOVERABLE), text
    assert kind in accused(name)


@pytest.mark.parametrize(("name", "system", "cut"), list(_cases(OPEN)))
def test_what_a_real_disk_may_keep_the_model_loses_all_the_same(
    name: str, system: str, cut: Cut, tmp_path: Path, accused: Callable[[str], frozenset[Kind]]
) -> None:
    kind, text = _after_power_loss(name, system, cut, tmp_path)
    assert kind is Kind.CLEAN or kind in accused(name), text
    assert accused(name)


def test_nothing_stays_mounted_after_a_failure(tmp_path: Path) -> None:
    _possible("ext4")
    done = _apart("ext4", Cut.COPY, "fails", tmp_path)
    assert done.returncode
    assert "StopIteration" in done.stderr
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text(encoding="utf-8")
    assert str(tmp_path) not in subprocess.run(["losetup", "-a"], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def accused(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], frozenset[Kind]]:
    """A function from a store's name to what the model found it to be, at the acknowledgements alone."""
    known: dict[str, frozenset[Kind]] = {}

    def found(name: str) -> frozenset[Kind]:
        if name not in known:
            words = _store(name).command()
            folder = tmp_path_factory.mktemp("model")
            with (
                pytest.MonkeyPatch.context() as patch,
                Sweep(
                    lambda: Lines(words, environment=ENVIRONMENT, limits=Limits().scaled(4)),
                    WORKLOAD,
                    traced=lambda: Lines(words, environment=ENVIRONMENT, limits=Limits().scaled(20)),
                    parent=folder,
                ) as sweep,
            ):
                patch.setattr(subject_of_tests, "MOST_FINDINGS", len(WORKLOAD.ops))
                report = sweep.power_loss(5)
            assert report.unproven == ()
            known[name] = frozenset(finding.verdict.kind for finding in report.findings)
        return known[name]

    return found


def _possible(system: str) -> None:
    """Skips, where the machine is not one's own: loop devices are for root, and containers seldom have them."""
    unable = probe().real_file_systems.reason
    if unable:
        pytest.skip(f"no real file systems: {unable}")
    refused = subprocess.run([*_APART, "true"], capture_output=True, text=True, check=False).stderr
    if refused:
        pytest.skip(f"no real file systems: {refused.strip()}")
    if shutil.which(f"mkfs.{system}") is None:
        pytest.skip(f"mkfs.{system} is not installed; ext4 is always tried")
    if f"\t{system}\n" not in Path("/proc/filesystems").read_text(encoding="ascii"):
        pytest.skip(f"this kernel has no {system}")


def _store(name: str) -> Store:
    return next(store for store in STORES if store.name == name)


def _after_power_loss(name: str, system: str, cut: Cut, folder: Path) -> tuple[Kind, str]:
    _possible(system)
    done = _apart(system, cut, name, folder)
    assert done.returncode == 0, done.stderr
    kind, text = json.loads(done.stdout)
    return Kind(kind), text


def _apart(system: str, cut: Cut, name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`_cut_off` in a process and a mount namespace that end with this one."""
    return subprocess.run(
        [*_APART, sys.executable, "-m", __name__, system, cut.value, name, str(folder)],
        cwd=Path(__file__).parents[2],
        env=dict(ENVIRONMENT),
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )


def _cut_off(system: str, cut: Cut, name: str, folder: Path) -> tuple[Kind, str]:
    """Run a store on a file system of its own, cut it off at the last acknowledgement, and judge what is left."""
    disk, copy, place = folder / "disk", folder / "copy", folder / "mounted"
    place.mkdir()
    with disk.open("wb") as stream:
        stream.truncate(_SIZES_MB[system] << 20)
    subprocess.run([f"mkfs.{system}", "-q", disk], check=True, stdout=subprocess.DEVNULL)
    with _mounted(system, disk, place):
        work = place / "work"
        work.mkdir()
        os.sync()
        subject = Lines(_store(name).command(), environment=ENVIRONMENT, limits=Limits().scaled(10))
        subject.start(work)
        history = perform(subject, WORKLOAD)
        if cut is Cut.COPY:
            subprocess.run(["cp", "--sparse=always", disk, copy], check=True)
        else:
            _shut_down(place)
        # It may go on, on a disk that is no more.
        with contextlib.suppress(SubjectError):
            subject.stop()
    with _mounted(system, copy if cut is Cut.COPY else disk, place):
        subject = Lines(_store(name).command(), environment=ENVIRONMENT, limits=Limits().scaled(10))
        verdict = judge(subject, place / "work", WORKLOAD, history.must, history.may)
    assert len(history.must) == len(WORKLOAD.ops)
    return verdict.kind, "" if verdict.kind is Kind.CLEAN else str(verdict)


def _shut_down(place: Path) -> None:
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(descriptor, _SHUTDOWN, _NO_LOG_FLUSH)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _mounted(system: str, disk: Path, place: Path) -> Iterator[None]:
    subprocess.run(["mount", "-t", system, "-o", _OPTIONS[system], disk, place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)


if __name__ == "__main__":
    found, words = _cut_off(sys.argv[1], Cut(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
    print(json.dumps([found.value, words]))
