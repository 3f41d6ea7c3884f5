"""One session with an adapter: cases, suites and fault workloads speak with an adapter only through it. Pure.

Each method is a generator: it asks for actions and takes their records. A driver carries the actions out on a live
adapter (`conformance/cases/drive.py`); the gate takes the records from the evidence. So only this file decides what an
answer means, and what a missing answer means:

    no answer: crash, hang, garbage, eof, budget, busy   no_verdict, with this failure mode
    an answer that breaks the protocol or its method     no_verdict, garbage
    `unsupported` that hello does not declare            no_verdict, garbage
    `fault`                                              no_verdict, fault: it is neither a crash nor a refusal
    `unsupported` that hello declares                    unsupported
    `indeterminate` to open, clock or close              indeterminate
    anything else but `ok` to open, clock or close       not_reached: the session could not go on
    anything else but `ok` to an open after a start      lost_durability: the store does not come up again

A deadline holds for each answer (`Deadlines.op`, for an open `Deadlines.start`) and for a whole session of a case or a
suite (`Deadlines.session`). A fault workload has as many sessions as states, each with a fixed number of requests, so
only the deadlines of its answers hold. HOLDFAST_SLOW stretches all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from holdfast.conformance.cases.expect import OK, broken, failure_of, garbled, judge_answer, undeclared
from holdfast.conformance.cases.record import Judgement, NonConformance, Record
from holdfast.conformance.cases.values import Scope
from holdfast.conformance.verdict import EVENT_KINDS, Verdict
from holdfast.specs import Contract, Method
from holdfast.specs.model import CaseKind
from holdfast.specs.schema import explain, published_validator

# Every session starts at this moment unless the case moves its clock. The date is far from the machine's own: so an
# implementation that reads the machine's clock is found.
START = "2026-01-01T00:00:00Z"
# Replaces the workdir in recorded requests: the real path differs from run to run.
WORKDIR = "{workdir}"

_LOCAL_KINDS = frozenset({"done", "failed"})


class Act(Protocol):
    """One way to act on a live session. A kind of step declares its own acts in its file below `steps/`."""

    @property
    def name(self) -> str:
        """The name of the act in the event of a failure and for the judge."""

    def perform(self, driver: Any, action: Action) -> None:
        """Carry the action out and record it. `driver` is a `holdfast.conformance.cases.drive.Driver`."""

    def unlike(self, record: Record, operand: Mapping[str, Any]) -> str | None:
        """Why the answer or event of a record cannot come from this act; None if it can."""


@dataclass(frozen=True, slots=True)
class Asking:
    """An act that speaks with the adapter: its records hold the answer, or the failure mode in its place.

    An act that is not `awaited` only sends a request. Its record holds no answer yet, or why nothing could be sent.
    """

    name: str
    do: Callable[[Any, Action], None]
    awaited: bool = True

    def perform(self, driver: Any, action: Action) -> None:
        """See `Act`."""
        self.do(driver, action)

    def unlike(self, record: Record, operand: Mapping[str, Any]) -> str | None:
        """See `Act`."""
        del operand
        kind = None if record.event is None else record.event.get("kind")
        if record.answer is not None:
            if not self.awaited:
                return "the case awaits no answer there"
            problem = explain(published_validator("protocol-answer"), {**record.answer, "id": "0"})
            return None if problem is None else f"its answer does not fit the protocol: {problem}"
        if kind is None:
            return "it has neither an answer nor an event" if self.awaited else None
        return None if kind in EVENT_KINDS else of_another_kind(kind, self.name)


@dataclass(frozen=True, slots=True)
class Local:
    """An act of the harness itself that reports nothing: its event is `done`, or `failed` with the reason."""

    name: str
    do: Callable[[Any, Action], str | None]

    def perform(self, driver: Any, action: Action) -> None:
        """See `Act`."""
        driver.locally(action, lambda: (self.do(driver, action), ""))

    def unlike(self, record: Record, operand: Mapping[str, Any]) -> str | None:
        """See `Act`."""
        del operand
        return local_event(record, self.name) or (
            f"{self.name} reports nothing, and this record does"
            if record.event and record.event["kind"] == "done" and record.event.get("detail")
            else None
        )


def local_event(record: Record, name: str) -> str | None:
    """Why a record does not hold the event of an act of the harness; None if it does."""
    if record.answer is not None:
        return "the case awaits no answer there"
    if record.event is None or record.event.get("kind") is None:
        return "it has neither an answer nor an event"
    kind = record.event["kind"]
    return None if kind in _LOCAL_KINDS else of_another_kind(kind, name)


def of_another_kind(kind: object, name: str) -> str:
    """An error if the event of a record does not belong to this act."""
    return f"an event of kind {kind!r} cannot come of {name}"


@dataclass(frozen=True, slots=True)
class Action:
    """One action. `requests` are pairs of worker and request (without id); each yields one record.

    An action without requests yields one record too. `starting` says that the deadline for a start holds.
    """

    act: Act
    note: str
    requests: tuple[tuple[int, Mapping[str, Any]], ...] = ()
    worker: int = 0
    operand: Mapping[str, Any] = field(default_factory=dict)
    starting: bool = False

    @property
    def record_count(self) -> int:
        """The number of records that the action yields."""
        return len(self.requests) or 1


T = TypeVar("T")
Records = Sequence[Record]
SessionScript = Generator[Action, Records, T]

EXCHANGE = Asking("exchange", lambda driver, action: driver.exchange(action))
KILL = Local("kill", lambda driver, action: driver.kill(action.worker))
# The process has ended already: the rest of it is removed, which does not count as a death.
FORGET = Local("expect-death", lambda driver, action: driver.kill(action.worker))
STOP = Local("stop", lambda driver, action: driver.stop(action.worker))

# Capabilities: processes that can be ended and started, and several of them on one store.
KILLABLE, CONCURRENCY = "kill", "concurrency"

_NO_NAMES = Scope(seed="", case="", side="", defined={}, opened=START, now=START)
Judge = Callable[[Record], Judgement | None]


def judge_ok(record: Record) -> Judgement | None:
    """None if the answer is `ok`."""
    return judge_answer(record, OK, _NO_NAMES, step={}, kind=CaseKind.BEHAVIOUR)


@dataclass(frozen=True, slots=True)
class Answer:
    """A well-formed answer. `n` is the number of its record."""

    outcome: str
    effect: str | None
    reason: str | None
    value: Any
    data: Any
    n: int | None = None
    detail: str = ""

    @property
    def said(self) -> str:
        """It in a word: its effect, its reason, or its outcome."""
        return self.effect or self.reason or self.outcome

    @property
    def words(self) -> str:
        """The same after its outcome."""
        return " ".join(filter(None, (self.outcome, self.effect, self.reason)))

    def judged(self, verdict: str) -> str:
        """The verdict, unless the answer itself leaves open what happened."""
        return Verdict.INDETERMINATE.value if self.outcome == "indeterminate" else verdict


class Session:
    """One session: the values that it was opened with, its time, and the answer to each request."""

    def __init__(
        self,
        contract: Contract,
        *,
        digits: str,
        not_claimed: Mapping[str, str],
        config: Mapping[str, str] | None = None,
        surface: str = "ready",
        now: str = START,
    ) -> None:
        """`digits` is the seed for the adapter. `not_claimed` are the capabilities that hello does not claim.

        `digits` are not the run's own seed: from that an adapter could compute its case and its side.
        """
        self.contract = contract
        self.not_claimed = not_claimed
        self.config = dict(config or {})
        self.surface = surface
        self.now = now
        self._digits = digits
        # The workers that have this session open. A process that was started after a kill has none.
        self._opened_at: set[int] = set()

    # The requests of the session

    def open(self, worker: int, state: str, note: str) -> SessionScript[Record]:
        """Open it at a worker, `fresh` or `existing`."""
        record = yield from self._opened(worker, state, note, self.config)
        self.must_be_ok(record, "open")
        return record

    def reopen(
        self, worker: int, note: str, *, config: Mapping[str, str] | None = None, judge: Judge = judge_ok
    ) -> SessionScript[Record]:
        """Open the state that an earlier process left; `judge` is for a case that expects another answer than `ok`."""
        record = yield from self._opened(worker, "existing", note, {**self.config, **(config or {})})
        self._declared(record)
        end_unless_ok(judge(record), "reopen", Verdict.LOST_DURABILITY)
        return record

    def _opened(self, worker: int, state: str, note: str, config: Mapping[str, str]) -> SessionScript[Record]:
        request = open_request(
            self.contract.name, state, clock=self.now, seed=self._digits, config=config, surface=self.surface
        )
        action = Action(EXCHANGE, note, ((worker, request),), worker=worker, starting=True)
        record = (yield action)[0]
        if record.answer is not None and record.answer["outcome"] == "ok":
            self._opened_at.add(worker)
        return record

    def restart(
        self,
        worker: int,
        notes: tuple[str, str, str],
        *,
        config: Mapping[str, str] | None = None,
        judge: Judge = judge_ok,
    ) -> SessionScript[Record]:
        """Close a worker in order, end its process and open again. `notes` are those of the three actions."""
        self._must_have_processes()
        close, stop, reopen = notes
        yield from self.close(worker, close)
        stopped = yield Action(STOP, stop, worker=worker)
        must_be_done(stopped[0])
        return (yield from self.reopen(worker, reopen, config=config, judge=judge))

    def kill(self, worker: int, note: str) -> SessionScript[None]:
        """Send SIGKILL to a worker's process group."""
        self._must_have_processes()
        self._opened_at.discard(worker)
        records = yield Action(KILL, note, worker=worker)
        must_be_done(records[0])

    def _must_have_processes(self) -> None:
        """Raise NonConformance where no process of the implementation can be ended and started."""
        if KILLABLE in self.not_claimed:
            detail = f"the case ends processes, which the adapter does not claim: {self.not_claimed[KILLABLE]}"
            raise NonConformance(Judgement(Verdict.UNSUPPORTED, detail=detail))

    def forget(self, worker: int) -> SessionScript[None]:
        """Note that a worker died as expected."""
        self._opened_at.discard(worker)
        yield Action(FORGET, f"worker {worker} died as expected", worker=worker)

    def clock(self, now: str, workers: Iterable[int], note: str) -> SessionScript[None]:
        """Set the time of each of these workers that has the session open; a later `open` carries it to the others."""
        self.now = now
        request = {"op": "clock", "now": now}
        asked = tuple((worker, request) for worker in workers if worker in self._opened_at)
        if not asked:
            return
        for record in (yield Action(EXCHANGE, note, asked)):
            self.must_be_ok(record, "clock")

    def close(self, worker: int, note: str) -> SessionScript[None]:
        """Close it at a worker; a no-op where it is not open, as after a kill without a new `open`."""
        if worker not in self._opened_at:
            return
        self._opened_at.discard(worker)
        records = yield Action(EXCHANGE, note, ((worker, {"op": "close"}),), worker=worker)
        self.must_be_ok(records[0], "close")

    def call(self, worker: int, method: str, args: Mapping[str, Any], note: str) -> SessionScript[Answer]:
        """Call a method: the answer, which may be a refusal. Raises NonConformance as `answer` does."""
        known = self.contract.methods[method]
        asked = ((worker, call_request(method, args)),)
        records = yield Action(EXCHANGE, note, asked, worker=worker, starting=known.waits)
        return self.answer(records[0], known)

    # The answers

    def failure(self, record: Record, method: Method) -> Judgement | None:
        """The judgement where the answer to a call is missing or does not fit its method; None otherwise."""
        if record.answer is not None:
            problem = broken(method, record.answer, self.not_claimed)
            if problem is not None:
                return garbled(record, problem)
        return failure_of(record)

    def answer(self, record: Record, method: Method) -> Answer:
        """The answer to a call. Raises NonConformance with the failure mode where there is none."""
        failure = self.failure(record, method)
        if failure is not None:
            raise NonConformance(failure)
        said = record.answer
        assert said is not None
        return Answer(
            said["outcome"],
            said.get("effect"),
            said.get("reason"),
            said.get("value"),
            said.get("data"),
            record.n,
            said.get("detail") or "",
        )

    def must_be_ok(self, record: Record, what: str) -> None:
        """Whether a request of the session itself went well. Raises NonConformance."""
        self._declared(record)
        end_unless_ok(judge_ok(record), what)

    def _declared(self, record: Record) -> None:
        """A request of the session, too, may be unsupported only if hello declared so."""
        problem = None if record.answer is None else undeclared(record.answer, self.not_claimed)
        if problem is not None:
            raise NonConformance(garbled(record, problem))


