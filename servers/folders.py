"""Folders: where those of a run go, on which file system, and how they go at the end, permissions notwithstanding."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def temp_folders_in(folder: Path) -> Iterator[None]:
    """What this process asks `tempfile` for lies in `folder` meanwhile, and goes with it however the process ends.

    For fault injection, which has no janitor. Child processes have their own temp folder.
    """
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def remove_tree(folder: Path) -> None:
    """Remove `folder` with all that is in it. Never raises; what belongs to another account may stay.

    If a link is in its place, only the link is removed: its target belongs to another owner.
    """
    if folder.is_symlink():
        with contextlib.suppress(OSError):
            folder.unlink()
        return
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    # A folder without permissions cannot be listed by its own owner; give them back and try once more.
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        with contextlib.suppress(OSError):
            current.chmod(stat.S_IRWXU)
            waiting += [Path(entry.path) for entry in os.scandir(current) if entry.is_dir(follow_symlinks=False)]
    shutil.rmtree(folder, ignore_errors=True)
