"""The workers of a run by number: started when they are needed, replaced within a budget, ended in order."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from holdfast.conformance.adapter.process import Deadlines
from holdfast.conformance.adapter.worker import AdapterCommand, GreetingError, Worker
from holdfast.servers.errors import StartError
from holdfast.servers.janitor import Janitor


class Exhausted(Exception):  # noqa: N818 - a state of the pool, not a defect of the kit
    """No worker is started any more, mostly because too many died one after the other; the text says why."""


# After this number of dead workers in a row the remaining cases are not reached.
MAX_DEAD_IN_A_ROW = 3


class WorkerPool:
    """Workers by number, started when first needed and replaced within a budget."""

    def __init__(self, command: AdapterCommand, *, janitor: Janitor) -> None:
        self.command = command
        self._janitor = janitor
        self._workers: dict[int, Worker] = {}
        self._dead_in_a_row = 0
        self._logs: list[tuple[int, str]] = []
        self._loaded: set[str] = set()
        self.epoch_ns = time.monotonic_ns()
        self.replaced: list[tuple[int, str]] = []

    @property
    def deadlines(self) -> Deadlines:
        """The deadlines of every worker."""
        return self.command.deadlines

    @property
    def exhausted(self) -> bool:
        """Whether the budget of dead workers is used up."""
        return self._dead_in_a_row >= MAX_DEAD_IN_A_ROW

    def get(self, number: int) -> Worker:
        """Worker `number`, started if it is not there.

        Raises Exhausted, StartError, GreetingError.
        """
        worker = self._workers.get(number)
        if worker is not None and worker.dead is None:
            return worker
        if self.exhausted:
            raise Exhausted("three workers in a row had died; no more are started")
        if worker is not None:
            self._retire(worker)
        worker = self._start(number)
        worker.await_greeting()
        self._workers[number] = worker
        if not self._loaded:
            self._loaded |= worker.process.loaded()
        return worker

    def _start(self, number: int) -> Worker:
        return Worker(self.command, janitor=self._janitor, number=number, epoch_ns=self.epoch_ns)

    def warm_up(self, count: int) -> None:
        """Start workers 0 to `count` - 1 at once, if they are missing; `get` meets a failure again."""
        if self.exhausted:
            return
        fresh: list[Worker] = []
        with contextlib.suppress(StartError):
            # One by one: the worker that has started must be known even if the next does not start.
            for number in range(count):
                if number not in self._workers:
                    fresh.append(self._start(number))  # noqa: PERF401
        ends = time.monotonic() + self.deadlines.start
        for worker in fresh:
            with contextlib.suppress(GreetingError):
                # They started together, so one deadline holds for all of them.
                worker.await_greeting(timeout=max(0.0, ends - time.monotonic()))
                self._workers[worker.number] = worker

    def loaded(self) -> frozenset[str]:
        """The files that processes of workers had open: the first after its hello, all that are there now.

        It is never asked before a kill: the time that it takes would let an adapter write what it only acknowledged.
        """
        for worker in self._workers.values():
            self._loaded |= worker.process.loaded()
        return frozenset(self._loaded)

    def current(self, number: int) -> Worker | None:
        """Worker `number` in its present state, dead or alive; never starts one."""
        return self._workers.get(number)

    def kill(self, number: int) -> None:
        """Kill a worker on purpose; this does not count against the budget."""
        worker = self._workers.pop(number, None)
        if worker is not None:
            worker.kill()
            self._keep_log(worker)

    def stop(self, number: int) -> None:
        """Shut a worker down in order."""
        worker = self._workers.pop(number, None)
        if worker is not None:
            worker.shut_down()
            self._keep_log(worker)

    def abandon(self, numbers: Sequence[int], cause: str, *, died: bool) -> None:
        """After a session that did not end in order: close what can be closed, end the rest.

        `died` says that an answer was missing, which counts once against the budget; a session that merely ended
        early does not.
        """
        for number in numbers:
            worker = self._workers.get(number)
            if worker is None:
                continue
            healthy = worker.dead is None and not worker.busy
            if healthy and worker.exchange({"op": "close"}, timeout=self.deadlines.op).answer is not None:
                continue
            self._retire(worker)
            self.replaced.append((number, cause))
        if died:
            self._dead_in_a_row += 1
        else:
            self.settle()

    def settle(self) -> None:
        """A case succeeded with every worker alive: this resets the count of deaths."""
        self._dead_in_a_row = 0

    def _retire(self, worker: Worker) -> None:
        worker.kill()
        self._keep_log(worker)
        self._workers.pop(worker.number, None)

    def _keep_log(self, worker: Worker) -> None:
        if worker.process.log:
            self._logs.append((worker.number, worker.process.log))

    def take_logs(self) -> list[tuple[int, str]]:
        """Standard error of the workers that ended since the last call."""
        logs, self._logs = self._logs, []
        return logs

    def close(self) -> None:
        """Shut every worker down in order, all at the same time. A worker that owes an answer is ended at once."""
        self._end_all(lambda worker: worker.kill() if worker.dead is not None or worker.busy else worker.shut_down())

    def abort(self) -> None:
        """End every worker at once: the run stops early, and no worker gets time to end in order."""
        self._end_all(Worker.kill)

    def _end_all(self, end: Callable[[Worker], None]) -> None:
        workers = list(self._workers.values())
        self._workers.clear()
        with ThreadPoolExecutor(max_workers=max(1, len(workers))) as threads:
            list(threads.map(end, workers))
        for worker in workers:
            self._keep_log(worker)
