"""Which file of the work directory a call is about, and what is recorded of files that arrived or may have changed."""

from __future__ import annotations

import contextlib
import os
import stat
import struct
from collections.abc import Iterator

from holdfast.conformance.faults.recording import Action, Names, Truncate, Write
from holdfast.conformance.faults.tracer import ptrace
from holdfast.conformance.faults.tracer.calls import CWD, Call, Place, gone, handle_of, opened, signed
from holdfast.conformance.faults.tracer.maps import read
from holdfast.conformance.faults.tracer.tasks import Tasks
from holdfast.conformance.faults.tracer.tree import Seen

_UNIX = 1
_BIND_MAX = 128
# Paths that mean another process to each that says them.
_ALIASES = (
    (b"/proc/self/", b"/proc/%d/"),
    (b"/proc/thread-self/", b"/proc/%d/"),
    (b"/dev/fd/", b"/proc/%d/fd/"),
)
# The kernel follows no more of them in a row.
_MOST_LINKS = 40


class Files(Tasks):
    """Finds the file that a call names, by descriptor or by path."""

    def _ours(self, call: Call, fd: int, found: os.stat_result, *, wrote: bool = True) -> int | None:
        """The number of an open file, or None if it does not lie in the tree."""
        number = self._tree.number(found)
        if number is not None or not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            return number
        try:
            path = os.readlink(os.fsencode(handle_of(call, fd)))
        except OSError:
            return None
        if found.st_nlink and self._tree.relative(path) is not None:
            # A process that is not traced has made it.
            self._done(Call(0, "unseen", ()), self._look(self._tree.rescan()))
            return self._tree.number(found)
        if wrote:
            self._synced_outside.discard((found.st_dev, found.st_ino))
        return None

    def _any_path(self, number: int) -> str | None:
        path = self._tree.path(number)
        return None if path is None else os.fsdecode(self._tree.absolute(path))

    def _path(self, call: Call, place: Place, *, follow: bool = False) -> bytes | None:
        base, index = place
        text = ptrace.text(call.task, call.args[index])
        return self._located(call, CWD if base is None else signed(call.args[base]), text, follow=follow)

    def _bound(self, call: Call) -> bytes | None:
        """Where a socket gets its name, if it gets one in the file system."""
        address = ptrace.peek(call.task, call.args[1], min(call.args[2], _BIND_MAX))
        if len(address) < 4 or struct.unpack_from("<H", address)[0] != _UNIX or not address[2]:
            return None
        return self._located(call, CWD, address[2:].split(b"\0")[0])

    def _whole(self, call: Call, place: Place) -> bytes:
        """A path as this process can use it, of one as a task says it."""
        base, index = place
        text = ptrace.text(call.task, call.args[index])
        return _as_seen(call, CWD if base is None else signed(call.args[base]), text)

    def _located(self, call: Call, base: int, text: bytes, *, follow: bool = False, links: int = 0) -> bytes | None:
        """The path in the tree of one as a task says it, or None. Its last part need not exist."""
        text = text.rstrip(b"/")
        whole = _as_seen(call, base, text)
        parent, name = os.path.split(whole)
        if not text or name in (b"", b".", b".."):
            return None
        if follow and os.path.islink(whole):
            # Not by realpath: to it, /proc/self behind a link like /dev/stdout is the tracer.
            if links == _MOST_LINKS:
                return None
            target = os.path.join(parent, os.readlink(whole))
            return self._located(call, base, target, follow=True, links=links + 1)
        try:
            handle = os.open(parent or b"/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            parent = os.readlink(b"/proc/self/fd/%d" % handle)
        finally:
            os.close(handle)
        return self._tree.relative((b"" if parent == b"/" else parent) + b"/" + name)

    def _look(self, seen: Seen) -> Iterator[Action]:
        """The bytes of files that came from outside, which then get their names."""
        for number, path in seen.arrived:
            with opened(os.fsdecode(self._tree.absolute(path))) as handle:
                found = os.fstat(handle)
                # From here on it is read as a file of the tree.
                self._outside.was_read(found)
                durable = (found.st_dev, found.st_ino) in self._synced_outside
                yield Write(number, 0, read(handle, 0, found.st_size), durable)
        if seen.changes:
            yield Names(seen.changes)

    def _in_doubt(self, call: Call, number: int | None = None, path: str | None = None) -> bool:
        """The task ended inside its call: inspect all that it may have done. Returns that it is gone."""
        actions: list[Action] = []
        if number is not None and path is not None:
            # A file without names that only this task had open is gone with it.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError), opened(path) as handle:
                size = os.fstat(handle).st_size
                actions = [Truncate(number, size), Write(number, 0, read(handle, 0, size))]
        actions += self._look(self._tree.rescan())
        self._done(call, actions)
        return True

    def _unreadable(self, call: Call, number: int) -> bool:
        """What was written cannot be read back. Returns whether the reason is that the task is gone."""
        if gone(call.task):
            return self._in_doubt(call, number, self._any_path(number))
        self._untraced["files that the tracer has no right to read"] = None
        return self._done(call, ())


def _as_seen(call: Call, base: int, text: bytes) -> bytes:
    """A path as this process can use it, of `text` as a task says it, relative to the directory `base`."""
    for alias, meant in _ALIASES:
        if text.startswith(alias):
            text = meant % call.task + text[len(alias) :]
    if text.startswith(b"/"):
        return text
    start = b"/proc/%d/cwd" % call.task if base == CWD else b"/proc/%d/fd/%d" % (call.task, base)
    # Without a text it is the descriptor itself, which need not be a directory.
    return start + b"/" + text if text else start
