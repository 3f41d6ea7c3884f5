"""What adapters write outside of their workdirs: in the folder for temporary files that each run has, or elsewhere.

Elsewhere are the folders that everybody may write to, the home folder, and the current one, two levels deep. What
other runs of the kit work with is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

# In an inspection, the folder has the name of the variable that tells adapters of it.
TMPDIR = "TMPDIR"
# The folder of a run that its adapters get as TMPDIR, and a file that was written when the run began. Both lie beside
# the workdirs.
_TEMPORARY, _BEGINNING = "temporary", "beginning"
# Programs unpack themselves into such folders, so a larger file is not read.
LONGEST = 1 << 20
_COMMON = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - nothing is written there
_DEPTH = 2
# Of a folder with more entries the others are not looked at.
_MOST_ENTRIES = 2_000
_OF_THE_KIT = "holdfast-"


def begin(root: Path) -> Path:
    """Make the folder for temporary files of a run that begins now."""
    temporary = root / _TEMPORARY
    temporary.mkdir()
    (root / _BEGINNING).touch()
    return temporary


def temporary_of(workdir: Path) -> Path | None:
    """The folder for temporary files of the run that has this workdir; None if the workdir is of no run."""
    folder = workdir.parent / _TEMPORARY
    return folder if folder.is_dir() else None


def told(workdir: Path, top: Path, at: str) -> str:
    """A path below one of these folders or below the workdir, as it is reported."""
    if top == workdir:
        return at
    return f"{TMPDIR}/{at}" if top.name == _TEMPORARY else os.fsencode(top / at).decode("utf-8", "backslashreplace")


def written_since(root: Path) -> Iterator[Path]:
    """The plain files elsewhere that were written since the run with this folder began."""
    try:
        beginning = (root / _BEGINNING).stat().st_mtime_ns
    except FileNotFoundError:
        return
    folders = {os.path.realpath(folder) for folder in (*_COMMON, os.path.expanduser("~"), os.getcwd())}
    seen: set[str] = set()
    for folder in sorted(folders):
        yield from _below(folder, beginning, _DEPTH, seen)


def _below(folder: str, beginning: int, depth: int, seen: set[str]) -> Iterator[Path]:
    if folder in seen:
        return
    seen.add(folder)
    try:
        with os.scandir(folder) as entries:
            listed = list(islice(entries, _MOST_ENTRIES))
    except OSError:
        return
    for entry in listed:
        # The listing says what is a folder and what a plain file. This runs often, so that only times are looked up.
        if entry.is_dir(follow_symlinks=False):
            if depth and not entry.name.startswith(_OF_THE_KIT):
                yield from _below(entry.path, beginning, depth - 1, seen)
        elif entry.is_file(follow_symlinks=False) and _written(entry) >= beginning:
            yield Path(entry.path)


def _written(entry: os.DirEntry[str]) -> int:
    """When a file was written last; never, if it went meanwhile."""
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return -1
