"""Places that a command is to write to, asked for before any work is done that would be lost."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from holdfast.reports.earlier import PARTIAL


def unusable_file(path: Path) -> str:
    """Why no file can be put there, in place of one that may be there; empty if one can. Leaves nothing behind."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return unusable(path.parent)
    except OSError as error:
        return f"{path} cannot be used ({error.strerror})"
    # A device would be replaced by a file, and a pipe waits for a reader.
    return unusable(path.parent) if stat.S_ISREG(mode) else f"{path} is no plain file"


def unusable(folder: Path) -> str:
    """Why no file can be put into this folder, made if it is not there; empty if one can. Leaves nothing behind."""
    made: list[Path] = []
    try:
        for each in reversed([folder, *folder.parents]):
            if not each.exists():
                each.mkdir()
                made.append(each)
        if not folder.is_dir():
            return f"{folder} is a file"
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except NotADirectoryError:
        return f"a part of {folder} is a file"
    except OSError as error:
        return f"{folder} cannot be written to ({error.strerror})"
    finally:
        for each in reversed(made):
            # Another process may have put a file there meanwhile.
            with suppress(OSError):
                each.rmdir()


def put(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all. Raises OSError."""
    partial = path.with_name(path.name + PARTIAL)
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError:
        with suppress(OSError):
            partial.unlink()
        raise


def current_folder() -> str:
    """The working directory if it still exists, else an empty string."""
    try:
        return os.getcwd()
    except OSError:
        return ""
