"""An adapter as the subject of the fault layers: started on a workdir, asked, observed, stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from holdfast.conformance.adapter.fake_broker import FakeBroker
from holdfast.conformance.adapter.pool import Exhausted, WorkerPool
from holdfast.conformance.adapter.process import Deadlines
from holdfast.conformance.adapter.worker import AdapterCommand, Worker
from holdfast.conformance.cases.drive import Driver
from holdfast.conformance.cases.record import Judgement, NonConformance, Record
from holdfast.conformance.cases.report import report_of
from holdfast.conformance.cases.session import Action, Answer, Session, SessionScript, carried_out
from holdfast.conformance.cases.values import Scope, at_path, decoded, is_missing, shift
from holdfast.conformance.durability.workload import (
    fact_name,
    facts_of_rows,
    opened_at,
    parts_of,
    rows_in,
    text_of,
    with_gone,
)
from holdfast.conformance.faults.report import RunError
from holdfast.conformance.faults.subject import (
    Facts,
    Op,
    Outcome,
    SubjectAnswer,
    SubjectError,
    SubjectExposedError,
    SubjectHangError,
    SubjectPartlyError,
    SubjectReopenedError,
)
from holdfast.conformance.inspection import changing, files
from holdfast.conformance.steps.files import SEARCH, wanted_of
from holdfast.conformance.steps.stores import INSPECT, store_operand
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.servers.errors import StartError
from holdfast.specs import Contract
from holdfast.specs.faults import FaultWorkload, method_of

# What an adapter shows of a workload: the facts, asked of the adapter or read by the harness in the store itself


class Showing:
    """The facts of one running adapter. `value` asks it for the value of a method, `run` carries a talk out.

    Both raise SubjectError. `known` are the names of the facts that the operations set, where these were learned.
    """

    def __init__(
        self,
        contract: Contract,
        spec: FaultWorkload,
        scopes: Mapping[int, Scope],
        known: AbstractSet[str],
        value: Callable[[str, Mapping[str, Any]], Any],
        run: Callable[[SessionScript[Any]], Any],
    ) -> None:
        self._contract, self._spec, self._scopes, self._known = contract, spec, scopes, known
        self._value, self._run = value, run
        # What was observed for the facts of one moment; a SubjectError where that failed.
        self._observed: dict[str, Any] = {}
        # Whether facts are asked for from the last one on, and what methods said of operations before that.
        self._turned = False
        self._first: dict[str, dict[str, str]] = {}

    def begin(self, *, turned: bool) -> None:
        """The adapter was started: ask for what comes first after a crash. Raises SubjectError."""
        self._turned = turned
        self._first = {name: ask() for name, ask in self._asking_for_reports()}

    def facts(self, runs: Callable[[], bool]) -> Facts:
        """All of them; `runs` says whether the adapter still does. Raises SubjectError, SubjectPartlyError."""
        facts: dict[str, str] = {}
        shown: set[str] = set()
        refusal: SubjectError | None = None
        # The facts of one observation belong to one moment.
        self._observed.clear()
        for name, ask in self._asking():
            try:
                facts |= ask()
                shown.add(name)
            except SubjectHangError:
                raise
            except SubjectError as error:
                refusal = refusal or error
                if not runs():
                    break
        facts = with_gone(facts, (name for name in self._known if name.split(" ", 1)[0] in shown))
        if refusal is None:
            return facts
        if shown:
            partly = SubjectPartlyError(str(refusal), facts, lambda one: one.split(" ", 1)[0] in shown)
            raise partly from refusal.__cause__
        raise refusal

    def _asking(self) -> Iterator[tuple[str, Callable[[], dict[str, str]]]]:
        """Each fact by its name, and how it is asked for."""
        facts = list(self._spec.facts.items())
        for name, fact in reversed(facts) if self._turned else facts:
            yield name, partial(self._rows if "rows" in fact else self._each, name, fact)
        for name, ask in self._asking_for_reports():
            found = self._first.pop(name, None)
            yield name, ask if found is None else partial(dict, found)

    def _asking_for_reports(self) -> Iterator[tuple[str, Callable[[], dict[str, str]]]]:
        for number, scope in self._scopes.items():
            for name, report in self._spec.step(number).get("told", {}).items():
                # One word: what stands before the blank is the name of the fact.
                word = fact_name(name, number).replace(" ", "-")
                yield word, partial(self._reported, word, report, scope)

    def _reported(self, name: str, report: Mapping[str, Any], scope: Scope) -> dict[str, str]:
        if "search" in report:
            operand = {"path": report["search"], "for": wanted_of([scope.resolve(report["text"])])}
            _, found = self._run(report_of(SEARCH, operand, f"search {report['search']}"))
            if found["error"]:
                raise SubjectError(f"{report['search']} cannot be searched: {found['error']}")
            return {f"{name} text": "readable" if found["found"] else "nowhere"}
        value = at_path(self._value(report["ask"], scope.resolve(report["args"])), report["value"])
        return {f"{name} value": str(value)}

    def _rows(self, name: str, fact: Mapping[str, Any]) -> dict[str, str]:
        rows = rows_in(self._inspected(fact) if "inspect" in fact else self._once(fact["observe"]), fact["rows"])
        if rows is None:
            raise SubjectError(f"expected rows under {fact['rows']!r} of {fact.get('observe', 'the store')}, got none")
        return facts_of_rows(name, fact, rows)

    def _once(self, method: str) -> Any:
        """The value of an observation, which all facts of one moment share; so do they its failure."""
        if method not in self._observed:
            try:
                self._observed[method] = self._value(method, {})
            except SubjectHangError:
                raise
            except SubjectError as error:
                self._observed[method] = error
        found = self._observed[method]
        if isinstance(found, SubjectError):
            raise found
        return found

    def _inspected(self, fact: Mapping[str, Any]) -> Any:
        """What the harness reads in the store, after a question that has its owner open it. Raises SubjectError."""
        inspected = "its store, inspected"
        if inspected not in self._observed:
            self._once(fact["behind"])
            _, found = self._run(report_of(INSPECT, store_operand(self._contract), "inspect store"))
            self._observed[inspected] = found
        found = self._observed[inspected]
        if not found["exists"] or found["error"] or found["integrity"] != "ok":
            raise SubjectError(f"its store cannot be read: {found['error'] or found['integrity'] or 'it is not there'}")
        return found

    def _each(self, name: str, fact: Mapping[str, Any]) -> dict[str, str]:
        found: dict[str, str] = {}
        for number, scope in self._scopes.items():
            value = text_of(at_path(self._value(fact["ask"], scope.resolve(fact["args"])), fact["value"]))
            if value != fact["undone"]:
                found[fact_name(name, number)] = value
        return found


# The one worker of a session that a fault strikes


class LoneWorker(WorkerPool):
    """The one worker of a session; a dead one is not started again, and a session that failed leaves it as it is."""

    def __init__(self, worker: Worker, deadlines: Deadlines) -> None:
        """The times of the worker are CLOCK_MONOTONIC."""
        super().__init__(AdapterCommand((), {}, deadlines), janitor=worker.janitor)
        self.epoch_ns = 0
        self._workers[0] = worker

    def get(self, number: int) -> Worker:
        """The worker, after its hello. Raises Exhausted, GreetingError."""
        worker = self.current(number)
        if worker is None or worker.dead is not None:
            why = "" if worker is None or worker.dead is None else f": {worker.dead.detail}"
            raise Exhausted(f"it does not run{why}")
        worker.await_greeting()
        return worker

    def abandon(self, numbers: Sequence[int], cause: str, *, died: bool) -> None:
        """A no-op: there is no budget of dead workers, because the layers end them on purpose."""


T = TypeVar("T")
# Makes a worker whose command runs under these words, and does not wait for it. Its times are CLOCK_MONOTONIC.
Spawn = Callable[[Sequence[str]], Worker]
# How many characters of a failure are reported.
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Terms:
    """What all sessions of a workload have in common.

    `digits` is the seed that the adapter is given, `epoch_us` when the run began, in microseconds of CLOCK_MONOTONIC.
    """

    contract: Contract
    spec: FaultWorkload
    scopes: Mapping[int, Scope]
    config: Mapping[str, str]
    not_claimed: Mapping[str, str]
    deadlines: Deadlines
    digits: str
    epoch_us: int
    # Why the machine was too busy, as the subjects of a layer reported it; the layer's report is compared with it.
    busy: list[str] = field(default_factory=list, compare=False)
    # The names of the facts that the operations set, where these were learned.
    known: frozenset[str] = frozenset()
    # How often an adapter was started on what a crash left, over all subjects.
    starts: Iterator[int] = field(default_factory=count, compare=False)
    # The operations that were answered with `fault`, as reported.
    faulted: list[str] = field(default_factory=list, compare=False)
    # The broker that is played for the adapter, if the workload says what it answers.
    peer: FakeBroker | None = field(default=None, compare=False)


class AdapterSubject:
    """A `Subject` that speaks adapter protocol v1. Not thread-safe; each start is a process of its own.

    `log` records every exchange, for the evidence; `clock` is the frozen time of its sessions, else the workload's.
    """

    def __init__(self, spawn: Spawn, terms: Terms, *, log: list[Record] | None = None, clock: str = "") -> None:
        self._spawn, self._terms, self._log, self._clock = spawn, terms, log, clock or opened_at(terms.spec)
        self._workers: LoneWorker | None = None
        self._driver: Driver | None = None
        self._session = self._new_session()
        self._showing = Showing(terms.contract, terms.spec, terms.scopes, terms.known, self._value, self._run)
        self._under = False

    def _new_session(self) -> Session:
        terms = self._terms
        return Session(
            terms.contract,
            digits=terms.digits,
            not_claimed=terms.not_claimed,
            config=terms.spec.config,
            now=self._clock,
        )

    def start(self, folder: Path, under: Sequence[str] = ()) -> None:
        """Start the adapter and open what is in the folder. Raises SubjectError."""
        self._look_for_hidden(folder)
        self.open(folder, "existing", under)
        if not under:
            # What comes first after a crash has to bring the store in order, whichever it is. A state has two starts.
            self._showing.begin(turned=next(self._terms.starts) // 2 % 2 == 1)
            self._ask_for_barred()

    def _look_for_hidden(self, folder: Path) -> None:
        """Raises SubjectExposedError."""
        hidden = self._terms.spec.hidden
        if hidden is None or not (folder / hidden.below).is_dir():
            return
        texts = [scope.resolve(text) for scope in self._terms.scopes.values() for text in hidden.texts]
        found = files.search(folder, hidden.below, texts)
        if found["error"] is not None:
            raise SubjectError(f"what a crash left cannot be searched: {found['error']}")
        if found["found"]:
            first = found["found"][0]
            raise SubjectExposedError(f"{first['path']} holds {texts[first['which']]!r}")

    def _ask_for_barred(self) -> None:
        """Raises SubjectError; SubjectReopenedError where it accepts what it never may."""
        for number, scope in self._terms.scopes.items():
            barred = self._terms.spec.step(number).get("barred")
            # The probe has not been prepared.
            if barred is None or number == self._terms.spec.asked:
                continue
            asked, now = f"{barred['call']} {number}", self._session.now
            self._set_clock(shift(now, barred.get("clock", "+0s")), f"clock for {asked}")
            args = scope.resolve(barred["args"])
            answer = self._run(self._session.call(0, barred["call"], args, f"barred {asked}"))
            if answer.outcome == "accepted" and answer.effect == "new":
                raise SubjectReopenedError(f"{asked} at {self._session.now}: {_described(answer)}")
            self._set_clock(now, f"clock after {asked}")

    def _set_clock(self, to: str, note: str) -> None:
        if to != self._session.now:
            self._run(self._session.clock(to, (0,), note))

    def open(self, folder: Path, state: str, under: Sequence[str] = ()) -> None:
        """Start the adapter and open a session, `fresh` or `existing`. Raises SubjectError."""
        if self._workers is not None:
            raise SubjectError("it runs already")
        self._under = bool(under)
        # Each state of a layer is a session of a fixed number of requests; the deadline of each request limits it.
        deadlines = replace(self._terms.deadlines, session=math.inf)
        try:
            self._workers = LoneWorker(self._spawn(under), deadlines)
        except StartError as error:
            raise SubjectError(str(error)) from error
        self._driver = Driver(self._workers, folder, config=self._terms.config, peer=self._terms.peer)
        self._session = self._new_session()
        try:
            self._run(self._session.open(0, state, f"open {state}"))
        except (SubjectError, RunError):
            self._end()
            raise

    def submit(self, op: Op) -> SubjectAnswer:
        """Ask for one operation."""
        try:
            return self.ask(op)
        except SubjectError as error:
            return self._unanswered(op, error)

    def _step(self, op: Op) -> Mapping[str, Any]:
        step = self._terms.spec.step(op.number)
        return parts_of(step["instead"])[op.part] if op.part else step

    def ask(self, op: Op) -> SubjectAnswer:
        """Ask for one operation. Raises SubjectError for `fault` and `unsupported`, and where no valid answer comes."""
        step = self._step(op)
        method, args = method_of(step), self._terms.scopes[op.number].resolve(step.get("args", {}))
        asked = f"{method} {op.number}"
        if op.again and "again" in step:
            self._set_clock(shift(self._session.now, step["again"]), f"clock for {asked} again")
        if "provoke" in step:
            self._run(self._session.call(0, step["provoke"], {}, f"{step['provoke']} for {asked}"))
        answer = self._run(self._session.call(0, method, args, asked))
        sent_at, came_at = self._times()
        if "command" in step:
            # Whether it was done is all that its status says: one that failed may have done it.
            status = answer.value["status"] if answer.outcome == "ok" else None
            if status == 0:
                return SubjectAnswer(Outcome.OK, sent_at, came_at)
            return SubjectAnswer(Outcome.ERROR, sent_at, came_at, f"{_described(answer)}, status {status}")
        if "job" in step:
            done = answer.outcome == "ok" and (answer.value or {}).get("done") is not False
            return SubjectAnswer(
                Outcome.OK if done else Outcome.ERROR, sent_at, came_at, "" if done else _described(answer)
            )
        wanted = step.get("refused")
        if answer.outcome == "accepted" and wanted is None:
            return SubjectAnswer(Outcome.OK, sent_at, came_at, new=answer.effect == "new")
        if answer.outcome == "refused":
            if answer.reason == wanted:
                return SubjectAnswer(Outcome.OK, sent_at, came_at)
            if wanted is not None:
                # What a refusal leaves is what is kept. Refused otherwise, as the record is uncertain, it may be there.
                return SubjectAnswer(Outcome.ERROR, sent_at, came_at, str(answer.reason))
            return SubjectAnswer(Outcome.REFUSED, sent_at, came_at, str(answer.reason))
        return SubjectAnswer(Outcome.ERROR, sent_at, came_at, _described(answer))

    def _times(self) -> tuple[int, int]:
        """When the last request left, and when the line of its answer was read. An effect after that is a later one."""
        record = self._last()
        return (record.sent_us or 0) * 1000, ((record.received_us or 0) + 1) * 1000

    def _unanswered(self, op: Op, error: SubjectError) -> SubjectAnswer:
        """An operation that failed: by an answer that says so, or without a valid one."""
        asked, failure = f"{method_of(self._step(op))} {op.number}", judgement_of(error)
        sent_at, came_at = (time.monotonic_ns(), None) if self._driver is None else self._times()
        # A job can only be done or fail.
        if failure.silence is FailureMode.FAULT and "job" not in self._step(op):
            self._terms.faulted.append(f"{asked}: {failure.detail}"[:_SHOWN])
        if failure.silence is FailureMode.FAULT or failure.verdict is Verdict.UNSUPPORTED:
            return SubjectAnswer(Outcome.ERROR, sent_at, came_at, str(error))
        return SubjectAnswer(Outcome.SILENT, sent_at, text=str(error), hung=failure.silence is FailureMode.HANG)

    def dump(self) -> Facts:
        """All facts of the workload. Raises SubjectError; SubjectPartlyError where it refuses to show some of them."""
        return self._showing.facts(lambda: self._runs)

    @property
    def _runs(self) -> bool:
        worker = None if self._workers is None else self._workers.current(0)
        return worker is not None and worker.dead is None

    def _value(self, method: str, args: Mapping[str, Any]) -> Any:
        """The value that a method answers with. Raises SubjectError."""
        answer = self._run(self._session.call(0, method, args, method))
        if answer.outcome not in ("ok", "accepted"):
            raise SubjectError(f"{method} answered {_described(answer)}")
        return answer.value

    def prepare(self, step: Mapping[str, Any], scope: Scope) -> Scope:
        """Do one step of the preparation; the names with what it bound. Raises SubjectError."""
        if "clock" in step:
            # Names that say what time it is go on meaning the time of the operations.
            now = shift(self._session.now, step["clock"])
            self._run(self._session.clock(now, (0,), f"prepare clock {step['clock']}"))
            return scope
        if "place" in step:
            assert self._driver is not None
            changing.place(self._driver.workdir, scope.resolve(step["place"]), decoded(scope.resolve(step["content"])))
            return scope
        args, method = scope.resolve(step.get("args", {})), step.get("call") or step["provoke"]
        answer = self._run(self._session.call(0, method, args, f"prepare {method}"))
        due = "accepted" if "call" in step else "ok"
        if answer.outcome != due:
            raise SubjectError(f"expected {method} to answer {due}, got: {_described(answer)}")
        for name, path in step.get("bind", {}).items():
            found = at_path(self._last().answer, path)
            if is_missing(found):
                raise SubjectError(f"expected {path} in the answer to {method}, got: {_described(answer)}")
            scope = scope.bind(name, found)
        return scope

    def close(self) -> None:
        """Close the session in order, then stop. Raises SubjectError."""
        self._run(self._session.close(0, "close"))
        self.stop()

    def stop(self) -> None:
        """End the adapter, in order if it can; a no-op if it does not run. Raises SubjectError."""
        worker = None if self._workers is None else self._workers.current(0)
        if worker is None:
            return
        dead, busy = worker.dead, worker.busy
        self._end()
        if dead is not None:
            error = SubjectHangError if dead.kind is FailureMode.HANG else SubjectError
            raise error(f"its end: {dead.kind.value}, {dead.detail}")
        if busy:
            raise SubjectError("it did not answer")

    def _end(self) -> None:
        workers, self._workers = self._workers, None
        worker = None if workers is None else workers.current(0)
        if workers is None or worker is None:
            return
        if self._under or (worker.dead is None and not worker.busy):
            # A process above it, a tracer above all, has work to finish after its end.
            workers.stop(0)
        else:
            workers.kill(0)

    def _run(self, talk: SessionScript[T]) -> T:
        """The result of a talk. Raises SubjectError; RunError where the machine was too busy for any result."""
        try:
            return carried_out(talk, self._execute)
        except NonConformance as finding:
            # In the evidence the record stands among those of other sessions.
            n = None if self._log is None else len(self._log) - 1
            raise self._failed(finding.judgement) from NonConformance(replace(finding.judgement, n=n))

    def _execute(self, action: Action) -> Sequence[Record]:
        if self._driver is None or self._workers is None:
            raise SubjectError("it does not run")
        records = self._driver.execute(action)
        if self._log is not None:
            for record in records:
                sent, received = (
                    None if moment is None else moment - self._terms.epoch_us
                    for moment in (record.sent_us, record.received_us)
                )
                self._log.append(replace(record, n=len(self._log), sent_us=sent, received_us=received))
        return records

    def _last(self) -> Record:
        """The record of the last request; its times are CLOCK_MONOTONIC."""
        assert self._driver is not None
        return self._driver.records[-1]

    def _failed(self, judgement: Judgement) -> Exception:
        """The error for a failure."""
        mode = judgement.silence
        text = f"{self._last().action}: {'' if mode is None else f'{mode.value}, '}{judgement.detail}"[:_SHOWN]
        if mode is FailureMode.BUSY:
            self._terms.busy.append(text)
            return RunError(text)
        return SubjectHangError(text) if mode is FailureMode.HANG else SubjectError(text)


def judgement_of(error: BaseException) -> Judgement:
    """What a SubjectError says of the adapter: its failure, or else that the workload was not reached."""
    if isinstance(error.__cause__, NonConformance):
        return error.__cause__.judgement
    return Judgement(Verdict.NOT_REACHED, detail=str(error))


def _described(answer: Answer) -> str:
    """An answer in a few words."""
    return " ".join(filter(None, (answer.outcome, answer.effect, answer.reason)))[:_SHOWN]
