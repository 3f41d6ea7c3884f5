"""ext4, xfs and btrfs in files, and how their power is cut.

Each power loss has a process of its own in a mount namespace of its own: wherever it ends, and however, the kernel
takes its mounts away, and with them the loop devices. Where a machine has none, the profile `linux` is not calibrated
there: not proven, and in CI a failure.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from enum import StrEnum, unique
from pathlib import Path

from holdfast.conformance.faults.probe import probe
from tests.conftest import missing
from tests.faults.stores.catalogue import ENVIRONMENT
from tests.pace import busy

# Megabytes of an image: xfs has a least size, and RocksDB reserves room for its log.
SIZES_MB = {"ext4": 128, "xfs": 320, "btrfs": 256}
# _IOR('X', 125, u32), which all that have it took over from xfs, and its flag to leave the log in memory unwritten.
_SHUTDOWN, _NO_LOG_FLUSH = 0x8004587D, struct.pack("I", 2)
_PATIENCE_S = 120.0
_APART = ("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private")
# Seconds until they commit by the clock: late, so that a slow machine does not save data without a sync, or soon, for a
# program that waits so long. xfs has no such setting.
LATE_S, SOON_S = 900, 1


@unique
class Cut(StrEnum):
    """How the power fails: the file system drops what it has not written, or its disk is copied as it is."""

    SHUTDOWN = "shutdown"
    COPY = "copy"


# btrfs has no shutdown before Linux 6.19.
WAYS = [(system, cut) for system in SIZES_MB for cut in Cut if (system, cut) != ("btrfs", Cut.SHUTDOWN)]


def possible(system: str) -> None:
    """Not proven, where the machine is not one's own: loop devices are for root, and containers seldom have them."""
    unable = probe().real_file_systems
    if not unable:
        unable = subprocess.run([*_APART, "true"], capture_output=True, text=True, check=False).stderr.strip()
    if not unable and shutil.which(f"mkfs.{system}") is None:
        unable = f"mkfs.{system} is not installed"
    if not unable and f"\t{system}\n" not in Path("/proc/filesystems").read_text(encoding="ascii"):
        subprocess.run(["modprobe", "-q", system], check=False)
        if f"\t{system}\n" not in Path("/proc/filesystems").read_text(encoding="ascii"):
            unable = f"this kernel has no {system}"
    if unable:
        missing(f"a real {system}, so the profile linux is not calibrated here, which is NOT PROVEN: {unable}")


def apart(module: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A module of these tests with these words, in a process and a mount namespace that end with this one."""
    return subprocess.run(
        [*_APART, sys.executable, "-m", module, *words],
        cwd=Path(__file__).parents[2],
        env=dict(ENVIRONMENT),
        capture_output=True,
        text=True,
        timeout=busy(_PATIENCE_S),
        check=False,
    )


def made(system: str, disk: Path) -> None:
    """A new file system in a file."""
    with disk.open("wb") as stream:
        stream.truncate(SIZES_MB[system] << 20)
    subprocess.run([f"mkfs.{system}", "-q", disk], check=True, stdout=subprocess.DEVNULL)


def copied(disk: Path, copy: Path) -> None:
    """The file as it is now, without what is only in memory."""
    subprocess.run(["cp", "--sparse=always", disk, copy], check=True)


def shut_down(place: Path) -> None:
    """The file system forgets what it has not written."""
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(descriptor, _SHUTDOWN, _NO_LOG_FLUSH)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def mounted(system: str, disk: Path, place: Path, commit_s: int = LATE_S) -> Iterator[None]:
    """The file system in a file, for as long as the context lasts."""
    options = "loop" if system == "xfs" else f"loop,commit={commit_s}"
    subprocess.run(["mount", "-t", system, "-o", options, disk, place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)
