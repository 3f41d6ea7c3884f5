"""An adapter as the subject of the fault layers: started on a workdir, asked, looked at, stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.conformance.adapter.messages import Event, Reply
from holdfast.conformance.adapter.process import Deadlines
from holdfast.conformance.adapter.worker import GreetingError, Worker
from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.record import Record
from holdfast.conformance.cases.request import START, located, open_request
from holdfast.conformance.cases.values import Scope, at_path, is_missing
from holdfast.conformance.durability.workload import facts_of_rows, request_of, rows_in, told_name
from holdfast.conformance.faults.report import RunError
from holdfast.conformance.faults.subject import (
    Answer,
    Facts,
    Op,
    Outcome,
    SubjectError,
    SubjectHangError,
    SubjectPartlyError,
)
from holdfast.conformance.verdict import Silence
from holdfast.servers.errors import StartError
from holdfast.specs import Contract
from holdfast.specs.faults import FaultWorkload

# Makes a worker whose command runs under these words; it has not been waited for. Its times are CLOCK_MONOTONIC.
Spawn = Callable[[Sequence[str]], Worker]
# How the words on an answer `fault` begin: neither accepted nor refused, and no crash.
FAULTED = "`fault`, it says that it failed itself"


@dataclass(frozen=True, slots=True)
class Terms:
    """What all sessions of a workload have in common.

    `digits` is the seed that the adapter is told, `epoch_us` when the run began, in microseconds of CLOCK_MONOTONIC.
    """

    contract: Contract
    spec: FaultWorkload
    scopes: Mapping[int, Scope]
    config: Mapping[str, str]
    not_claimed: Mapping[str, str]
    deadlines: Deadlines
    digits: str
    epoch_us: int
    # Why the machine was too busy, as the subjects of a layer met it; who runs the layer takes it.
    busy: list[str] = field(default_factory=list, compare=False)
    # The operations that were answered with `fault`, in words.
    faulted: list[str] = field(default_factory=list, compare=False)


class AdapterSubject:
    """A `Subject` that speaks adapter protocol v1. Not thread-safe; each start is a process of its own.

    `log` takes down every exchange, for the evidence; `clock` is the frozen time of its sessions.
    """

    def __init__(self, spawn: Spawn, terms: Terms, *, log: list[Record] | None = None, clock: str = START) -> None:
        self._spawn, self._terms, self._log, self._clock = spawn, terms, log, clock
        self._worker: Worker | None = None
        self._observed: dict[str, Any] = {}
        self._under = False
        self._folder = Path()

    def start(self, folder: Path, under: Sequence[str] = ()) -> None:
        """Start the adapter and open what is in the folder. Raises SubjectError."""
        self.open(folder, "existing", under)

    def open(self, folder: Path, state: str, under: Sequence[str] = ()) -> None:
        """Start the adapter and open a session, `fresh` or `existing`. Raises SubjectError."""
        if self._worker is not None:
            raise SubjectError("it runs already")
        self._under = bool(under)
        try:
            self._worker = self._spawn(under)
            self._worker.await_greeting()
        except StartError as error:
            raise SubjectError(str(error)) from error
        except GreetingError as error:
            self._end()
            self._quiet("no hello", error.event)
            raise _failed("no hello", error.event) from error
        self._folder = folder
        request = open_request(
            self._terms.contract.name, state, clock=self._clock, seed=self._terms.digits, config=self._terms.spec.config
        )
        try:
            self._ok(self._exchange(f"open {state}", request, self._terms.deadlines.start))
        except SubjectError:
            self._end()
            raise

    def submit(self, op: Op) -> Answer:
        """Ask for one operation."""
        step = self._terms.spec.operation
        try:
            asked = f"{step['call']} {op.number}"
            reply = self._exchange(asked, request_of(step, self._terms.scopes[op.number]), self._op)
        except SubjectError as error:
            return Answer(Outcome.SILENT, time.monotonic_ns(), text=str(error))
        # When the line was read, not when somebody looked: what leaves later is no part of the acknowledgement.
        sent_at, came_at = reply.sent_us * 1000, (reply.received_us + 1) * 1000
        answer = reply.answer
        if answer is None:
            hung = reply.event is not None and reply.event.kind is Silence.HANG
            return Answer(Outcome.SILENT, sent_at, text=str(_failed(asked, reply.event)), hung=hung)
        problem = ex.broken_answer(self._terms.contract.methods[step["call"]], answer, self._terms.not_claimed)
        if problem is not None:
            return Answer(Outcome.SILENT, sent_at, text=f"an answer that breaks the contract: {problem}")
        wanted = step.get("refused")
        outcome = answer["outcome"]
        if outcome == "accepted" and wanted is None:
            return Answer(Outcome.OK, sent_at, came_at, new=answer["effect"] == "new")
        if outcome == "refused":
            if answer["reason"] == wanted:
                return Answer(Outcome.OK, sent_at, came_at)
            return Answer(Outcome.REFUSED, sent_at, text=str(answer["reason"]))
        if outcome == "fault":
            self._terms.faulted.append(f"{asked} was answered with {_said(answer)}")
        return Answer(Outcome.ERROR, sent_at, text=_said(answer))

    def dump(self) -> Facts:
        """All facts of the workload. Raises SubjectError; SubjectPartlyError where it refuses to tell some of them."""
        facts: dict[str, str] = {}
        told: set[str] = set()
        refusal: SubjectError | None = None
        # Facts of one observation are of one moment.
        self._observed.clear()
        for name, fact in self._terms.spec.facts.items():
            try:
                facts |= self._rows(name, fact) if "rows" in fact else self._each(name, fact)
                told.add(name)
            except SubjectHangError:
                raise
            except SubjectError as error:
                refusal = refusal or error
                if self._worker is None or self._worker.dead is not None:
                    break
        if refusal is None:
            return facts
        if told:
            raise SubjectPartlyError(str(refusal), facts, lambda one: one.split(" ", 1)[0] in told)
        raise refusal

    def _rows(self, name: str, fact: Mapping[str, Any]) -> dict[str, str]:
        method = fact["observe"]
        if method not in self._observed:
            self._observed[method] = self._told(method, {})
        rows = rows_in(self._observed[method], fact["rows"])
        if rows is None:
            raise SubjectError(f"expected rows under {fact['rows']!r} of {method}, got none")
        return facts_of_rows(name, fact, rows)

    def _each(self, name: str, fact: Mapping[str, Any]) -> dict[str, str]:
        told: dict[str, str] = {}
        for number, scope in self._terms.scopes.items():
            value = at_path(self._told(fact["ask"], scope.resolve(fact["args"])), fact["value"])
            if value != fact["undone"]:
                told[told_name(name, number)] = str(value)
        return told

    def prepare(self, step: Mapping[str, Any], scope: Scope) -> Scope:
        """Make one call of the preparation; the names with what it bound. Raises SubjectError."""
        request = request_of(step, scope)
        answer = self._answered(step["call"], self._exchange(f"prepare {step['call']}", request, self._op))
        if answer["outcome"] != "accepted":
            raise SubjectError(f"expected {step['call']} to be accepted, got: {_said(answer)}")
        for name, path in step.get("bind", {}).items():
            found = at_path(answer, path)
            if is_missing(found):
                raise SubjectError(f"expected {path} in the answer to {step['call']}, got: {_said(answer)}")
            scope = scope.bind(name, found)
        return scope

    def close(self) -> None:
        """Close the session in order, then stop. Raises SubjectError."""
        self._ok(self._exchange("close", {"op": "close"}, self._op))
        self.stop()

    def stop(self) -> None:
        """End the adapter, in order if it lets itself; nothing if it does not run. Raises SubjectError."""
        worker = self._worker
        if worker is None:
            return
        dead, busy = worker.dead, worker.busy
        self._end()
        if dead is not None:
            raise _failed("its end", dead)
        if busy:
            raise SubjectError("it did not answer")

    def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker is None:
            return
        if self._under or (worker.dead is None and not worker.busy):
            # Whoever stands above it, a tracer above all, has something to finish once it is gone.
            worker.shut_down()
        else:
            worker.kill()

    @property
    def _op(self) -> float:
        return self._terms.deadlines.op

    def _exchange(self, action: str, request: Mapping[str, Any], seconds: float) -> Reply:
        worker = self._worker
        if worker is None or worker.dead is not None:
            why = "" if worker is None or worker.dead is None else f": {worker.dead.detail}"
            raise SubjectError(f"it does not run{why}")
        reply = worker.exchange(located(request, self._folder, self._terms.config), timeout=seconds)
        if self._log is not None:
            event = None if reply.event is None else reply.event.as_json()
            number = len(self._log)
            sent, received = (moment - self._terms.epoch_us for moment in (reply.sent_us, reply.received_us))
            self._log.append(Record(number, action, 0, dict(request), reply.answer, event, sent, received))
        self._quiet(action, reply.event)
        return reply

    def _quiet(self, what: str, event: Event | None) -> None:
        """Raises RunError where the machine was too busy: then nothing is known of the adapter, and nothing proven."""
        if event is not None and event.kind is Silence.BUSY:
            self._terms.busy.append(f"{what}: {event.detail}")
            raise RunError(self._terms.busy[-1])

    def _ok(self, reply: Reply) -> None:
        if reply.answer is None:
            raise _failed("no answer", reply.event)
        if reply.answer["outcome"] != "ok":
            raise SubjectError(_said(reply.answer))

    def _told(self, method: str, args: Mapping[str, Any]) -> Any:
        """The value of an answer that tells. Raises SubjectError."""
        request = {"op": "call", "method": method, "args": dict(args)}
        answer = self._answered(method, self._exchange(method, request, self._op))
        if answer["outcome"] not in ("ok", "accepted"):
            raise SubjectError(f"{method} answered {_said(answer)}")
        return answer.get("value")

    def _answered(self, method: str, reply: Reply) -> Mapping[str, Any]:
        if reply.answer is None:
            raise _failed(method, reply.event)
        problem = ex.broken_answer(self._terms.contract.methods[method], reply.answer, self._terms.not_claimed)
        if problem is not None:
            raise SubjectError(f"{method}: an answer that breaks the contract: {problem}")
        return reply.answer


def _failed(what: str, event: Event | None) -> SubjectError:
    """The error that stands for an answer that did not come."""
    if event is None:
        return SubjectError(f"{what}: no answer")
    kind = SubjectHangError if event.kind is Silence.HANG else SubjectError
    return kind(f"{what}: {event.kind.value}, {event.detail}")


def _said(answer: Mapping[str, Any]) -> str:
    """An answer in a few words."""
    if answer["outcome"] == "fault":
        return f"{FAULTED}: {answer.get('detail', '')}"[:300]
    words = [str(answer["outcome"])]
    words += [str(answer[key]) for key in ("effect", "reason", "capability", "detail") if answer.get(key)]
    return " ".join(words)[:300]
