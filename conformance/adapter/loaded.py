"""The files that an adapter's processes have: their programs, what they mapped, and the scripts of their command lines.

Observed from outside, through /proc, at a few moments of a run. A file that a program read and closed before is missed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

# Files that an interpreter reads as a program. Of the open files only these count: the others are data, and the digest
# of a short secret discloses nearly the secret itself.
CODE = frozenset(
    (
        ".bash .beam .cjs .class .clj .dll .ear .ex .exs .groovy .jar .js .jsx .kts .lua .mjs .node .php .phar .pl "
        ".pm .ps1 .py .pyc .pyz .r .rb .scala .sh .so .tcl .ts .tsx .war .wasm .whl .zsh"
    ).split()
)


def files_of_group(group: int) -> frozenset[str]:
    """The absolute paths of the files that the processes of a process group have open or mapped now."""
    return frozenset(path for process in _members(group) for path in _files_of(process))


def _members(group: int) -> Iterator[Path]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            # The name, in parentheses, may hold anything; after it come the state, the parent and the group.
            if int(stat.read_bytes().rpartition(b")")[2].split()[2]) == group:
                yield stat.parent


def _files_of(process: Path) -> Iterator[str]:
    """The files that could be observed of a process before it ended."""
    with contextlib.suppress(OSError):
        yield os.readlink(process / "exe")
    with contextlib.suppress(OSError):
        for line in (process / "maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            # Range, rights, offset, device, inode; then the path, blanks included.
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and fields[5].startswith("/"):
                yield fields[5]
    with contextlib.suppress(OSError):
        here = os.readlink(process / "cwd")
        words = (process / "cmdline").read_bytes().split(b"\0")[1:-1]
        for word in map(os.fsdecode, words):
            path = os.path.normpath(os.path.join(here, word))
            if Path(path).suffix.lower() in CODE and os.path.isfile(path):
                yield path
    with contextlib.suppress(OSError):
        for handle in os.listdir(process / "fd"):
            with contextlib.suppress(OSError):
                target = os.readlink(process / "fd" / handle)
                if target.startswith("/") and Path(target).suffix.lower() in CODE:
                    yield target
