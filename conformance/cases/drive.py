"""The live end of a session: it carries every action out on workers and records it. It judges nothing."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.conformance.adapter.fake_broker import PLACE, FakeBroker
from holdfast.conformance.adapter.messages import Event, Reply
from holdfast.conformance.adapter.pool import Exhausted, WorkerPool
from holdfast.conformance.adapter.process import Deadlines
from holdfast.conformance.adapter.starvation import FIRST_LOOK, TOO_MUCH, Watch, lost_since
from holdfast.conformance.adapter.wire import ENDPOINT, endpoint_of, wires_of
from holdfast.conformance.adapter.worker import GreetingError, Worker
from holdfast.conformance.cases.record import Judgement, Record
from holdfast.conformance.cases.session import Action, located
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.servers.errors import StartError
from holdfast.servers.folders import remove_tree
from holdfast.servers.pace import REQUESTS_OF_A_START, Budget
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.routes import Route


class Driver:
    """Carries out the actions of one session in a workdir of its own."""

    def __init__(
        self,
        pool: WorkerPool,
        workdir: Path,
        *,
        config: Mapping[str, str],
        routes: Mapping[str, Route] | None = None,
        launched: Mapping[str, Any] | None = None,
        peer: FakeBroker | None = None,
    ) -> None:
        """`config` holds what the launcher and the command line add below the config of each session.

        `routes` are those of the operations that travel over a socket, if the adapter listens at one; `launched` is
        what the launcher says of the store. `peer` outlives the session; without it the session has one of its own.
        """
        self._routes = routes or {}
        self._peer, self._lent_peer = peer, peer is not None
        # Where worker 0 listens, if it does.
        self._endpoint = ""
        self._pool = pool
        self.workdir = workdir
        self._config = config
        self.launched = launched or {}
        self._began_ns = time.monotonic_ns()
        self.budget = Budget(pool.deadlines.session)
        # Watches the worker that is asked, from when an eighth of the budget is spent.
        self._watch: Watch | None = None
        self._is_extended = False
        self._used: set[int] = set()
        self.records: list[Record] = []
        self.went_wrong = False

    @property
    def deadlines(self) -> Deadlines:
        """The deadlines of its workers."""
        return self._pool.deadlines

    def take_time(self) -> None:
        """Let the session last for as long as its requests do, each of which has a deadline."""
        self.budget = Budget(math.inf)

    def execute(self, action: Action) -> Sequence[Record]:
        """Carry out one action and record it."""
        start = len(self.records)
        action.act.perform(self, action)
        return self.records[start:]

    def locally(self, action: Action, do: Callable[[], tuple[str | None, str]]) -> None:
        """Record an act of the harness itself: `do` returns why it failed, if it did, and its report."""
        try:
            failure, report = do()
        except (OSError, StrictJsonError) as error:
            # The adapter shares the workdir: it may have removed or closed what the case wants to change.
            failure, report = f"{action.act.name}: {error}", ""
        event = {"kind": "failed" if failure else "done", "detail": failure or report}
        now = self._now_us()
        number = len(self.records)
        self.records.append(Record(number, action.note, action.worker, None, None, event, now, now))

    # Exchanges

    def exchange(self, action: Action) -> None:
        """Send each request to its worker, then wait for each answer."""
        seconds = self._pool.deadlines.start if action.starting else self._pool.deadlines.op
        ready = [self._try_send(worker, request) for worker, request in action.requests]
        for (worker, request), failure in zip(action.requests, ready, strict=True):
            reply = failure or self.reply(worker, seconds)
            if request["op"] == "open":
                self._connect(worker, request, reply)
            self.write_reply(action, worker, request, reply)

    def _connect(self, number: int, request: Mapping[str, Any], reply: Reply) -> None:
        """Note where the operations of the session that was opened go."""
        worker = self._pool.current(number)
        if number == 0:
            self._endpoint = endpoint_of(reply.answer) or ""
        if worker is not None:
            transport = {**self._config, **request["config"]}.get("transport")
            worker.wires = wires_of(self._routes, transport, reply.answer)

    def send(self, action: Action) -> None:
        """Send the one request of an action without waiting for its answer."""
        ((worker, request),) = action.requests
        failure = self._try_send(worker, request)
        self.write_reply(action, worker, request, failure or Reply(None, None, self._now_us(), None))

    def receive(self, action: Action) -> None:
        """Wait for the answer to a request that was sent before."""
        self.write_reply(action, action.worker, None, self.reply(action.worker, self._pool.deadlines.op))

    def _try_send(self, number: int, request: Mapping[str, Any]) -> Reply | None:
        """Send a request; return a Reply only if the worker is not available."""
        if request["op"] == "open":
            self.budget.work(REQUESTS_OF_A_START)
        try:
            worker = self._worker(number)
        except Exhausted as error:
            return self.absent(FailureMode.MISSING, str(error))
        except StartError as error:
            return self.absent(FailureMode.CRASH, str(error))
        except GreetingError as error:
            return self.absent(error.event.kind, f"on start: {error.event.detail}")
        worker.send(self.located(request))
        return None

    def _worker(self, number: int) -> Worker:
        self._used.add(number)
        return self._pool.get(number)

    def absent(self, kind: FailureMode, detail: str) -> Reply:
        """The record that takes the place of an answer where the worker is not available."""
        now = self._now_us()
        return Reply(None, Event(kind, detail), now, now)

    def reply(self, number: int, seconds: float) -> Reply:
        """The answer that a worker owes, within these seconds and the time of the session."""
        worker = self._pool.current(number)
        if worker is None or not worker.busy:
            return self.absent(FailureMode.MISSING, "the worker is gone or has nothing to answer")
        self.budget.work(1)
        left = self._left(worker, seconds)
        with self.budget.spending():
            reply = worker.receive(timeout=min(seconds, left))
        # An adapter that had nearly the whole deadline and did not answer hangs, even if the session ends now.
        granted = left >= seconds * (1 - TOO_MUCH)
        if reply.event is None or reply.event.kind is not FailureMode.HANG or granted:
            return reply
        return replace(reply, event=self._used_up(left))

    def _left(self, worker: Worker, seconds: float) -> float:
        """The time that the session has left; for a machine that was too busy it gets the same time once more."""
        spent = self.budget.spent > self.budget.seconds * FIRST_LOOK
        if spent and (self._watch is None or self._watch.process != worker.process.pid):
            self._watch = Watch(worker.process.pid)
            self._watch.look()
        if self.budget.left < seconds and not self._is_extended and self._starved():
            self._is_extended = True
            self.budget.grant_again()
        return self.budget.left

    def _starved(self) -> str:
        """Why the machine was too busy for this session, in words; empty if it was not."""
        return lost_since(self._began_ns) or (self._watch.starved() if self._watch is not None else "")

    def _used_up(self, left: float) -> Event:
        """The session has no time left: earlier answers used it up, or the machine was too busy."""
        granted = f"the {self.budget.seconds:.4g} s of the session are used up"
        starved = self._starved()
        if starved:
            return Event(FailureMode.BUSY, f"the machine was too busy: {granted}, and {starved}")
        asked = sum(record.request is not None for record in self.records)
        return Event(
            FailureMode.BUDGET,
            f"{granted}: {asked} requests before this one took {self.budget.spent:.4g} s, which left it {left:.4g} s",
        )

    def located(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """A request as it is sent."""
        found = located(request, self.workdir, self._config)
        if "config" in found:
            found["config"] = {name: self._address(value) for name, value in found["config"].items()}
        return found

    def _address(self, value: str) -> str:
        """A value of a config: an address differs from run to run, so that a place holder stands for it."""
        if value == ENDPOINT:
            return self._endpoint
        return self.peer.url if value == PLACE else value

    @property
    def peer(self) -> FakeBroker:
        """The broker that is played for a daemon, from when it is first needed."""
        if self._peer is None:
            self._peer = FakeBroker(behind=lambda: self._endpoint)
        return self._peer

    # Workers

    def worker(self, number: int) -> Worker | None:
        """A worker in its present state, for a request that must not wait for its start."""
        return self._pool.current(number)

    def kill(self, number: int) -> None:
        """End a worker's process by SIGKILL."""
        self._pool.kill(number)

    def stop(self, number: int) -> None:
        """End a worker's process in order."""
        self._pool.stop(number)

    # Writing down

    def _now_us(self) -> int:
        return (time.monotonic_ns() - self._pool.epoch_ns) // 1000

    def write_reply(self, action: Action, worker: int, request: Mapping[str, Any] | None, reply: Reply) -> None:
        """Record what came of a request."""
        event = None if reply.event is None else reply.event.as_json()
        if event is not None:
            self.went_wrong = True
        number, times = len(self.records), (reply.sent_us, reply.received_us)
        self.records.append(Record(number, action.note, worker, request, reply.answer, event, *times))

    def finish(self, judgement: Judgement) -> None:
        """End the session: end workers in an unknown state, and remove the workdir."""
        if self._peer is not None and not self._lent_peer:
            self._peer.close()
        # A side that ended early left its session open; the next `open` would find it so.
        if judgement.verdict is Verdict.CONFORMS:
            self._pool.settle()
        else:
            # An answer that breaks a schema counts as none. A `fault` is an answer, and its worker lives. On a machine
            # that was too busy, it is unknown whether a worker died.
            died = judgement.silence is not None and (self.went_wrong or judgement.silence is FailureMode.GARBAGE)
            died = died and judgement.silence is not FailureMode.BUSY
            self._pool.abandon(sorted(self._used), judgement.detail, died=died)
        remove_tree(self.workdir)
