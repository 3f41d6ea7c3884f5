"""A worker: one adapter process after its hello. It numbers requests and matches the answers to them."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from holdfast import __version__
from holdfast.conformance.adapter.messages import PROTOCOL, Event, Reply, decode_answer, encode_request
from holdfast.conformance.adapter.process import AdapterProcess, Deadlines, Start, in_a_new_process
from holdfast.conformance.verdict import Silence
from holdfast.servers.errors import StartError
from holdfast.servers.janitor import Janitor


@dataclass(frozen=True, slots=True)
class AdapterCommand:
    """How to start an adapter: its argument list, its environment, its deadlines, and what makes its process."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    deadlines: Deadlines = field(default_factory=Deadlines)
    start: Start = in_a_new_process


@dataclass(frozen=True, slots=True)
class Claim:
    """One contract that an adapter claims to keep, and the capabilities that it says it lacks, with its reasons."""

    contract: str
    version: str
    not_claimed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Greeting:
    """What an adapter said in its answer to hello."""

    implementation: Mapping[str, str]
    claims: tuple[Claim, ...]
    max_workers: int

    def claim(self, contract: str) -> Claim | None:
        """The claim of that contract, if there is one."""
        return next((claim for claim in self.claims if claim.contract == contract), None)


class GreetingError(Exception):
    """The adapter did not reach a valid hello; `event` says how it failed."""

    def __init__(self, event: Event, log: str) -> None:
        super().__init__(event.detail)
        self.event = event
        self.log = log


class Worker:
    """One adapter process after its hello. Requests may be pipelined; answers are matched in order."""

    def __init__(self, command: AdapterCommand, *, janitor: Janitor, number: int, epoch_ns: int) -> None:
        """Start the process and say hello, without waiting for the answer. Raises StartError."""
        self.number = number
        self._deadlines = command.deadlines
        self._epoch_ns = epoch_ns
        self._count = 0
        self._outstanding: deque[tuple[str, int]] = deque()
        self.dead: Event | None = None
        self._process = AdapterProcess(
            command.argv,
            janitor=janitor,
            environment=command.environment,
            deadlines=command.deadlines,
            start=command.start,
        )
        self._greeting: Greeting | None = None
        self._challenge = secrets.token_hex(16)
        self.send({"op": "hello", "protocol": PROTOCOL, "kit": f"holdfast/{__version__}", "challenge": self._challenge})

    def await_greeting(self, *, timeout: float | None = None) -> Greeting:
        """What the adapter says in its hello; waits for it the first time, the start deadline unless one is given.

        Raises GreetingError; the process is ended then.
        """
        if self._greeting is None:
            try:
                self._greeting = self._greet(self._deadlines.start if timeout is None else timeout)
            except BaseException:
                self.kill()
                raise
        return self._greeting

    @property
    def greeting(self) -> Greeting:
        """The same, for a worker that a pool handed out."""
        return self.await_greeting()

    def _greet(self, timeout: float) -> Greeting:
        reply = self.receive(timeout=timeout, hello=True)
        if reply.answer is None:
            assert reply.event is not None
            # The reader of the log may lag a moment behind the end of the process.
            time.sleep(0.02)
            raise GreetingError(reply.event, self._process.log)
        said = reply.answer["ok"]
        if said["challenge"] != self._challenge:
            event = Event(
                Silence.GARBAGE, "the answer to hello repeats another challenge than it was given: a canned transcript?"
            )
            raise GreetingError(event, self._process.log)
        return Greeting(
            implementation=said["implementation"],
            claims=tuple(Claim(c["contract"], c["version"], c["not_claimed"]) for c in said["claims"]),
            max_workers=said["limits"]["workers"],
        )

    def _now_us(self, moment_ns: int | None = None) -> int:
        return ((time.monotonic_ns() if moment_ns is None else moment_ns) - self._epoch_ns) // 1000

    def prepare(self, request: Mapping[str, Any]) -> tuple[str, bytes]:
        """A request as a numbered line, ready to be written at once; prepared requests leave in their order."""
        self._count += 1
        request_id = str(self._count)
        return request_id, encode_request({"id": request_id, **request})

    def send(self, request: Mapping[str, Any]) -> int:
        """Send one request without waiting; the microseconds from the run's begin to the sending."""
        return self.send_prepared(self.prepare(request))

    def send_prepared(self, prepared: tuple[str, bytes]) -> int:
        """Write a prepared request; the microseconds from the run's begin to the sending."""
        request_id, line = prepared
        sent = self._now_us()
        self._outstanding.append((request_id, sent))
        if self.dead is None:
            self.dead = self._process.send(line, timeout=self._deadlines.op)
        return sent

    def receive(self, *, timeout: float, hello: bool = False) -> Reply:
        """The reply to the oldest request that is still open. After an Event the worker is dead."""
        request_id, sent = self._outstanding[0]
        if self.dead is not None:
            self._outstanding.popleft()
            return Reply(None, self.dead, sent, self._now_us())
        # Only now is the answer no longer owed: an interruption here leaves a worker that is known to be busy.
        got = self._process.receive(timeout=timeout)
        self._outstanding.popleft()
        if isinstance(got, Event):
            self.dead = got
            return Reply(None, got, sent, self._now_us())
        moment, line = got
        answer = decode_answer(line, expected_id=request_id, hello=hello)
        if not isinstance(answer, Event) and self._now_us(moment) < sent:
            answer = Event(Silence.GARBAGE, f"the answer to request {request_id!r} came before the request was sent")
        if isinstance(answer, Event):
            self.dead = answer
            return Reply(None, answer, sent, self._now_us(moment))
        return Reply(answer, None, sent, self._now_us(moment))

    def has_answered(self, *, within: float) -> bool:
        """Whether anything comes `within` this number of seconds; `receive` takes it."""
        return self.dead is not None or self._process.has_output(within=within)

    def exchange(self, request: Mapping[str, Any], *, timeout: float, hello: bool = False) -> Reply:
        """Send one request and wait for its reply."""
        self.send(request)
        return self.receive(timeout=timeout, hello=hello)

    def pause(self) -> None:
        """Stop the worker's process group where it stands."""
        self._process.pause()

    def resume(self) -> None:
        """Let it go on."""
        self._process.resume()

    def loaded(self) -> frozenset[str]:
        """The files that its processes have now."""
        return self._process.loaded()

    @property
    def log(self) -> str:
        """Standard error so far."""
        return self._process.log

    @property
    def busy(self) -> bool:
        """Whether an answer is outstanding."""
        return bool(self._outstanding)

    def wait_for_end(self, *, timeout: float) -> Event | None:
        """How the process ended, if it did within `timeout` seconds."""
        return self._process.wait_for_end(timeout=timeout)

    def kill(self) -> None:
        """SIGKILL to the worker's process group."""
        self._process.kill()
        self.dead = self.dead or Event(Silence.CRASH, "killed by holdfast")

    def shut_down(self) -> None:
        """`bye` if it still answers, then end of file, SIGTERM, SIGKILL."""
        if self.dead is None and not self.busy:
            self.exchange({"op": "bye"}, timeout=self._deadlines.op)
        self._process.shut_down()
        self.dead = self.dead or Event(Silence.EOF, "shut down by holdfast")


