"""Removing what an adapter may have left in a workdir, permissions notwithstanding."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path


def remove_tree(folder: Path) -> None:
    """Remove `folder` with all that is in it. Never raises; what belongs to another account may stay.

    Of a link that stands in its place only the link is removed: what it leads to is somebody else's.
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
