"""Folders that must be gone at the end: those of others, permissions notwithstanding, and temporary ones."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
