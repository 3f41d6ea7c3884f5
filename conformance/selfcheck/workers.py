"""The worker processes of `selfcheck`: each takes one task after the other."""

from __future__ import annotations

import math
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import IO, TypeVar

import msgspec

from holdfast.conformance.selfcheck.tasks import Beginning, Task
from holdfast.servers.janitor import Janitor

_WORKER = (sys.executable, "-P", "-m", "holdfast.conformance.selfcheck.worker")
_Result = TypeVar("_Result")


class WorkerError(Exception):
    """A worker ended before its tasks."""


class Workers:
    """As many workers as mutants run at the same time. A context manager; leaving it ends them."""

    def __init__(self, beginning: Beginning, *, jobs: int) -> None:
        self._beginning, self._jobs = beginning, jobs
        self._stack = ExitStack()

    def __enter__(self) -> Workers:
        self._janitor = self._stack.enter_context(Janitor())
        self._processes = [self._started() for _ in range(self._jobs)]
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        self._stack.close()
        # The janitor has killed what had not ended with its input.
        for process in self._processes:
            assert process.stdout is not None
            process.stdout.close()
            process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(_WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self._janitor.watch("group", process.pid)
        _say(process, self._beginning)
        return process

    def results(self, tasks: Sequence[Task], kind: type[_Result], *, until: float = math.inf) -> Iterator[_Result]:
        """The results of the tasks, as they come; of those alone that begin before `until`, by the monotonic clock.

        Raises WorkerError.
        """
        waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
        for task in tasks:
            waiting.put(task)
        found: queue.SimpleQueue[_Result | WorkerError | None] = queue.SimpleQueue()
        for process in self._processes:
            threading.Thread(target=_feed, args=(process, waiting, kind, found.put, until), daemon=True).start()
        at_work = len(self._processes)
        while at_work:
            result = found.get()
            if isinstance(result, WorkerError):
                raise result
            if result is None:
                at_work -= 1
            else:
                yield result


def _feed(
    process: subprocess.Popen[bytes],
    waiting: queue.SimpleQueue[Task],
    kind: type[_Result],
    put: Callable[[_Result | WorkerError | None], None],
    until: float,
) -> None:
    assert process.stdout is not None
    output: IO[bytes] = process.stdout
    try:
        while time.monotonic() < until:
            task = waiting.get_nowait()
            _say(process, task)
            while (line := output.readline()) != b"\n":
                if not line:
                    raise WorkerError(f"a worker ended with status {process.wait()} before its task was done")
                put(msgspec.json.decode(line, type=kind))
        put(None)
    except queue.Empty:
        put(None)
    except OSError as error:
        put(WorkerError(f"a worker takes no task: {error}"))
    except WorkerError as error:
        put(error)


def _say(process: subprocess.Popen[bytes], message: Task | Beginning) -> None:
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(message) + b"\n")
    process.stdin.flush()
