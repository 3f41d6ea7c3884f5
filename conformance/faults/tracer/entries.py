"""Calls that make, move, remove and open names in the work directory, or change what a file has beside its bytes."""

from __future__ import annotations

import contextlib
import os
import stat
import struct
from collections.abc import Iterator, Sequence

from holdfast.conformance.faults.recording import Action, Changed, Names, Truncate, Write
from holdfast.conformance.faults.tracer import bpf, ptrace
from holdfast.conformance.faults.tracer.calls import (
    ATTRIBUTES,
    CWD,
    MOVES,
    NEED,
    OPENS,
    PATHS,
    RIGHTS,
    TIMES,
    Call,
    Place,
    gone,
    handle_of,
    opened,
    position,
    signed,
    stat_fd,
    stat_path,
)
from holdfast.conformance.faults.tracer.maps import read
from holdfast.conformance.faults.tracer.tasks import Tasks
from holdfast.conformance.faults.tracer.tree import Seen, rights

# Which file of the work directory a call is about, and what is recorded of files that arrived or may have changed

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


_ACCESS = os.O_ACCMODE
_TMPFILE = os.O_TMPFILE & ~os.O_DIRECTORY
# AT_SYMLINK_NOFOLLOW.
_NOFOLLOW = 0x100
# openat2(2): the directory is the root of the path, and of all links in it.
_IN_ROOT = 0x10
# renameat2(2): each of the two names gets the file of the other.
_EXCHANGE = 0x2


class Entries(Files):
    """Deals with the calls on directory entries, and on rights, owners, times and extended attributes."""

    def _names(self, call: Call) -> bool:
        places = PATHS.get(call.name, ())
        paths = [self._path(call, place) for place in places] if places else [self._bound(call)]
        inside = [path for path in paths if path is not None]
        # The names that are made and lie outside; an exchange makes both.
        swaps = call.name == "renameat2" and bool(call.args[4] & _EXCHANGE)
        news = [*zip(places, paths, strict=False)][0 if swaps else -1 :]
        made = [self._whole(call, place) for place, path in news if path is None]
        if not inside:
            return self._names_outside(call, made)
        # What cannot succeed is left to fail by itself. The source of a rename is the first of its paths.
        if call.name in NEED:
            if paths[0] is not None and not os.path.lexists(self._tree.absolute(paths[0])):
                return False
        elif os.path.lexists(self._tree.absolute(inside[0])):
            return False
        if not self._begin(call):
            return self._killed
        result = self._finish(call)
        if result is None:
            return self._in_doubt(call)
        for name in made if result >= 0 else ():
            self._outside.was_written(name)
        linked = call.name in ("link", "linkat")
        return self._done(call, self._look(self._tree.look(inside, linked=linked)) if result >= 0 else ())

    def _names_outside(self, call: Call, made: Sequence[bytes]) -> bool:
        """A call that changes names outside only: files may get there by it, and pipes."""
        if not (call.name in MOVES or call.name.startswith("mknod")):
            return False
        result = self._finish(call)
        for name in made if result == 0 else ():
            if call.name in MOVES:
                self._outside.was_written(name)
            else:
                self._outside.made_pipe(name)
        return result is None or self._killed

    def _open(self, call: Call) -> bool:
        base, path_index, flags_index = OPENS[call.name]
        if call.name == "creat":
            flags = os.O_CREAT | os.O_TRUNC
        elif flags_index is not None:
            flags = call.args[flags_index]
        else:
            flags, _, resolve = struct.unpack("<QQQ", ptrace.peek(call.task, call.args[2], 24))
            if not flags & bpf.CHANGES and not self._outside.watches:
                return False
            if resolve & _IN_ROOT:
                self._untraced["a process has opened files by paths of a root of its own"] = None
                return False
        if flags & _TMPFILE:
            return self._open_nameless(call)
        path = self._path(call, (base, path_index), follow=not flags & (os.O_EXCL | os.O_NOFOLLOW))
        if path is None:
            # It may wait for who opens the other end of a pipe.
            return self._await(call)
        found = stat_path(os.fsdecode(self._tree.absolute(path)))
        makes = found is None and bool(flags & os.O_CREAT)
        cuts = found is not None and flags & os.O_TRUNC and stat.S_ISREG(found.st_mode) and found.st_size
        if not makes and not cuts:
            return False
        if not self._begin(call):
            return self._killed
        result = self._finish(call)
        if result is None:
            return self._in_doubt(call)
        if result < 0:
            return self._done(call, ())
        if makes:
            return self._done(call, self._look(self._tree.look([path])))
        assert found is not None
        number = self._tree.number(found)
        return self._done(call, [] if number is None else [Truncate(number, 0)])

    def _open_nameless(self, call: Call) -> bool:
        result = self._finish(call)
        if result is None:
            return True
        if result >= 0 and (found := stat_fd(call, result)) is not None:
            path = os.readlink(os.fsencode(handle_of(call, result)))
            if self._tree.holds(os.path.dirname(path)):
                self._tree.add_nameless(found)
        return self._killed

    def _opened_outside(self, call: Call, fd: int) -> None:
        """A file outside the tree was opened: so that it can be written to, or one that is watched to be read."""
        flags = position(call, fd)[1]
        found = stat_fd(call, fd)
        if found is None or flags & os.O_PATH:
            return
        if flags & _ACCESS:
            self._outside.was_written(handle_of(call, fd))
        if flags & _ACCESS != os.O_WRONLY:
            self._outside.was_read(found)

    def _attribute(self, call: Call) -> bool:
        where, name_index = ATTRIBUTES[call.name]
        if isinstance(where, int):
            found = stat_fd(call, signed(call.args[where]))
        else:
            try:
                found = os.stat(self._whole(call, where), follow_symlinks=not call.name.startswith("l"))
            except OSError:
                return False
        # Lists of rights are rights, which are not inspected.
        if (
            found is None
            or self._tree.number(found) is None
            or ptrace.text(call.task, call.args[name_index]).startswith(b"system.")
        ):
            return False
        result = self._finish(call)
        if result == 0:
            self._untraced["a process has changed extended attributes in the work directory"] = None
        return result is None or self._killed

    def _changed(self, call: Call) -> bool:
        """A mode, an owner or a time is set: what a power loss leaves of it is not modelled."""
        where, flags_index = {**RIGHTS, **TIMES}[call.name]
        flags = call.args[flags_index] if flags_index is not None else 0
        follow = call.name != "lchown" and not flags & _NOFOLLOW
        if isinstance(where, tuple) and not call.args[where[1]]:
            # utimensat(2) without a path is about the descriptor.
            where = 0
        try:
            path = handle_of(call, signed(call.args[where])) if isinstance(where, int) else self._whole(call, where)
            number = self._tree.number(os.stat(path, follow_symlinks=follow))
        except OSError:
            return False
        if number is None:
            return False
        result = self._finish(call)
        if result is None:
            return True
        if result:
            return self._killed
        try:
            found = os.stat(path, follow_symlinks=follow)
        except OSError:
            return self._unreadable(call, number)
        return self._done(call, [Changed(number, rights(found), found.st_mtime_ns if call.name in TIMES else None)])
