"""What comes of each call: bytes read back, names looked at, syncs and events noted."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import struct
import time
from collections.abc import Iterator, Sequence

from holdfast.conformance.faults.recording import Action, Changed, Event, Names, Sync, SyncAll, Truncate, Write
from holdfast.conformance.faults.tracer import amd64, bpf, ptrace
from holdfast.conformance.faults.tracer.calls import (
    ATTRIBUTES,
    CWD,
    DATA,
    MOVES,
    NEED,
    OPENS,
    PATHS,
    REFUSED,
    RIGHTS,
    SENDS,
    SYNCS,
    TIMES,
    TOLD,
    Call,
    Place,
    addresses,
    asked,
    gone,
    handle_of,
    leaves,
    opened,
    place_of,
    position,
    signed,
    stat_fd,
    stat_path,
)
from holdfast.conformance.faults.tracer.maps import memory_map, read
from holdfast.conformance.faults.tracer.outside import UnseenError
from holdfast.conformance.faults.tracer.tasks import Tasks
from holdfast.conformance.faults.tracer.tree import Seen, rights

_ACCESS = os.O_ACCMODE
_TMPFILE = os.O_TMPFILE & ~os.O_DIRECTORY
_MS_SYNC = 4
# AT_SYMLINK_NOFOLLOW.
_NOFOLLOW = 0x100
_SYNC_ALL_FLAGS = 7
_KEEP_SIZE, _COLLAPSE, _INSERT, _UNSHARE = 0x1, 0x8, 0x20, 0x40
# openat2(2): the directory is the root of the path, and of all links in it.
_IN_ROOT = 0x10
# renameat2(2): each of the two names gets the file of the other.
_EXCHANGE = 0x2
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


class Tracer(Tasks):
    """One run of one command, and what each of its calls means. Not to be used twice."""

    def _called(self, call: Call) -> bool:
        """Deal with a call. Returns whether its task runs on already, or is gone."""
        name = call.name
        if name in DATA:
            return self._data(call)
        if name in SENDS:
            return self._send(call)
        if name in SYNCS:
            return self._sync(call)
        if name in PATHS or name == "bind":
            return self._names(call)
        if name in OPENS:
            return self._open(call)
        if name in ATTRIBUTES:
            return self._attribute(call)
        if name in RIGHTS or name in TIMES:
            return self._changed(call)
        if name == "connect":
            # It may wait for who is to accept it.
            return self._await(call)
        if name in REFUSED:
            self._refused[name] = None
            amd64.refuse(call.task, REFUSED[name])
            return False
        if name in TOLD:
            # The flags of clone3 are the first thing that its argument points to.
            if name != "clone3" or struct.unpack("<Q", ptrace.peek(call.task, call.args[0], 8))[0] & bpf.CLONE_UNTRACED:
                self._untraced[f"a process {TOLD[name]}"] = None
            return False
        rest = {
            "mmap": self._map,
            "mq_open": self._queue,
            "msync": self._msync,
            "sync": self._sync_all,
            "syncfs": self._sync_all,
            "truncate": self._cut,
            "ftruncate": self._cut,
            "fallocate": self._allocate,
        }
        return rest[name](call)

    def _in_doubt(self, call: Call, number: int | None = None, path: str | None = None) -> bool:
        """The task ended inside its call: look at all that it may have done. Returns that it is gone."""
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

    # Events.

    def _is_event(self, call: Call) -> bool:
        if call.name in SENDS:
            return True
        found = stat_fd(call, signed(call.args[DATA[call.name][0]])) if call.name in DATA else None
        return found is not None and leaves(found)

    def _waits_for_none(self, call: Call) -> bool:
        # Neither makes anything in the tree.
        if call.name in ("open", "openat"):
            return not call.args[1 if call.name == "open" else 2] & bpf.MAKES
        return call.name == "connect" or call.name in TOLD or self._is_event(call)

    def _returned(self, call: Call, result: int) -> None:
        try:
            if call.name in OPENS and result >= 0:
                self._opened_outside(call, result)
            elif call.name == "connect" and not result:
                fd = signed(call.args[0])
                channel = os.readlink(handle_of(call, fd))
                with self._seen_of_sockets(call):
                    self._outside.connected(call.task, fd, channel, self._live, self._family)
        except OSError as error:
            # Another thread may have closed it already.
            if error.errno != errno.ENOENT and not gone(call.task):
                self._untraced[f"what {call.name} did: {error}"] = None

    @contextlib.contextmanager
    def _seen_of_sockets(self, call: Call) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # What points to nowhere makes the call fail by itself; a task that is gone sends no more.
            if error.errno == errno.EFAULT or gone(call.task):
                return
            unseen = isinstance(error, UnseenError)
            why = "this machine does not let the tracer see it" if unseen else str(error)
            self._untraced[f"whom it talks to by sockets: {why}"] = None

    def _queue(self, call: Call) -> bool:
        self._outside.queue(os.fsdecode(ptrace.text(call.task, call.args[0])))
        return False

    def _send(self, call: Call) -> bool:
        return self._event(call, signed(call.args[1 if call.name == "tee" else 0]))

    def _event(self, call: Call, fd: int) -> bool:
        try:
            channel = os.readlink(handle_of(call, fd))
        except FileNotFoundError:
            return False
        size = asked(call)
        if call.name in SENDS or not self._outside.knows(channel):
            with self._seen_of_sockets(call):
                self._outside.talked(call.task, fd, channel, self._live, self._family)
                for address in addresses(call):
                    self._outside.sent_to(call.task, address, self._live)
        self._look_at_maps(call.task)
        if self._fault.kill is not None and self._count + 1 >= self._fault.kill:
            self._fired = True
            self.kill()
            return True
        self._record(call, Event(channel, size), time.monotonic_ns())
        return False

    # Bytes.

    def _data(self, call: Call) -> bool:
        index, length_index = DATA[call.name]
        fd = signed(call.args[index])
        found = stat_fd(call, fd)
        if found is None:
            return False
        if leaves(found):
            return self._event(call, fd)
        number = self._ours(call, fd, found)
        if number is None or not call.args[abs(length_index)]:
            return False
        path = handle_of(call, fd)
        if not self._begin(call, halves=True):
            return self._killed
        # Only a splice may wait, for what another task puts into its pipe.
        result = self._finish(call, alone=call.name != "splice")
        if result is None:
            # The descriptor may be gone with the task, the file's names are not.
            return self._in_doubt(call, number, self._any_path(number) or path)
        if result <= 0:
            return self._done(call, ())
        try:
            with opened(path) as handle:
                offset, durable = place_of(call, fd, result, os.fstat(handle).st_size)
                write = Write(number, offset, read(handle, offset, result), durable)
        except OSError:
            return self._unreadable(call, number)
        return self._done(call, [write])

    def _cut(self, call: Call) -> bool:
        if call.name == "ftruncate":
            fd = signed(call.args[0])
            found, path = stat_fd(call, fd), handle_of(call, fd)
            number = self._ours(call, fd, found) if found else None
        else:
            inside = self._path(call, (None, 0), follow=True)
            path = os.fsdecode(self._tree.absolute(inside)) if inside is not None else ""
            found = stat_path(path)
            number = self._tree.number(found) if found else None
        if found is None or number is None or found.st_size == call.args[1]:
            return False
        if not self._begin(call):
            return self._killed
        result = self._finish(call)
        if result is None:
            return self._in_doubt(call, number, self._any_path(number) or path)
        return self._done(call, [] if result else [Truncate(number, call.args[1])])

    def _allocate(self, call: Call) -> bool:
        fd, mode, offset, length = (signed(call.args[0]), *call.args[1:4])
        found = stat_fd(call, fd)
        number = self._ours(call, fd, found) if found else None
        if found is None or number is None:
            return False
        # What is not known to leave the bytes alone may change them.
        changes = mode & ~(_KEEP_SIZE | _UNSHARE)
        grows = not mode & _KEEP_SIZE and offset + length > found.st_size
        if not changes and not grows:
            return False
        if not self._begin(call):
            return self._killed
        result = self._finish(call)
        if result is None:
            return self._in_doubt(call, number, self._any_path(number))
        if result:
            return self._done(call, ())
        actions: list[Action] = []
        try:
            with opened(handle_of(call, fd)) as handle:
                size = os.fstat(handle).st_size
                if size != found.st_size:
                    actions.append(Truncate(number, size))
                end = size if mode & (_COLLAPSE | _INSERT) else min(offset + length, size)
                if changes and end > offset:
                    actions.append(Write(number, offset, read(handle, offset, end - offset)))
        except OSError:
            return self._unreadable(call, number)
        return self._done(call, actions)

    # Syncs.

    def _sync(self, call: Call) -> bool:
        fd = signed(call.args[0])
        found = stat_fd(call, fd)
        number = self._ours(call, fd, found, wrote=False) if found else None
        if call.name == "sync_file_range":
            if call.args[3] & _SYNC_ALL_FLAGS != _SYNC_ALL_FLAGS:
                return False
            begin, length = call.args[1:3]
            return self._synced(call, number, data_only=True, begin=begin, end=begin + length if length else None)
        if number is None and found is not None:
            self._synced_outside.add((found.st_dev, found.st_ino))
        return self._synced(call, number, data_only=call.name == "fdatasync")

    def _msync(self, call: Call) -> bool:
        address, length, flags = call.args[:3]
        if not flags & _MS_SYNC:
            return False
        span = next((each for each in memory_map(call.task) if each.begin <= address < each.end), None)
        if span is None or (number := self._maps.file(span.inode)) is None:
            return False
        begin = address - span.begin + span.offset
        return self._synced(call, number, data_only=True, begin=begin, end=begin + length)

    def _synced(
        self, call: Call, number: int | None, *, data_only: bool, begin: int = 0, end: int | None = None
    ) -> bool:
        if number is None:
            return False

        def action(error: int) -> Sync:
            return Sync(number, data_only, error, begin, end)

        if not self._begin(call, failed=action):
            return self._killed
        result = self._finish(call)
        # Whether it was done nobody knows, nobody was told either.
        return True if result is None else self._done(call, [action(-result)])

    def _sync_all(self, call: Call) -> bool:
        if call.name == "syncfs":
            found = stat_fd(call, signed(call.args[0]))
            if found is None or found.st_dev != os.lstat(self._tree.root).st_dev:
                return False
        if not self._begin(call):
            return self._killed
        result = self._finish(call)
        return True if result is None else self._done(call, [] if result else [SyncAll()])

    # Names.

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

    def _attribute(self, call: Call) -> bool:
        where, name_index = ATTRIBUTES[call.name]
        if isinstance(where, int):
            found = stat_fd(call, signed(call.args[where]))
        else:
            try:
                found = os.stat(self._whole(call, where), follow_symlinks=not call.name.startswith("l"))
            except OSError:
                return False
        # Lists of rights are rights, which are not looked at.
        if found is None or self._tree.number(found) is None or self._attribute_name(call, name_index, b"system."):
            return False
        result = self._finish(call)
        if result == 0:
            self._untraced["a process has changed extended attributes in the work directory"] = None
        return result is None or self._killed

    def _changed(self, call: Call) -> bool:
        """A mode, an owner or a time is set: what a state of the disk may have of it nobody knows."""
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

    def _attribute_name(self, call: Call, index: int, begin: bytes) -> bool:
        return ptrace.text(call.task, call.args[index]).startswith(begin)

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

    def _open_nameless(self, call: Call) -> bool:
        result = self._finish(call)
        if result is None:
            return True
        if result >= 0 and (found := stat_fd(call, result)) is not None:
            path = os.readlink(os.fsencode(handle_of(call, result)))
            if self._tree.holds(os.path.dirname(path)):
                self._tree.add_nameless(found)
        return self._killed

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

    # What a call means.

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
            # Somebody who is not traced has made it.
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

    def _map(self, call: Call) -> bool:
        fd = signed(call.args[4])
        found = stat_fd(call, fd)
        number = self._ours(call, fd, found, wrote=False) if found else None
        try:
            # A file that was opened for reading cannot be mapped for writing, not even later.
            if number is not None and position(call, fd)[1] & _ACCESS != os.O_RDONLY:
                self._maps.add(number, handle_of(call, fd))
        except OSError:
            if not gone(call.task):
                self._untraced["files that the tracer has no right to read"] = None
        return False


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
