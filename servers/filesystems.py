"""File systems: which one holds a folder, and where the folders of a run go by default."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

# Nothing written here survives a power cut, so nothing can be said about durability.
VOLATILE = frozenset({"tmpfs", "ramfs"})
# By the file hierarchy standard what is here survives a reboot, so it lies on a disk.
_ON_DISK = Path("/var/tmp")  # noqa: S108 - a new folder of our own is made there


def default_parent() -> Path:
    """Where workdirs go unless --workdir says otherwise: the temp folder, or a disk if that one keeps nothing."""
    temp = Path(tempfile.gettempdir())
    if filesystem_of(temp) in VOLATILE and os.access(_ON_DISK, os.W_OK) and filesystem_of(_ON_DISK) not in VOLATILE:
        return _ON_DISK
    return temp


def filesystem_of(folder: Path) -> str:
    """The type of the file system that holds `folder`, as the mount table calls it; empty where there is no table."""
    best, kind = -1, ""
    try:
        table = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    real = folder.resolve()
    for line in table.splitlines():
        parts = line.split(" ")
        if len(parts) > 2 and real.is_relative_to(parts[1].replace("\\040", " ")) and len(parts[1]) > best:
            best, kind = len(parts[1]), parts[2]
    return kind
