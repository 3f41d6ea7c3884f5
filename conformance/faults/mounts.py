"""Runs a command whose work directory is read-only or a small disk: mounts that only it sees, and that end with it.

    python -m holdfast.conformance.faults.mounts {as-it-is,read-only,small} WORKDIR MARK BYTES CMD...

Root makes them in a mount namespace of its own, anybody else in a user namespace as well, in which he stays who he is.
`small` lets the command work on a tmpfs of this size that begins with what WORKDIR holds, and puts what it left there
into WORKDIR once it has ended, with all that it started. MARK is a file that is made when this is done, or, of the
other two, right before the command begins: without it nothing was tried. 125 says that mounting failed, 127 that there
is no such command. SIGTERM ends the command by force, and `small` still hands back what there is.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from enum import StrEnum, unique
from pathlib import Path
from types import FrameType

import psutil

from holdfast.conformance.faults.copying import copy
from holdfast.conformance.faults.processes import runs
from holdfast.conformance.faults.tracer import FAILED, NO_COMMAND

_NEWNS, _NEWUSER = 0x00020000, 0x10000000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE, _RELATIVE_TIMES = 1, 32, 4096, 16384, 1 << 18, 1 << 21
# Flags of a mount that a user who did not set them may not take away; statvfs numbers them as mount does, but for one.
_KEPT = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME
_SUBREAPER, _PARENT_DEATH = 36, 1
_POLL_S = 0.002


@unique
class Disk(StrEnum):
    """What the work directory lies on."""

    AS_IT_IS = "as-it-is"
    READ_ONLY = "read-only"
    SMALL = "small"


def argv(disk: Disk, folder: Path, mark: Path, size: int = 0) -> list[str]:
    """The words that go before a command. `size` in bytes, of a small disk."""
    python = [sys.executable, "-P", "-m", "holdfast.conformance.faults.mounts"]
    return [*python, disk.value, str(folder), str(mark), str(size)]


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says. Returns what a command on a small disk ended with; otherwise it becomes it."""
    disk, folder, mark, size, *command = arguments
    place = Path(folder)
    try:
        _enter()
        if disk == Disk.SMALL:
            return _on_a_small_disk(place, Path(mark), int(size), command)
        _mount(place, place, "", _BIND | _RECURSIVE)
        if disk == Disk.READ_ONLY:
            have = os.statvfs(place).f_flag
            kept = have & _KEPT | (_RELATIVE_TIMES if have & os.ST_RELATIME else 0)
            _mount(None, place, "", _REMOUNT | _BIND | _READ_ONLY | kept)
    except OSError as error:
        print(f"mounts: {error}", file=sys.stderr)
        return FAILED
    Path(mark).touch()
    return _become(command)


def _enter() -> None:
    """A mount namespace of one's own. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    # Without a user namespace the command may still become another user, as a database server does that root starts.
    if os.geteuid() or libc.unshare(_NEWNS):
        user, group = os.geteuid(), os.getegid()
        if libc.unshare(_NEWUSER | _NEWNS):
            raise _failed("unshare of user and mount namespaces")
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    _mount(None, Path("/"), "", _RECURSIVE | _PRIVATE)


def _mount(source: Path | None, target: Path, kind: str, flags: int, data: str = "") -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    what = os.fsencode(source) if source is not None else b"none"
    if libc.mount(what, os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode()):
        raise _failed(f"mount on {target}")


def _failed(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


def _become(command: Sequence[str]) -> int:
    try:
        os.execvp(command[0], list(command))  # noqa: S606  the command is what this is for
    except OSError as error:
        print(f"mounts: {command[0]}: {error.strerror}", file=sys.stderr)
    return NO_COMMAND


def _on_a_small_disk(folder: Path, mark: Path, size: int, command: Sequence[str]) -> int:
    """Raises OSError: the disk cannot be mounted, or is too small for what there is, or nothing can be handed back."""
    below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    real = Path(f"/proc/self/fd/{below}")
    owner = os.fstat(below)
    _mount(Path("tmpfs"), folder, "tmpfs", 0, f"size={size},mode={owner.st_mode & 0o7777:o}")
    with contextlib.suppress(PermissionError):
        os.chown(folder, owner.st_uid, owner.st_gid)
    copy(real, folder)
    libc = ctypes.CDLL(None)
    # What the command leaves behind becomes a child of this process, which ends it.
    libc.prctl(_SUBREAPER, 1)
    ended = False

    def end(*_: int | FrameType | None) -> None:
        nonlocal ended
        ended = True
        _kill_children()

    signal.signal(signal.SIGTERM, end)
    child = os.fork()
    if not child:
        libc.prctl(_PARENT_DEATH, signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os._exit(_become(command))
    if ended:
        _kill_children()
    _, status = os.waitpid(child, 0)
    _kill_children()
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    for left in real.iterdir():
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        else:
            left.unlink()
    copy(folder, real)
    mark.touch()
    return os.waitstatus_to_exitcode(status)


def _kill_children() -> None:
    """End all of them and their children, until none runs; a parent can still wait for its child."""
    while children := [one for one in psutil.Process().children(recursive=True) if runs(one)]:
        for one in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        time.sleep(_POLL_S)


if __name__ == "__main__":
    status = main(sys.argv[1:])
    # A shell's way to say that a signal ended it.
    sys.exit(status if status >= 0 else 128 - status)