def call_request(method: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """A call as it is sent, and as the evidence shows it: what the caller does with `args` later changes neither."""
    return {"op": "call", "method": method, "args": deepcopy(dict(args))}


def end_unless_ok(judgement: Judgement | None, what: str, otherwise: Verdict = Verdict.NOT_REACHED) -> None:
    """End the test where an answer is not `ok`, as what it is, or else as `otherwise`. Raises NonConformance."""
    if judgement is not None:
        verdict = judgement.verdict if judgement.verdict.is_incomplete else otherwise
        raise NonConformance(replace(judgement, verdict=verdict, detail=f"{what}: {judgement.detail}", expected="ok"))


def must_be_done(record: Record) -> None:
    """Whether an act of the harness itself succeeded. Raises NonConformance."""
    if record.event is None or record.event["kind"] != "done":
        detail = str((record.event or {}).get("detail", "no record"))
        raise NonConformance(Judgement(Verdict.NOT_REACHED, None, detail, record.action, detail, n=record.n))


def carried_out(talk: SessionScript[T], execute: Callable[[Action], Records]) -> T:
    """The result of a talk, each of whose actions `execute` carries out."""
    given: Records | None = None
    try:
        while True:
            action = next(talk) if given is None else talk.send(given)
            given = execute(action)
    except StopIteration as stop:
        result: T = stop.value
        return result


def open_request(
    contract: str, state: str, *, clock: str, seed: str, config: Mapping[str, str], surface: str = "ready"
) -> dict[str, Any]:
    """An `open` as recorded, `fresh` or `existing`: with WORKDIR for the workdir and the session's config."""
    return {
        "op": "open",
        "contract": contract,
        "state": state,
        "surface": surface,
        "workdir": WORKDIR,
        "clock": clock,
        "seed": seed,
        "config": dict(config),
    }


def located(request: Mapping[str, Any], workdir: Path, config: Mapping[str, str]) -> dict[str, Any]:
    """A request as sent: with the real workdir, and with `config` below the session's own."""
    if request.get("op") != "open":
        return dict(request)
    return {**request, "workdir": str(workdir), "config": {**config, **request["config"]}}
