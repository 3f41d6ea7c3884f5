"""A process that has imported what a program needs, and forks one more of it whenever it is asked.

The kit starts it as a command with a socket, and asks with an argument list, an environment and three pipes. What it
forks is a process like any other: a session and a process group of its own, its pipes, its exit status. Only the start
of the interpreter and the imports are saved.

A fork can be another program of the kit that runs this one in a fork of its own, as a tracer does.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import IO, Any, NoReturn

from holdfast.servers.errors import StartError
from holdfast.servers.janitor import Janitor
from holdfast.servers.pace import scaled

# How long the imports may take before the first fork, in seconds. They take less than one on an idle machine.
_READY_S = 60.0
# Address space of what is forked, in bytes. A change of one constant must not take the memory of the machine.
_MOST_MEMORY = 8 << 30

# The pipes of what was forked before have lower numbers than this.
_MOST_DESCRIPTORS = 4096

Main = Callable[[Sequence[str]], int]
# A module whose `run_within` ends the process, and the arguments of that function before the program.
Within = tuple[str, Sequence[str]]


class Forked:
    """A forked process, as far as `subprocess.Popen` is used of one."""

    def __init__(self, pid: int, pipes: Sequence[int], ended: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = os.fdopen(pipes[0], "wb")
        self.stdout: IO[bytes] | None = os.fdopen(pipes[1], "rb")
        self.stderr: IO[bytes] | None = os.fdopen(pipes[2], "rb")
        self._ended = ended

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, less than 0 for a signal. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            poll = select.poll()
            poll.register(self._ended, select.POLLIN)
            if not poll.poll(None if timeout is None else max(0.0, timeout) * 1000):
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            # An end of file is the end of the fork server, which ends what it has forked.
            said = os.read(self._ended, 16)
            os.close(self._ended)
            self.returncode = int(said) if said else -signal.SIGKILL
        return self.returncode


class ForkServer:
    """The kit's end. A context manager; leaving it ends the process, and nothing that it forked is left."""

    def __init__(self, command: Sequence[str], *, janitor: Janitor, environment: Mapping[str, str]) -> None:
        """Start `command --control FD`. Raises StartError."""
        here, there = socket.socketpair()
        self._socket, self._lock, self._janitor = here, threading.Lock(), janitor
        with there:
            self._child = subprocess.Popen(
                [*command, "--control", str(there.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**environment, **janitor.mark},
                pass_fds=(there.fileno(),),
                start_new_session=True,
            )
        janitor.watch("group", self._child.pid)
        here.settimeout(scaled(_READY_S))

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        self._janitor.forget("group", self._child.pid)

    def start(self, words: Sequence[str], environment: Mapping[str, str], within: Within | None = None) -> Forked:
        """Fork one with these arguments and this environment. Raises StartError."""
        (stdin, to_it), (of_it, stdout), (log, stderr), (ended, ending) = (os.pipe() for _ in range(4))
        theirs = (stdin, stdout, stderr, ending)
        request = json.dumps({"words": list(words), "environment": dict(environment), "within": within}).encode()
        try:
            with self._lock:
                self._socket.sendall(len(request).to_bytes(4, "big"))
                socket.send_fds(self._socket, [b"+"], list(theirs))
                self._socket.sendall(request)
                pid = int.from_bytes(_exactly(self._socket, 4), "big")
        except OSError as error:
            for descriptor in (to_it, of_it, log, ended):
                os.close(descriptor)
            raise StartError(f"the fork server does not fork: {error}") from error
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        return Forked(pid, (to_it, of_it, log), ended)


def serve(control: int, main: Main) -> None:
    """Fork `main` for every request on the socket `control`, and report the end of each, until end of file."""
    gc.freeze()
    running: dict[int, int] = {}
    wake, woken = os.pipe()
    for end in (wake, woken):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with socket.socket(fileno=control) as asked:
        while True:
            ready, _, _ = select.select([asked.fileno(), wake], [], [])
            if wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake, 4096)
                _reap(running)
            if asked.fileno() in ready:
                size = asked.recv(4, socket.MSG_WAITALL)
                if len(size) < 4:
                    break
                pipes = _received(asked)
                request = json.loads(_exactly(asked, int.from_bytes(size, "big")))
                if request["within"] is not None:
                    importlib.import_module(request["within"][0])
                pid = os.fork()
                if pid == 0:
                    _become(asked, pipes, request, main)
                for descriptor in pipes[:3]:
                    os.close(descriptor)
                running[pid] = pipes[3]
    for pid in running:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _reap(running: dict[int, int]) -> None:
    while running:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        ended = running.pop(pid, None)
        if ended is not None:
            with contextlib.suppress(OSError):
                os.write(ended, str(os.waitstatus_to_exitcode(status)).encode())
            os.close(ended)


def _become(asked: socket.socket, pipes: Sequence[int], request: Mapping[str, Any], main: Main) -> NoReturn:
    """In the fork: a session of its own, its pipes and its environment, and then the program. Never returns."""
    status = 70
    try:
        os.setsid()
        # Only now can the kit end it by its group.
        asked.sendall(os.getpid().to_bytes(4, "big"))
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, descriptor in enumerate(pipes[:3]):
            os.dup2(descriptor, number)
        os.closerange(3, _MOST_DESCRIPTORS)
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.argv[1:] = words = request["words"]
        if request["within"] is not None:
            module, arguments = request["within"]
            importlib.import_module(module).run_within(arguments, partial(_status_of, main, words))
        status = _status_of(main, words)
    finally:
        os._exit(status)


def _status_of(main: Main, words: Sequence[str]) -> int:
    """Run the program; its exit status."""
    status = 70
    try:
        status = main(words)
        sys.stderr.flush()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except BaseException:
        traceback.print_exc()
    return status


def _received(asked: socket.socket) -> list[int]:
    _, found, _, _ = socket.recv_fds(asked, 1, 4)
    if len(found) != 4:
        raise OSError(f"expected four pipes, got {len(found)}")
    return found


def _exactly(stream: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = stream.recv(size - len(data))
        if not more:
            raise OSError("the other end is gone")
        data += more
    return data