class Exhausted(Exception):  # noqa: N818 - a state of the pool, not a defect of the kit
    """No worker is started any more, mostly because too many died one after the other; the text says why."""


class Workers(Protocol):
    """The workers of a session by number, as far as its driver needs them."""

    epoch_ns: int

    @property
    def deadlines(self) -> Deadlines:
        """The deadlines of every worker."""

    def get(self, number: int) -> Worker:
        """That worker, started if it is not there. Raises Exhausted, StartError, GreetingError."""

    def current(self, number: int) -> Worker | None:
        """That worker in its present state, dead or alive; never starts one."""

    def kill(self, number: int) -> None:
        """End that worker by SIGKILL."""

    def stop(self, number: int) -> None:
        """End that worker in order."""

    def settle(self) -> None:
        """The session succeeded with every worker alive."""

    def abandon(self, numbers: Sequence[int], cause: str, *, died: bool) -> None:
        """The session did not end in order: close or end these workers. `died` says that an answer was missing."""


# After this number of dead workers in a row the remaining cases are not reached.
MAX_DEAD_IN_A_ROW = 3


class WorkerPool:
    """Workers by number, started when first needed and replaced within a budget."""

    def __init__(self, command: AdapterCommand, *, janitor: Janitor) -> None:
        self._command = command
        self._janitor = janitor
        self._workers: dict[int, Worker] = {}
        self._dead_in_a_row = 0
        self._logs: list[tuple[int, str]] = []
        self._loaded: set[str] = set()
        self.epoch_ns = time.monotonic_ns()
        self.replaced: list[tuple[int, str]] = []

    @property
    def command(self) -> AdapterCommand:
        """How its workers are started."""
        return self._command

    @property
    def deadlines(self) -> Deadlines:
        """The deadlines of every worker."""
        return self._command.deadlines

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
            self._loaded |= worker.loaded()
        return worker

    def _start(self, number: int) -> Worker:
        return Worker(self._command, janitor=self._janitor, number=number, epoch_ns=self.epoch_ns)

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
            self._loaded |= worker.loaded()
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
        if worker.log:
            self._logs.append((worker.number, worker.log))

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
