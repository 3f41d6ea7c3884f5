"""Writes down which lines of a reference run, so that a mutant is held only against the tests that meet it.

The lines are bytes of a file in shared memory, one for each: what a process did before it was killed stands there too,
and all processes of a test write to the same file. The harness clears it before a test and reads it afterwards.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

# The path of a JSON file `{"map": PATH, "files": {FILE: OFFSET}}`; line 1 of a file is the byte behind its offset.
VARIABLE = "HOLDFAST_TRACE"
_ROOT = Path(__file__).parent

_Local = Callable[[FrameType, str, Any], Any]


def start_if_wanted() -> None:
    """Trace this process, its threads and its forks, if the environment asks for it. Raises OSError."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    wanted = json.loads(Path(path).read_text(encoding="utf-8"))
    with Path(wanted["map"]).open("r+b") as file:
        area = mmap.mmap(file.fileno(), 0)
    local = {str(_ROOT / name): _marks(area, offset) for name, offset in wanted["files"].items()}

    def enter(frame: FrameType, _event: str, _argument: Any) -> _Local | None:
        return local.get(frame.f_code.co_filename)

    threading.settrace(enter)
    sys.settrace(enter)


def _marks(area: mmap.mmap, offset: int) -> _Local:
    def mark(frame: FrameType, event: str, _argument: Any) -> _Local:
        if event == "line":
            area[offset + frame.f_lineno] = 1
        return mark

    return mark
