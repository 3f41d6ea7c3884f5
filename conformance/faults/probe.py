"""The abilities of this machine, found by trial in less than a second: usable layers, and why others are not."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from holdfast.conformance.faults import fidelity, mounts, recording
from holdfast.conformance.faults.mounts import Disk
from holdfast.conformance.faults.recording import Event, Sync
from holdfast.conformance.faults.tracer import Injection

# What takes longer hangs, on a busy machine too: what cannot be probed is not tried, and proves nothing.
_PATIENCE_S = 60.0
# Size in bytes of the disk that is mounted to learn whether one can be.
_SMALL = 16384
# The loop device's control file, and the programs that make and mount a file system.
_LOOP, _TOOLS = Path("/dev/loop-control"), ("mkfs.ext4", "mount", "umount", "losetup")
# A program with one of each: a name, a write, a sync, an event.
_PROGRAM = "import os; f = os.open('probe', 66); os.write(f, b'1'); os.fsync(f); os.write(1, b'!')"


class Probe(NamedTuple):
    """Why something cannot be used here, in words; empty where it can.

    `tracer`: recording, kills, errors and all that is judged from recordings. `full_disk`: a small file system of
    one's own, or a read-only one, in a namespace. `real_file_systems`: file systems in files, through loop devices, as
    root.
    """

    tracer: str
    full_disk: str
    real_file_systems: str

    def lines(self) -> tuple[str, ...]:
        """One line for each ability, for a report."""
        said = ((name.replace("_", " "), why) for name, why in zip(self._fields, self, strict=True))
        return tuple(f"{name}: {f'not available, {why}' if why else 'available'}" for name, why in said)


def probe() -> Probe:
    """Test the machine. Leaves nothing behind."""
    return Probe(_tracer(), mounting(), _real_file_systems())


def _tracer() -> str:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return f"it needs Linux on x86-64, this is {platform.system()} on {platform.machine()}"
    with tempfile.TemporaryDirectory(prefix="holdfast-probe-") as folder:
        work, out = Path(folder, "work"), Path(folder, "recording")
        work.mkdir()
        # An interpreter without its site packages: the program needs nothing of them, and the time is short.
        argv = Injection().argv(out, work, [sys.executable, "-I", "-S", "-c", _PROGRAM])
        failed = _attempt(argv, work)
        return f"tracing a program of one's own failed: {failed}" if failed else _recorded(out, work)


def _attempt(argv: list[str], folder: Path) -> str:
    """Run a command in a folder, in a process of its own, so that nothing of it stays. Returns the error, or ""."""
    # The kit is found by its path, as the current directory is another.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    try:
        done = subprocess.run(
            argv,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError) as error:
        return str(error)
    said = done.stderr.decode(errors="replace").strip().splitlines() or [f"it ended with {done.returncode}"]
    return said[-1] if done.returncode else ""


def _recorded(out: Path, work: Path) -> str:
    try:
        whole = recording.read(out)
        different = fidelity.differences(whole, work)
    except (recording.RecordingError, OSError) as error:
        return f"the recording cannot be read: {error}"
    seen = [type(one.action) for one in whole.operations]
    if seen[-2:] != [Sync, Event] or different or whole.ending.untraced:
        return f"a known program was recorded as {[one.__name__ for one in seen]}"
    return ""


def mounting() -> str:
    """Whether a program can be run on a small disk of memory."""
    if sys.platform != "linux":
        return f"it needs Linux, this is {platform.system()}"
    with tempfile.TemporaryDirectory(prefix="holdfast-probe-") as folder:
        work, mark = Path(folder, "work"), Path(folder, "mark")
        work.mkdir()
        argv = [*mounts.argv(Disk.SMALL, work, mark, _SMALL), sys.executable, "-I", "-S", "-c", ""]
        failed = _attempt(argv, work)
        if not failed and not mark.exists():
            failed = "the disk was not handed back"
        return f"mounting a disk of one's own failed: {failed}" if failed else ""


def _real_file_systems() -> str:
    if os.geteuid():
        return "it needs root"
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    with contextlib.suppress(OSError):
        os.close(os.open(_LOOP, os.O_RDWR | os.O_CLOEXEC))
        return ""
    return f"{_LOOP} cannot be opened"
