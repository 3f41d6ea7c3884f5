"""Places that a command is to write to, asked for before any work is done that would be lost."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from holdfast.reports.earlier import PARTIAL, PREVIOUS, is_drawn, is_remnant, set_aside


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


def unusable_drawn(option: str, path: Path) -> str:
    """Why no JUnit file or page of a run can be put there, as a usage error of `option`; empty if one can."""
    real, advice = os.path.realpath(path), "name another file"
    if real.endswith((PREVIOUS, PARTIAL)):
        return f"{option}: expected another name than {path}; {PREVIOUS} and {PARTIAL} stand for files of other runs"
    if os.path.islink(real):
        return f"{option}: expected a file, got links that lead to each other at {path}; {advice}"
    if os.path.isdir(real):
        return f"{option}: expected a file name, got the folder {path}; name a file in it"
    if os.path.lexists(real) and not os.path.isfile(real):
        return f"{option}: expected a file that keeps what is written, got a device or a pipe at {path}; {advice}"
    for name in (real, real + PARTIAL):
        if os.path.lexists(name) and not (is_remnant(name) or is_drawn(name)):
            return f"{option}: {name} is there and is no JUnit file or page of holdfast's; it is left alone: {advice}"
    problem = unusable(Path(real).parent)
    return f"{option}: {problem}; {advice}" if problem else ""


def put_drawn(path: Path, data: bytes) -> None:
    """Write the JUnit file or the page of a run, an earlier one set aside. Raises OSError, EarlierError."""
    set_aside(path)
    real = Path(os.path.realpath(path))
    real.parent.mkdir(parents=True, exist_ok=True)
    put(real, data)


def current_folder() -> str:
    """The working directory if it still exists, else an empty string."""
    try:
        return os.getcwd()
    except OSError:
        return ""
