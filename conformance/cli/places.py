"""Places that a command is to write to, asked for before any work is done that would be lost."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path


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
            # Somebody else may have put something there meanwhile.
            with suppress(OSError):
                each.rmdir()
