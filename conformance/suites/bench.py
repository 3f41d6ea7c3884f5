"""The bench a suite test works at: sessions against the adapter, with every exchange written down."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.action import Action, Verb
from holdfast.conformance.cases.looking import operand_of, value_of
from holdfast.conformance.cases.record import Finding, Judgement, Record
from holdfast.conformance.cases.request import START, open_request
from holdfast.conformance.cases.values import Scope, shift
from holdfast.conformance.verdict import Verdict
from holdfast.specs import Contract
from holdfast.specs.strictjson import canonical

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.conformance.cases.drive import Driver

# So many of a test's findings are told in words; the others are counted.
_SHOWN = 4
# Of the arguments of the call that was judged, so many characters; all of them stand in its exchange.
_SHOWN_ARGS = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that came and is well-formed."""

    outcome: str
    effect: str | None
    reason: str | None
    value: Any
    data: Any
    # The number of its record.
    n: int | None = None


@dataclass(frozen=True, slots=True)
class Handle:
    """A call under way."""

    worker: int
    method: str


@dataclass(frozen=True, slots=True)
class Limits:
    """What this run cannot show: more workers than the adapter allows, durability on a volatile file system."""

    max_workers: int
    volatile: str | None


class Session:
    """One session on a workdir of its own, with one or more workers."""

    def __init__(self, bench: Bench, driver: Driver, *, workers: int, config: Mapping[str, str], surface: str) -> None:
        self._bench = bench
        self._driver = driver
        self._config = dict(config)
        self._surface = surface
        self.workers = workers
        self.now = START
        self.ended = False
        # What the adapter said in its answer to the first `open`.
        self.said: Any = None
        for worker in range(workers):
            self._open(worker, "fresh" if worker == 0 else "existing")

    @property
    def workdir(self) -> Path:
        """The folder of the session; only while it runs."""
        return self._driver.workdir

    def _one(self, action: Action) -> Record:
        return self._bench.execute(self._driver, action)[0]

    def _open(self, worker: int, state: str) -> None:
        # Not the run's own seed, as in scripted cases.
        digits = self._bench.scope.digits("adapter", "", 16)
        request = open_request(
            self._bench.contract.name, state, clock=self.now, seed=digits, config=self._config, surface=self._surface
        )
        action = Action(Verb.EXCHANGE, f"open worker {worker}", ((worker, request),), worker=worker, starting=True)
        said = self._must_be_ok(self._one(action))
        if state == "fresh":
            self.said = said

    def _must_be_ok(self, record: Record) -> Any:
        answer = self._answer(record, None)
        if answer.outcome != "ok":
            self._bench.fail("not_reached", f"{record.action}: {ex.shown(record)}")
        return answer.value

    def _answer(self, record: Record, method: str | None) -> Answer:
        silent = ex.silence_of(record)
        if silent is not None:
            raise Finding(replace(silent, received=ex.shown(record)))
        said = record.answer
        assert said is not None
        if method is not None:
            problem = ex.broken_answer(self._bench.contract.methods[method], said, self._bench.not_claimed)
            if problem is not None:
                raise Finding(ex.garbled(record, problem))
        failed = ex.faulted(said)
        if failed is not None:
            raise Finding(replace(failed, received=ex.shown(record), n=record.n))
        if said["outcome"] == "unsupported":
            detail = f"the adapter does not support {said['capability']}"
            raise Finding(Judgement(Verdict.UNSUPPORTED, detail=detail, n=record.n))
        return Answer(
            said["outcome"], said.get("effect"), said.get("reason"), said.get("value"), said.get("data"), record.n
        )

    def _request(self, method: str, args: Mapping[str, Any] | None) -> dict[str, Any]:
        return {"op": "call", "method": method, "args": dict(args or {})}

    def call(self, method: str, args: Mapping[str, Any] | None = None, worker: int = 0) -> Answer:
        """Call an operation. Silence, a fault and `unsupported` end the test with their verdict."""
        action = Action(Verb.EXCHANGE, f"call {method}", ((worker, self._request(method, args)),), worker=worker)
        return self._answer(self._one(action), method)

    def observe(self, method: str, args: Mapping[str, Any] | None = None, worker: int = 0) -> Any:
        """The value of an observation."""
        return self._value("observe", method, args, worker)

    def provoke(self, method: str, args: Mapping[str, Any] | None = None, worker: int = 0) -> Any:
        """The value of a provocation."""
        return self._value("provoke", method, args, worker)

    def _value(self, verb: str, method: str, args: Mapping[str, Any] | None, worker: int) -> Any:
        action = Action(Verb.EXCHANGE, f"{verb} {method}", ((worker, self._request(method, args)),), worker=worker)
        answer = self._answer(self._one(action), method)
        if answer.outcome != "ok":
            self._bench.fail("not_reached", f"{method} answered {answer.outcome}")
        return answer.value

    def start(self, method: str, args: Mapping[str, Any] | None = None, worker: int = 0) -> Handle:
        """Send a call and do not wait."""
        action = Action(Verb.START, f"start {method}", ((worker, self._request(method, args)),), worker=worker)
        self._one(action)
        return Handle(worker, method)

    def finish(self, handle: Handle) -> Answer:
        """Wait for a started call."""
        record = self._one(Action(Verb.FINISH, f"finish {handle.method}", worker=handle.worker))
        return self._answer(record, handle.method)

    def race(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Answer]:
        """One call from each worker at once, behind a barrier; the answers in the order of the workers."""
        pairs = tuple((worker, self._request(method, args)) for worker, (method, args) in enumerate(calls))
        records = self._bench.execute(self._driver, Action(Verb.RACE, f"race of {len(pairs)}", pairs))
        return [self._answer(record, method) for record, (method, _) in zip(records, calls, strict=True)]

    def reached(self, point: str) -> None:
        """Wait for a stop point; not reaching it ends the test as not reached."""
        self._local(Verb.REACHED, point)

    def release(self, point: str) -> None:
        """Let a stop point go on."""
        self._local(Verb.RELEASE, point)

    def _local(self, verb: Verb, point: str) -> None:
        record = self._one(Action(verb, f"{verb.value} {point}", operand={"point": point}))
        if record.event is None or record.event["kind"] != "done":
            self._bench.fail("not_reached", str((record.event or {}).get("detail", "no record")))

    def inspect(self, *, damaged: bool = False) -> dict[str, Any]:
        """What the harness sees in the store (docs/case-language.md).

        One that cannot be read ends the test as not reached; with `damaged` its `error` tells why it cannot.
        """
        value = self._told(Verb.INSPECT, "store", {})
        if value["error"] is not None and not damaged:
            self._bench.fail("not_reached", f"the store cannot be looked into: {value['error']}")
        return value

    def file(self, path: str) -> dict[str, Any]:
        """What a file in the workdir is: {exists, kind, mode, size, sha256, bytes, ignored}."""
        return self._told(Verb.FILE, path, {"file": path})

    def tree(self, path: str) -> list[dict[str, Any]]:
        """Everything below a folder of the workdir, [{path, kind, size}], nothing if it is not there.

        What cannot be listed ends the test as not reached.
        """
        value = self._told(Verb.TREE, path, {"tree": path})
        if value["error"] is not None:
            self._bench.fail("not_reached", f"{path} cannot be listed: {value['error']}")
        found: list[dict[str, Any]] = value["files"]
        return found

    def search(self, path: str, canaries: Sequence[Any]) -> list[dict[str, Any]]:
        """Where texts, or bytes as {bytes: base64url}, can be read below a folder of the workdir: [{path, which}].

        What cannot be searched ends the test as not reached.
        """
        value = self._told(Verb.SEARCH, path, {"search": path, "for": list(canaries)})
        if value["error"] is not None:
            self._bench.fail("not_reached", f"{path} cannot be searched: {value['error']}")
        found: list[dict[str, Any]] = value["found"]
        return found

    def place(self, path: str, data: bytes) -> None:
        """Write a file into the workdir."""
        self._told(Verb.PLACE, path, {"place": path, "content": base64url(data)})

    def remove(self, path: str) -> None:
        """Remove a file from the workdir; one that is not there ends the test as not reached."""
        operand = {"tamper": path, "delete": True}
        record = self._one(Action(Verb.TAMPER, f"tamper {path}", operand=operand))
        if record.event is None or record.event["kind"] != "done":
            self._bench.fail("not_reached", str((record.event or {}).get("detail", "no record")))

    def link(self, path: str, to: str) -> None:
        """Make a symbolic link in the workdir, where nothing is."""
        self._told(Verb.LINK, path, {"link": path, "to": to})

    def copy(self, path: str, to: str) -> None:
        """Put a copy of a file or folder of the workdir in the place of whatever lies at another place in it."""
        self._told(Verb.COPY, path, {"copy": path, "to": to})

    def insert(self, table: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Put a row into the store itself: {inserted, error}. What fails without a constraint ends the test."""
        return self._tried(Verb.INSERT, table, {"insert": table, "row": row})

    def probe(self, table: str, *rows: Mapping[str, Any], or_replace: bool = False) -> dict[str, Any]:
        """Put rows into a copy of the store: {inserted, error}. What fails without a constraint ends the test."""
        return self._tried(Verb.PROBE, table, {"probe": table, "rows": rows, "or_replace": or_replace})

    def _tried(self, verb: Verb, table: str, step: Mapping[str, Any]) -> dict[str, Any]:
        value = self._told(verb, table, step)
        if value["inserted"] is None:
            self._bench.fail("not_reached", f"{verb.value} {table} came to nothing: {value['error']}")
        return value

    def _told(self, verb: Verb, what: str, step: Mapping[str, Any]) -> dict[str, Any]:
        operand = operand_of(verb, step, self._bench.contract, self._bench.scope)
        return value_of(verb, self._one(Action(verb, f"{verb.value} {what}", operand=operand)), operand)

    def clock(self, step: str) -> None:
        """Move the clock of every worker by a span such as `+300s`, or to an instant."""
        self.now = shift(self.now, step)
        request = {"op": "clock", "now": self.now}
        pairs = tuple((worker, request) for worker in range(self.workers))
        for record in self._bench.execute(self._driver, Action(Verb.EXCHANGE, f"clock {step}", pairs)):
            self._must_be_ok(record)

    def kill(self, worker: int = 0) -> None:
        """SIGKILL to a worker's process group."""
        self._bench.must_be_durable()
        self._one(Action(Verb.KILL, f"kill {worker}", worker=worker))

    def reopen(self, worker: int = 0) -> None:
        """Start a killed worker again on the same workdir."""
        self._open(worker, "existing")

    def restart(self, worker: int = 0) -> None:
        """Close a worker in order and start it again on the same workdir."""
        self._bench.must_be_durable()
        self._must_be_ok(
            self._one(Action(Verb.EXCHANGE, "restart: close", ((worker, {"op": "close"}),), worker=worker))
        )
        self._one(Action(Verb.STOP, "restart: stop", worker=worker))
        self._open(worker, "existing")

    def rand(self, label: str) -> str:
        """16 random hexadecimal digits, fixed by seed, case and label."""
        return self._bench.scope.digits("rand", label, 16)

    def hex64(self, label: str) -> str:
        """64 random hexadecimal digits, fixed by seed, case and label."""
        return self._bench.scope.digits("hex64", label, 64)

    def end(self) -> None:
        """Close every worker in order."""
        for worker in reversed(range(self.workers)):
            self._must_be_ok(
                self._one(Action(Verb.EXCHANGE, f"close worker {worker}", ((worker, {"op": "close"}),), worker=worker))
            )
        self.ended = True


class Bench:
    """What a suite test gets: sessions, and the way to state a non-conformance."""

    def __init__(
        self,
        *,
        contract: Contract,
        case: str,
        seed: str,
        make_driver: Callable[[], Driver],
        not_claimed: Mapping[str, str],
        limits: Limits,
    ) -> None:
        self._limits = limits
        self.contract = contract
        self.seed = seed
        self.not_claimed = not_claimed
        self.scope = Scope(seed=seed, case=case, side="main", defined={}, opened=START, now=START)
        self.records: list[Record] = []
        self._make_driver = make_driver
        self._open_drivers: list[Driver] = []
        self._sessions = 0

    def execute(self, driver: Driver, action: Action) -> list[Record]:
        """Carry out an action and number its records through the whole test."""
        made = driver.execute(action)
        start = len(self.records)
        self.records += [replace(record, n=start + index) for index, record in enumerate(made)]
        return self.records[start:]

    @contextlib.contextmanager
    def session(
        self, workers: int = 1, config: Mapping[str, str] | None = None, surface: str = "ready"
    ) -> Generator[Session, None, None]:
        """A session on a fresh store, closed in order if the test went well."""
        if workers > self._limits.max_workers:
            detail = f"the test needs {workers} workers, the adapter allows {self._limits.max_workers}"
            raise Finding(Judgement(Verdict.UNSUPPORTED, detail=detail))
        driver = self._make_driver()
        self._open_drivers.append(driver)
        opened = Session(self, driver, workers=workers, config=config or {}, surface=surface)
        judgement = Judgement(Verdict.NOT_REACHED, detail="the session was left early")
        try:
            yield opened
            opened.end()
            judgement = Judgement(Verdict.CONFORMS)
            self._sessions += 1
        except Finding as finding:
            judgement = finding.judgement
            raise
        finally:
            # Hypothesis goes on after a failure; its next session needs workers without an open one.
            driver.finish(judgement)
            self._open_drivers.remove(driver)

    def fail(
        self, verdict: str, message: str, *, expected: str = "", received: str = "", at: int | None = None
    ) -> NoReturn:
        """State what was found; `verdict` is a name such as `fail_open`.

        `at` is the record that shows it (`Answer.n`), the last one unless said otherwise; its call is named, so that
        a generated test says which of its inputs it was.
        """
        record = self.records[-1 if at is None else at] if self.records else None
        request = {} if record is None else record.request or {}
        if request.get("op") == "call":
            asked = canonical(request["args"]).decode()
            asked = asked if len(asked) <= _SHOWN_ARGS else f"{asked[:_SHOWN_ARGS]}… ({len(asked)} characters)"
            message = f"{message}; the call was {request['method']} {asked}"
        n = None if record is None else record.n
        raise Finding(Judgement(Verdict(verdict), None, message, expected, received, n=n))

    def must_be_durable(self) -> None:
        """End the test as not reached if nothing in the workdir could survive anyway."""
        if self._limits.volatile is not None:
            raise Finding(judge_volatile(self._limits.volatile))

    def conclude(self) -> Judgement:
        """The judgement of a test that ran to its end: it must have had a session that went through."""
        if self._sessions == 0:
            return Judgement(Verdict.NOT_REACHED, detail="the test ended without a single session")
        return Judgement(Verdict.CONFORMS)

    def tidy(self, judgement: Judgement) -> None:
        """End what a failed test left open."""
        for driver in self._open_drivers:
            driver.finish(judgement)
        self._open_drivers.clear()


def judge_volatile(kind: str) -> Judgement:
    """What can be said of durability where the workdir lies on a file system of this kind."""
    return Judgement(
        Verdict.NOT_REACHED,
        detail=f"the workdir lies on {kind}, which keeps nothing; durability cannot be judged there",
        advice="Give --workdir a folder on a disk.",
    )


def base64url(data: bytes) -> str:
    """Bytes as they stand in arguments, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def from_base64url(text: str) -> bytes:
    """Back from there."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def listed(findings: Sequence[str]) -> str:
    """The first of a test's findings in words, and how many more there are."""
    more = f"; and {len(findings) - _SHOWN} more" if len(findings) > _SHOWN else ""
    return "; ".join(findings[:_SHOWN]) + more
