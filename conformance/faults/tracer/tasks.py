"""All tasks of a command: follows them from their start to their end, and takes one operation of theirs at a time."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from holdfast.conformance.faults import recording
from holdfast.conformance.faults.recording import Action, Ending, Failed, Life, Names, Operation, Truncate, Write
from holdfast.conformance.faults.tracer import Injection, amd64, ptrace
from holdfast.conformance.faults.tracer.calls import (
    CWD,
    DATA,
    NAME_OF,
    Call,
    Place,
    buffers,
    gone,
    handle_of,
    opened,
    signed,
)
from holdfast.conformance.faults.tracer.command import Program, become, children, kill, let_go_of_inherited
from holdfast.conformance.faults.tracer.locks import Overtaking
from holdfast.conformance.faults.tracer.maps import Maps, read
from holdfast.conformance.faults.tracer.outside import Outside
from holdfast.conformance.faults.tracer.tree import Seen, Tree

_STOPS = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
_SYSCALL_STOP = signal.SIGTRAP | 0x80


class Tasks(ABC):
    """One run of one command. Not to be used twice."""

    def __init__(self, workdir: Path, out: int, fault: Injection) -> None:
        """`out` is a file descriptor for the recording. Raises OSError."""
        self._tree = Tree(os.fsencode(os.path.realpath(workdir)))
        self._out = out
        self._fault = fault
        self._overtaking = None if fault.overtake is None else Overtaking(*fault.overtake)
        self._maps = Maps()
        self._outside = Outside(self._tree, fault.watch)
        self._count = 0
        self._command = 0
        self._status: int | None = None
        self._fired = False
        self._failed = False
        # Set by a kill at a point, or from outside: from then on nothing is let go any more.
        self._killed = False
        # This call is to be done by half, and then all is killed.
        self._tearing = False
        self._live: set[int] = set()
        # All that ever lived, and of the processes among them beside the command's own from when until when.
        self._family: set[int] = set()
        self._lives: dict[int, Life] = {}
        # Calls that nothing waits for, but whose result is of interest.
        self._awaited: dict[int, Call] = {}
        # Tasks whose end came before the return of the call that started them.
        self._early: set[int] = set()
        self._held: list[tuple[int, int]] = []
        self._untraced: dict[str, None] = {}
        self._refused: dict[str, None] = {}
        # Files outside the tree, with nothing written since they were last synced.
        self._synced_outside: set[tuple[int, int]] = set()

    def run(self, command: Sequence[str], program: Program | None = None) -> int:
        """Run a command, or the `program` that it is, to the end of its last process and write its recording.

        Returns its exit status, negative if a signal ended it. Raises OSError.
        """
        ptrace.adopt_orphans()
        _put(self._out, recording.header_line(command, self._tree.snapshot()))
        self._start(command, program)
        while True:
            try:
                task, status = self._held.pop(0) if self._held else os.waitpid(-1, ptrace.ALL_KINDS)
            except ChildProcessError:
                break
            self._seen(task, status)
        self._look_at_maps(0)
        self._maps.close()
        status = self._status if self._status is not None else -signal.SIGKILL
        ending = Ending(
            status,
            self._fired,
            tuple(self._untraced),
            self._outside.files(),
            self._outside.reads(),
            self._outside.strangers(self._family),
            tuple(self._lives.values()),
        )
        self._outside.close()
        _put(self._out, recording.ending_line(ending, tuple(self._refused)))
        return status

    def kill(self) -> None:
        """SIGKILL everything at once. May be called from a signal handler."""
        self._killed = True
        for task in tuple(self._live):
            kill(task)
        # What is not traced has no place in that list, but it is or becomes a child of this process.
        for task in children():
            kill(task)

    def _start(self, command: Sequence[str], program: Program | None) -> None:
        ready, go = os.pipe()
        self._command = os.fork()
        if not self._command:
            os.close(go)
            reads, locks = self._outside.watches, self._overtaking is not None
            become(command, ready, self._out, reads=reads, locks=locks, program=program)
        os.close(ready)
        self._live.add(self._command)
        self._family.add(self._command)
        # A signal from outside may have ended it already.
        with contextlib.suppress(ProcessLookupError, BrokenPipeError):
            ptrace.seize(self._command)
            os.write(go, b"!")
        os.close(go)
        let_go_of_inherited({self._out})

    # What waitpid reports.

    def _seen(self, task: int, status: int, *, waiting: bool = False) -> None:
        """Deal with one thing that happened to a task. `waiting`: an operation is under way, none may begin."""
        if not os.WIFSTOPPED(status):
            self._ended(task, status)
            return
        self._live.add(task)
        self._family.add(task)
        if self._killed:
            kill(task)
            return
        event, number = status >> 16, os.WSTOPSIG(status)
        # A task that is killed meanwhile answers with ESRCH; its end is reported later.
        with contextlib.suppress(ProcessLookupError):
            if event == ptrace.EVENT_SECCOMP:
                self._stopped(task, status, waiting=waiting)
            elif event in (ptrace.EVENT_FORK, ptrace.EVENT_VFORK, ptrace.EVENT_CLONE):
                self._started(ptrace.message(task))
                ptrace.go(task)
            elif event == ptrace.EVENT_EXEC:
                self._executed(task)
                ptrace.go(task)
            elif not event and number == _SYSCALL_STOP and task in self._awaited:
                self._returned(self._awaited.pop(task), ptrace.result(task))
                ptrace.go(task)
            elif event == ptrace.EVENT_STOP and number in _STOPS:
                ptrace.stay_stopped(task)
            else:
                ptrace.go(task, 0 if event or number == _SYSCALL_STOP else number)

    def _started(self, task: int) -> None:
        self._family.add(task)
        if task in self._early:
            self._early.discard(task)
        else:
            self._live.add(task)
            if not _is_thread(task):
                self._lives[task] = Life(task, time.monotonic_ns(), 0)

    def _executed(self, task: int) -> None:
        before = ptrace.message(task)
        if before != task:
            # The thread that called exec has taken the number of its process.
            self._live.discard(before)
            self._awaited.pop(task, None)
        with contextlib.suppress(OSError):
            found = os.stat(f"/proc/{task}/exe")
            self._outside.was_read(found)
            if found.st_mode & (stat.S_ISUID | stat.S_ISGID):
                name = os.readlink(f"/proc/{task}/exe")
                self._untraced[f"{name} would have gained rights, and was run without them"] = None

    def _ended(self, task: int, status: int) -> None:
        self._held = [(each, stop) for each, stop in self._held if each != task]
        self._awaited.pop(task, None)
        if (life := self._lives.get(task)) is not None:
            self._lives[task] = life._replace(died=time.monotonic_ns())
        if task in self._live:
            self._live.discard(task)
        elif task != self._command:
            self._early.add(task)
        if task == self._command:
            self._status = os.waitstatus_to_exitcode(status)
        if self._killed:
            # Its children are this process's now.
            self.kill()

    def _stopped(self, task: int, status: int, *, waiting: bool) -> None:
        entry = ptrace.entry(task)
        name = NAME_OF.get(entry.number)
        if entry.arch != amd64.ARCH or entry.number & amd64.FOREIGN_BIT or name is None:
            self._untraced["calls of another architecture than x86-64"] = None
            ptrace.go(task)
            return
        call = Call(task, name, entry.args)
        if waiting and not self._waits_for_none(call):
            self._held.append((task, status))
            return
        try:
            runs = self._called(call)
        except OSError as error:
            # Until it has run, what points to nowhere makes it fail by itself; a task that is gone makes no more of it.
            runs = False
            if call.ran or (error.errno != errno.EFAULT and not gone(task)):
                self._untraced[f"what {name} did: {error}"] = None
        if not runs and not self._killed:
            ptrace.go(task)

    @abstractmethod
    def _called(self, call: Call) -> bool:
        """Deal with a call at its entry. Returns whether its task runs on already, or is gone."""

    @abstractmethod
    def _returned(self, call: Call, result: int) -> None:
        """Deal with the result of a call that was let go by `_await`."""

    @abstractmethod
    def _waits_for_none(self, call: Call) -> bool:
        """Whether a call is no operation on the tree, so that it need not wait for one that is under way."""

    def _await(self, call: Call) -> bool:
        """Let a call run that may wait for another task, and get its result once it has one."""
        self._awaited[call.task] = call
        ptrace.go_to_exit(call.task)
        return True

    # One operation.

    def _begin(self, call: Call, *, failed: Callable[[int], Action] = Failed, halves: bool = False) -> bool:
        """Whether an operation may go on to its exit; if not, it was killed, or made to fail."""
        self._look_at_maps(call.task)
        due, fault = self._count + 1, self._fault
        if fault.kill is not None and due >= fault.kill:
            self._fired = True
            self._tearing = fault.torn and halves and self._halve(call)
            if not self._tearing:
                self.kill()
            return self._tearing
        if fault.error and due >= fault.at and not (fault.once and self._failed):
            self._fired = self._failed = True
            amd64.refuse(call.task, fault.error)
            self._record(call, failed(fault.error))
            return False
        if fault.short is not None and due >= fault.short and not self._fired and halves:
            self._fired = self._halve(call)
        return True

    def _finish(self, call: Call, *, alone: bool = True) -> int | None:
        """Let a call run to its exit. Returns its result, or None if its task ended before.

        `alone`: nothing else may happen meanwhile; the call does not wait for any other task.
        """
        call.ran = True
        try:
            ptrace.go_to_exit(call.task)
            while True:
                # The end of others is taken note of: that of a process is not reported before those of its threads.
                task, status = os.waitpid(-1, ptrace.ALL_KINDS)
                if not os.WIFSTOPPED(status):
                    self._ended(task, status)
                    if task == call.task:
                        return None
                elif task != call.task:
                    if alone and not self._killed:
                        self._held.append((task, status))
                    else:
                        self._seen(task, status, waiting=True)
                elif status >> 16 == ptrace.EVENT_EXEC:
                    # Another thread has called exec, which ends all others, and has this number now.
                    self._seen(task, status)
                    return None
                elif status >> 16 == 0 and os.WSTOPSIG(status) == _SYSCALL_STOP:
                    break
                else:
                    ptrace.go_to_exit(task)
            result = ptrace.result(call.task)
            for restore in call.restore:
                restore()
        except (ProcessLookupError, ChildProcessError):
            return None
        return result

    def _done(self, call: Call, actions: Iterable[Action]) -> bool:
        """Record what came of an operation. Returns whether its task is gone."""
        for action in actions:
            self._record(call, action)
        if self._tearing:
            self.kill()
        return self._killed

    def _record(self, call: Call, action: Action, at: int | None = None) -> None:
        self._maps.follow(action)
        if isinstance(action, Names):
            for change in action.changes:
                if self._tree.path(change.file) is None:
                    # Held open, it would keep its place on the disk.
                    self._maps.drop(change.file)
        self._count += 1
        operation = Operation(self._count, at or time.monotonic_ns(), call.task, call.name, action)
        _put(self._out, recording.operation_line(operation))

    def _look_at_maps(self, task: int) -> None:
        for change in self._maps.look(self._live):
            self._record(Call(task, "mmap", ()), change)

    # Halves.

    def _halve(self, call: Call) -> bool:
        """Make a write ask for half of its bytes. Returns False if it has less than two, or cannot be changed."""
        index = DATA[call.name][1]
        if index < 0:
            return self._halve_buffers(call, -index)
        half = call.args[index] // 2
        if half:
            amd64.set_argument(call.task, index, half)
            call.restore.append(lambda: amd64.set_argument(call.task, index, call.args[index]))
        return bool(half)

    def _halve_buffers(self, call: Call, index: int) -> bool:
        task, address, count = call.task, call.args[index - 1], call.args[index]
        try:
            lengths = buffers(task, address, count)
        except OSError:
            return False
        left = sum(lengths) // 2
        if not left:
            return False
        last = 0
        while lengths[last] < left:
            left -= lengths[last]
            last += 1
        at = address + 16 * last + 8
        try:
            ptrace.poke(task, at, struct.pack("<Q", left))
        except OSError:
            # The list may stand in memory that is not to be written to.
            return False
        amd64.set_argument(task, index, last + 1)
        call.restore.append(lambda: ptrace.poke(task, at, struct.pack("<Q", lengths[last])))
        call.restore.append(lambda: amd64.set_argument(task, index, count))
        return True


def _is_thread(task: int) -> bool:
    """Whether a task is one of a process that others are in as well; one that is gone was a process."""
    try:
        text = Path(f"/proc/{task}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return text.partition("\nTgid:")[2].split(maxsplit=1)[:1] != [str(task)]


def _put(out: int, line: str) -> None:
    data = memoryview(line.encode("ascii"))
    while data:
        data = data[os.write(out, data) :]


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
