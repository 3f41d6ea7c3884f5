"""Copies of work directories."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def copy(folder: Path, into: Path) -> None:
    """Copy everything in a folder into an empty one, except sockets, which mean nothing without their process.

    Owners are kept, if this process may set them: a database server may run as another user.
    """

    def without(inside: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(inside, name).is_socket() or Path(inside, name).is_fifo()]

    shutil.copytree(folder, into, symlinks=True, dirs_exist_ok=True, ignore=without)
    if not os.geteuid():
        for inside, folders, files in os.walk(into):
            for name in ("", *folders, *files):
                path = Path(inside, name)
                owner = (folder / path.relative_to(into)).lstat()
                os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
