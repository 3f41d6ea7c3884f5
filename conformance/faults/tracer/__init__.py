"""Records what a program does to its work directory and says to the outside, and makes it die or fail at a given point.

ptrace and a seccomp filter, without root, compiler or any help of the program, which keeps its own pipes and sockets.
x86-64 Linux only: only `amd64` depends on that. Run it as a process of its own, see `Injection.argv`:

    python -m holdfast.conformance.faults.tracer OUT WORKDIR [NAME=JSON]... -- CMD...

The names are those of `Injection`: `kill=3 torn=true`, `error=28 at=2 once=true`.

It ends when the last process that the command started has ended, as the command did: with its exit status, or by the
signal that ended it. 125 says that tracing failed, with the reason on standard error; 127 that the command could not be
started. SIGTERM and SIGINT to the tracer end everything at once by SIGKILL; the recording is then still whole. When the
tracer ends, the kernel ends all that it traces.

Operations on the work directory happen one at a time; they and what leaves for the outside share one line of numbers.
What a point N means:

- `kill`: nothing of operation N has happened, be it an event; everything before it has. With `torn`, if it is a write,
  half of it has happened and stands in the recording as operation N.
- `error`: the first operation on files at N or later fails, and all that follow it, unless `once`. Events never do: a
  full disk does not stop a socket. A call fails that would have made several operations as one.
- `short`: the first write of two bytes or more at N or later does half of what it was asked.

- `overtake`: once the second file is there, the program gets the lock to write of the first, a SQLite database, once.
  After that it does not get it any more, as if another process had taken it.

`Ending.fired` says whether the point was reached. `Ending.untraced` names what could not be observed, a change of
extended attributes in the work directory among it. Rights, owners and times of files are not observed at all. Of files
outside the work directory the tracer observes writes. With `watch` it also observes that they are opened
so that they can be read. That stops at every file that is opened, and takes longer. `Event.size` is what the call
asked to send: waiting for what it did send would hold up others.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

# What the tracer ends with if it could not do its work, and if there was no such command.
FAILED, NO_COMMAND = 125, 127
_PYTHON = (sys.executable, "-I", "-S", str(Path(__file__).with_name("__main__.py").absolute()))


def arguments_of(command: Sequence[str]) -> Sequence[str] | None:
    """The arguments of a tracer, of its whole command line; None if it is another command."""
    return command[len(_PYTHON) :] if tuple(command[: len(_PYTHON)]) == _PYTHON else None


class Injection(NamedTuple):
    """What is to go wrong, if anything; see the text of the package. Numbers of operations count from 1.

    `watch` are files, by device and inode, of which is noted that they are opened for reading.
    """

    kill: int | None = None
    torn: bool = False
    error: int = 0
    at: int = 1
    once: bool = False
    short: int | None = None
    watch: tuple[tuple[int, int], ...] = ()
    overtake: tuple[str, str] | None = None

    def argv(self, out: Path, workdir: Path, command: Sequence[str] = ()) -> list[str]:
        """The command line of a tracer process to which this happens, and which writes its recording to `out`.

        Without `command` it is the words that go before one.
        """
        fault = [f"{name}={json.dumps(value)}" for name, value in zip(self._fields, self, strict=True) if value]
        return [*_PYTHON, str(out), str(workdir), *fault, "--", *command]
