"""Deals with each call of a traced program: reads back bytes, and notes syncs and events; `entries` has the rest."""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import time
from collections.abc import Iterator

from holdfast.conformance.faults.recording import Action, Event, Sync, SyncAll, Truncate, Write
from holdfast.conformance.faults.tracer import amd64, bpf, ptrace
from holdfast.conformance.faults.tracer.calls import (
    ATTRIBUTES,
    DATA,
    OPENS,
    PATHS,
    REFUSED,
    RIGHTS,
    SENDS,
    SYNCS,
    TIMES,
    TOLD,
    Call,
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
from holdfast.conformance.faults.tracer.channels import UnseenError
from holdfast.conformance.faults.tracer.entries import Entries
from holdfast.conformance.faults.tracer.locks import FLOCK_SIZE, SETS
from holdfast.conformance.faults.tracer.maps import memory_map, read

_ACCESS = os.O_ACCMODE
_MS_SYNC = 4
_SYNC_ALL_FLAGS = 7
_KEEP_SIZE, _COLLAPSE, _INSERT, _UNSHARE = 0x1, 0x8, 0x20, 0x40


class Tracer(Entries):
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
        if name == "fcntl":
            return self._lock(call)
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
        return call.name in ("connect", "fcntl") or call.name in TOLD or self._is_event(call)

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

    def _lock(self, call: Call) -> bool:
        """A lock is no operation. Where another process is to have it, the call fails as it does then."""
        fd, command, address = signed(call.args[0]), call.args[1], call.args[2]
        if self._overtaking is not None and command in SETS:
            name = os.readlink(handle_of(call, fd))
            if self._overtaking.fails(command, name, ptrace.peek(call.task, address, FLOCK_SIZE)):
                self._fired = True
                amd64.refuse(call.task, errno.EAGAIN)
        return False

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
        # It is not known whether the operation was done, and the program has no answer either.
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
