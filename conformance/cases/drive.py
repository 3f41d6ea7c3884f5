"""Driving a case against live workers: every action is carried out and written down, nothing is judged here."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.conformance.adapter.messages import Event, Reply
from holdfast.conformance.adapter.starvation import TOO_MUCH, lost_since
from holdfast.conformance.adapter.worker import Exhausted, GreetingError, Worker, WorkerPool
from holdfast.conformance.cases.action import Action, Verb
from holdfast.conformance.cases.reading import Interpretation
from holdfast.conformance.cases.record import Judgement, Record
from holdfast.conformance.cases.request import located
from holdfast.conformance.cases.seen import content_of, written
from holdfast.conformance.inspection import store
from holdfast.conformance.verdict import Silence, Verdict
from holdfast.servers.errors import StartError
from holdfast.servers.folders import remove_tree
from holdfast.specs.errors import StrictJsonError

# How often a stop point's file is looked for.
POLL_S = 0.002
# How long a call that waits for another's outcome is watched. Long enough for one that was just released to come to
# its database on a busy machine, and well below the patience that any implementation has with a lock. An answer that
# comes sooner ends it, and --slow does not stretch it: the one that waits has no more time on a slow machine.
UNANSWERED_S = 0.25


class Driver:
    """Carries out the actions of one session in a workdir of its own."""

    def __init__(self, pool: WorkerPool, workdir: Path, *, config: Mapping[str, str]) -> None:
        """`config` is what the launcher and the command line add under the config of each session."""
        self._pool = pool
        self._workdir = workdir
        self._config = config
        self._began_ns = time.monotonic_ns()
        self._ends = time.monotonic() + pool.deadlines.session
        self._used: set[int] = set()
        self.records: list[Record] = []
        self.went_wrong = False

    @property
    def workdir(self) -> Path:
        """The folder of this session, which the adapter shares."""
        return self._workdir

    def drive(self, reading: Interpretation) -> Judgement:
        """Run `reading` to its end; the records are in `records`."""
        given: Sequence[Record] | None = None
        try:
            while True:
                action = next(reading) if given is None else reading.send(given)
                given = self.execute(action)
        except StopIteration as stop:
            judgement: Judgement = stop.value
            return judgement

    def execute(self, action: Action) -> Sequence[Record]:
        """Carry out one action and write its records down."""
        local = {
            Verb.KILL: self._kill,
            Verb.STOP: self._stop,
            Verb.EXPECT_DEATH: self._kill,
            Verb.UNANSWERED: self._unanswered,
            Verb.REACHED: self._reached,
            Verb.RELEASE: self._release,
            Verb.TAMPER: self._tamper,
        }
        telling = {
            Verb.INSPECT: self._inspect,
            Verb.FILE: self._file,
            Verb.TREE: self._tree,
            Verb.SEARCH: self._search,
            Verb.PLACE: self._place,
            Verb.LINK: self._link,
            Verb.COPY: self._copy,
            Verb.INSERT: self._insert,
            Verb.PROBE: self._probe,
        }
        start = len(self.records)
        if action.verb is Verb.EXCHANGE:
            self._exchange(action)
        elif action.verb is Verb.RACE:
            self._race(action)
        elif action.verb is Verb.START:
            self._start(action)
        elif action.verb is Verb.FINISH:
            self._write_reply(action, action.worker, None, self._receive(action.worker, self._pool.deadlines.op))
        else:
            failure, told = None, ""
            try:
                if action.verb in telling:
                    told = written(telling[action.verb](action.operand))
                else:
                    failure = local[action.verb](action)
            except (OSError, StrictJsonError) as error:
                # The workdir is the adapter's too: it may have removed or closed what the case wants to touch.
                failure = f"{action.verb.value}: {error}"
            event = {"kind": "failed" if failure else "done", "detail": failure or told}
            now = self._now_us()
            self._write(action, action.worker, None, None, event, now, now)
        return self.records[start:]

    # Exchanges

    def _exchange(self, action: Action) -> None:
        seconds = self._pool.deadlines.start if action.starting else self._pool.deadlines.op
        ready = [self._try_send(worker, request) for worker, request in action.requests]
        for (worker, request), failure in zip(action.requests, ready, strict=True):
            reply = failure or self._receive(worker, seconds)
            self._write_reply(action, worker, request, reply)

    def _race(self, action: Action) -> None:
        # The barrier: workers are up and idle, every line is made beforehand, nobody runs until all have theirs.
        workers: list[Worker] = []
        for number, request in action.requests:
            worker = self._pool.current(number)
            if worker is None or worker.dead is not None:
                self._write_reply(action, number, request, self._absent(Silence.MISSING, "the worker is gone"))
                return
            workers.append(worker)
        lines = [
            worker.prepare(self._located(request))
            for worker, (_, request) in zip(workers, action.requests, strict=True)
        ]
        for worker in workers:
            worker.pause()
        try:
            for worker, line in zip(workers, lines, strict=True):
                worker.send_prepared(line)
        finally:
            for worker in workers:
                worker.resume()
        for number, request in action.requests:
            self._write_reply(action, number, request, self._receive(number, self._pool.deadlines.op))

    def _start(self, action: Action) -> None:
        ((worker, request),) = action.requests
        failure = self._try_send(worker, request)
        if failure is not None:
            self._write_reply(action, worker, request, failure)
            return
        self._write(action, worker, request, None, None, self._now_us(), None)

    def _try_send(self, number: int, request: Mapping[str, Any]) -> Reply | None:
        """Send; a Reply only if the worker cannot be had."""
        try:
            worker = self._worker(number)
        except Exhausted:
            return self._absent(Silence.MISSING, "three workers in a row had died; no more are started")
        except StartError as error:
            return self._absent(Silence.CRASH, str(error))
        except GreetingError as error:
            return self._absent(error.event.kind, f"on start: {error.event.detail}")
        worker.send(self._located(request))
        return None

    def _worker(self, number: int) -> Worker:
        self._used.add(number)
        return self._pool.get(number)

    def _absent(self, kind: Silence, detail: str) -> Reply:
        now = self._now_us()
        return Reply(None, Event(kind, detail), now, now)

    def _receive(self, number: int, seconds: float) -> Reply:
        left = self._ends - time.monotonic()
        worker = self._pool.current(number)
        if worker is None or not worker.busy:
            return self._absent(Silence.MISSING, "the worker is gone or has nothing to answer")
        reply = worker.receive(timeout=max(0.0, min(seconds, left)))
        # Who was left nearly all of the deadline and said nothing hangs, whatever the session has left.
        granted = left >= seconds * (1 - TOO_MUCH)
        if reply.event is None or reply.event.kind is not Silence.HANG or granted:
            return reply
        return replace(reply, event=self._used_up(max(0.0, left)))

    def _used_up(self, left: float) -> Event:
        """The time of the session ran out: by the answers before, or because nobody could run."""
        granted = f"the {self._pool.deadlines.session:.4g} s of the session are used up"
        starved = lost_since(self._began_ns)
        if starved:
            return Event(Silence.BUSY, f"the machine was too busy: {granted}, and {starved}")
        spent = sum((record.received_us or 0) - (record.sent_us or 0) for record in self.records if record.request)
        asked = sum(record.request is not None for record in self.records)
        return Event(
            Silence.BUDGET,
            f"{granted}: {asked} requests before this one took {spent / 1e6:.4g} s, which left it {left:.4g} s",
        )

    def _located(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return located(request, self._workdir, self._config)

    # Local actions

    def _kill(self, action: Action) -> str | None:
        self._pool.kill(action.worker)
        return None

    def _stop(self, action: Action) -> str | None:
        self._pool.stop(action.worker)
        return None

    def _unanswered(self, action: Action) -> str | None:
        worker = self._pool.current(action.worker)
        if worker is None or not worker.busy:
            return "the worker is gone, or has nothing to answer"
        return "it was answered already" if worker.has_answered(within=UNANSWERED_S) else None

    def _point(self, action: Action, end: str) -> Path:
        return self._workdir / "hold" / f"{action.operand['point']}.{end}"

    def _reached(self, action: Action) -> str | None:
        path = self._point(action, "reached")
        deadline, began_ns = time.monotonic() + self._pool.deadlines.op, time.monotonic_ns()
        while not path.exists():
            if time.monotonic() > min(deadline, self._ends):
                why = f"within {self._pool.deadlines.op:.4g} s"
                if self._ends < deadline:
                    why = f"before the {self._pool.deadlines.session:.4g} s of the session were used up"
                starved = lost_since(began_ns)
                busy = f"the machine was too busy, {starved}: " if starved else ""
                return f"{busy}the stop point {action.operand['point']} was not reached {why}"
            time.sleep(POLL_S)
        return None

    def _release(self, action: Action) -> str | None:
        path = self._point(action, "release")
        if not self._point(action, "reached").exists():
            return f"the stop point {action.operand['point']} was never reached"
        path.touch()
        return None

    def _tamper(self, action: Action) -> str | None:
        return store.tamper(self._workdir, action.operand["tamper"], action.operand)

    # Looking and acting on the store, without the adapter

    def _inspect(self, operand: Mapping[str, Any]) -> dict[str, Any]:
        return store.inspect(self._workdir, operand["path"])

    def _file(self, operand: Mapping[str, Any]) -> dict[str, Any]:
        return store.facts(self._workdir, operand["path"])

    def _place(self, operand: Mapping[str, Any]) -> dict[str, Any]:
        return store.place(self._workdir, operand["path"], content_of(operand))

    def _tree(self, operand: Mapping[str, Any]) -> dict[str, Any]:
        return store.tree(self._workdir, operand["path"])

    def _search(self, operand: Mapping[str, Any]) -> dict[str, Any]:
        return store.search(self._workdir, operand["path"], operand["for"])

    def _link(self, operand: Mapping[str, Any]) -> dict[str, Any]:
        return store.link(self._workdir, operand["path"], operand["to"])

    def _copy(self, operand: Mapping[str, Any]) -> dict[str, Any]:
        return store.copy(self._workdir, operand["path"], operand["to"])

    def _insert(self, operand: Mapping[str, Any]) -> dict[str, Any]:
        return store.insert(self._workdir, operand["path"], operand["table"], operand["rows"])

    def _probe(self, operand: Mapping[str, Any]) -> dict[str, Any]:
        return store.probe(
            self._workdir, operand["path"], operand["table"], operand["rows"], or_replace=operand["or_replace"]
        )

    # Writing down

    def _now_us(self) -> int:
        return (time.monotonic_ns() - self._pool.epoch_ns) // 1000

    def _write_reply(self, action: Action, worker: int, request: Mapping[str, Any] | None, reply: Reply) -> None:
        event = None if reply.event is None else reply.event.as_json()
        if event is not None:
            self.went_wrong = True
        self._write(action, worker, request, reply.answer, event, reply.sent_us, reply.received_us)

    def _write(
        self,
        action: Action,
        worker: int,
        request: Mapping[str, Any] | None,
        answer: Mapping[str, Any] | None,
        event: Mapping[str, Any] | None,
        sent_us: int,
        received_us: int | None,
    ) -> None:
        number = len(self.records)
        self.records.append(Record(number, action.note, worker, request, answer, event, sent_us, received_us))

    def finish(self, judgement: Judgement) -> None:
        """End the session: workers in an unknown state are ended, the workdir is removed."""
        # A side that ended early left its session open; the next `open` would find it so.
        if judgement.verdict is Verdict.CONFORMS:
            self._pool.settle()
        else:
            # An answer that breaks a schema counts like none; a `fault` is an answer, and its worker lives. Where the
            # machine was too busy nobody knows whether one died.
            died = judgement.silence is not None and (self.went_wrong or judgement.silence is Silence.GARBAGE)
            died = died and judgement.silence is not Silence.BUSY
            self._pool.abandon(sorted(self._used), judgement.detail, died=died)
        remove_tree(self._workdir)
