"""A session as a suite test has it: each method waits for its answer, and ends the test where none came."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NoReturn, TypeVar

from holdfast.conformance.cases.inertness import STORE, TREE
from holdfast.conformance.cases.record import Judgement, NonConformance, Record
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.session import (
    EXCHANGE,
    Action,
    Answer,
    Local,
    Records,
    Session,
    SessionScript,
    call_request,
    carried_out,
    must_be_done,
)
from holdfast.conformance.cases.values import Scope, base64url, shift
from holdfast.conformance.inspection.changing import apart, target_of
from holdfast.conformance.inspection.files import parts_of
from holdfast.conformance.steps import kinds
from holdfast.conformance.steps.calls import FINISH, START
from holdfast.conformance.steps.files import CUT, TAMPER, wanted_of
from holdfast.conformance.steps.processes import ANSWERS, REACHED, RELEASE
from holdfast.conformance.steps.race import RACE
from holdfast.conformance.steps.stores import store_operand, store_path
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.specs import Method

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Handle:
    """A call under way."""

    worker: int
    method: str


class SuiteSession:
    """One session on a workdir of its own, with one or more workers.

    No answer, an answer that breaks its method, a `fault` and `unsupported` end the test with their verdict.
    """

    def __init__(
        self,
        session: Session,
        scope: Scope,
        execute: Callable[[Action], Records],
        *,
        workdir: Callable[[], Path],
        workers: int,
        must_be_durable: Callable[[], None],
    ) -> None:
        """Open it at every worker. `must_be_durable` ends a test whose workdir lies on a volatile file system."""
        self._session, self._scope, self._execute = session, scope, execute
        self._workdir, self._must_be_durable = workdir, must_be_durable
        self.workers = workers
        # What the adapter said in its answer to the first `open`.
        self.said: Any = None
        for worker in range(workers):
            opened = self._run(session.open(worker, "existing" if worker else "fresh", f"open worker {worker}"))
            if worker == 0:
                self.said = (opened.answer or {}).get("value")

    @property
    def workdir(self) -> Path:
        """The folder of the session; only while it runs."""
        return self._workdir()

    @property
    def config(self) -> Mapping[str, str]:
        """What the session was opened with."""
        return self._session.config

    @property
    def not_claimed(self) -> Mapping[str, str]:
        """The capabilities that the adapter does not claim, and why."""
        return self._session.not_claimed

    @property
    def now(self) -> str:
        """The time of the session."""
        return self._session.now

    def _run(self, talk: SessionScript[T]) -> T:
        return carried_out(talk, self._execute)

    def _one(self, action: Action) -> Record:
        return self._execute(action)[0]

    # The implementation

    def call(self, method: str, args: Mapping[str, Any] | None = None, worker: int = 0) -> Answer:
        """Call an operation."""
        return self._run(self._session.call(worker, method, args or {}, f"call {method}"))

    def accepted(self, method: str, args: Mapping[str, Any] | None = None, worker: int = 0) -> Any:
        """The value of an operation that has to be accepted."""
        return self._value("call", method, args, worker, due="accepted")

    def observe(self, method: str, args: Mapping[str, Any] | None = None, worker: int = 0) -> Any:
        """The value of an observation."""
        return self._value("observe", method, args, worker)

    def sample(self, method: str, args: Mapping[str, Any] | None = None, worker: int = 0) -> Any:
        """The value of an observation beside a call that is under way; None where it was answered `fault`.

        While a commit is open, a store may let no one read (docs/adapter-protocol.md).
        """
        return self.unless_fault(lambda: self.observe(method, args, worker))[1]

    def provoke(self, method: str, args: Mapping[str, Any] | None = None, worker: int = 0) -> Any:
        """The value of a provocation."""
        return self._value("provoke", method, args, worker)

    def attempt(self, method: str, args: Mapping[str, Any] | None = None, worker: int = 0) -> bool:
        """A provocation that may fail; whether it was done. One that was not is answered `fault`."""
        return self.unless_fault(lambda: self.provoke(method, args, worker))[0]

    def unless_fault(self, act: Callable[[], T]) -> tuple[bool, T | None]:
        """Whether no answer in an act was a `fault`, and what came of it."""
        try:
            return True, act()
        except NonConformance as finding:
            if finding.judgement.silence is not FailureMode.FAULT:
                raise
            return False, None

    def _value(self, verb: str, method: str, args: Mapping[str, Any] | None, worker: int, due: str = "ok") -> Any:
        if verb == "provoke" and (why := self._session.not_claimed.get(method)) is not None:
            raise NonConformance(Judgement(Verdict.UNSUPPORTED, detail=f"the adapter does not claim {method}: {why}"))
        answer = self._run(self._session.call(worker, method, args or {}, f"{verb} {method}"))
        if answer.outcome != due:
            _not_reached(f"{method} answered {answer.outcome} {answer.reason or ''}".rstrip(), answer.n)
        return answer.value

    def exchange(self, method: str, args: Mapping[str, Any], worker: int = 0) -> Record:
        """A call of what is no method of the contract; the caller judges what came."""
        return self._one(Action(EXCHANGE, f"send {method}", ((worker, call_request(method, args)),), worker=worker))

    def start(self, method: str, args: Mapping[str, Any] | None = None, worker: int = 0) -> Handle:
        """Send a call and do not wait."""
        self._one(Action(START, f"start {method}", ((worker, call_request(method, args or {})),), worker=worker))
        return Handle(worker, method)

    def finish(self, handle: Handle) -> Answer:
        """Wait for a started call."""
        return self._answer(self._one(Action(FINISH, f"finish {handle.method}", worker=handle.worker)), handle.method)

    def race(self, calls: Sequence[tuple[str, Mapping[str, Any]]], worker: int | None = None) -> list[Answer]:
        """One call from each worker at once, behind a barrier; the answers in the order of the calls.

        All from one `worker`, if it is given. Over a WebSocket they share a connection then.
        """
        pairs = tuple(
            (number if worker is None else worker, call_request(method, args))
            for number, (method, args) in enumerate(calls)
        )
        records = self._execute(Action(RACE, f"race of {len(pairs)}", pairs))
        return [self._answer(record, method) for record, (method, _) in zip(records, calls, strict=True)]

    def _answer(self, record: Record, method: str) -> Answer:
        return self._session.answer(record, self._session.contract.methods[method])

    def hold_at(self, point: str, worker: int = 0) -> None:
        """Arm the failpoint at which the next operation of a worker stops; one may be armed again and again."""
        self.hold("hold_at", {"point": point, "fault": "hold"}, worker)

    def hold(self, provocation: str, args: Mapping[str, Any], worker: int = 0) -> None:
        """The same with a provocation of the contract's own, whose arguments name the `point`."""
        point = args["point"]
        for found in self.tree("hold"):
            if found["path"].removeprefix("hold/") in (f"{point}.reached", f"{point}.release"):
                self.remove(found["path"])
        self.provoke(provocation, args, worker)

    def reached(self, point: str) -> None:
        """Wait for a failpoint; not reaching it ends the test as not reached."""
        self._local(REACHED, point, {"point": point})

    def release(self, point: str) -> None:
        """Let a failpoint go on."""
        self._local(RELEASE, point, {"point": point})

    def _local(self, act: Local, what: str, operand: Mapping[str, Any]) -> None:
        must_be_done(self._one(Action(act, f"{act.name} {what}", operand=operand)))

    # The broker that the harness plays for a daemon

    def answers(self, answers: Sequence[Mapping[str, Any]]) -> None:
        """What it says to the next requests; what was armed before is gone (docs/case-language.md, `answers`)."""
        must_be_done(self._one(Action(ANSWERS, f"answers {len(answers)}", operand={"answers": list(answers)})))

    def received(self, behind: int = 0) -> list[dict[str, Any]]:
        """The requests so far, {path, headers, body}, in the order of their arrival, but for the first `behind`."""
        requests: list[dict[str, Any]] = self._reported("received", "requests", {"behind": behind})["requests"]
        return requests

    # The workdir and the store, observed and changed by the harness itself

    def inspect(self, *, damaged: bool = False) -> dict[str, Any]:
        """What is in the store (docs/case-language.md).

        One that cannot be read ends the test as not reached; with `damaged` its `error` says why it cannot.
        """
        value = self._reported("inspect", "store", store_operand(self._session.contract))
        if value["error"] is not None and not damaged:
            _not_reached(f"the store cannot be inspected: {value['error']}")
        return value

    def file(self, path: str) -> dict[str, Any]:
        """What a file in the workdir is: {exists, kind, mode, size, sha256, bytes, ignored}."""
        parts_of(path)
        return self._reported("file", path, {"path": path})

    def tree(self, path: str) -> list[dict[str, Any]]:
        """Everything below a folder of the workdir, [{path, kind, size}], nothing if it is not there.

        What cannot be listed ends the test as not reached.
        """
        return self._found("tree", path, "files", "listed", {})

    def search(self, path: str, canaries: Sequence[Any]) -> list[dict[str, Any]]:
        """Where texts, or bytes as {bytes: base64url}, can be read below a folder of the workdir: [{path, which}].

        What cannot be searched ends the test as not reached.
        """
        return self._found("search", path, "found", "searched", {"for": wanted_of(list(canaries))})

    def remains(self, path: str, canaries: Sequence[Any]) -> list[dict[str, Any]]:
        """The files below a folder of the workdir, [{path, mode, open, which}]: who may read them, and what is there.

        See `search`. What cannot be read ends the test as not reached.
        """
        return self._found("remains", path, "files", "read", {"for": wanted_of(list(canaries))})

    def _found(self, kind: str, path: str, member: str, how: str, more: Mapping[str, Any]) -> list[dict[str, Any]]:
        value = self._reported(kind, path, {"path": path, **more})
        if value["error"] is not None:
            _not_reached(f"{path} cannot be {how}: {value['error']}")
        found: list[dict[str, Any]] = value[member]
        return found

    def place(self, path: str, data: bytes, **times: str) -> None:
        """Write a file into the workdir. With `times="kept"` one that is there looks as old as it was."""
        parts_of(path)
        self._reported("place", path, {"path": path, "content": base64url(data), **times})

    def remove(self, path: str) -> None:
        """Remove a file from the workdir; one that is not there ends the test as not reached."""
        self._local(TAMPER, path, {"tamper": path, "delete": True})

    def cut(self, path: str, size: int) -> None:
        """Cut a file of the workdir to `size` bytes; a missing file ends the test as not reached."""
        self._local(TAMPER, f"{path} {CUT}", {"tamper": path, "truncate": size})

    def switch(self, path: str, journal_mode: str) -> bool:
        """Put a database into a journal mode as another tool does; whether it is: not while a process has it open."""
        operand = {"tamper": path, "journal_mode": journal_mode}
        record = self._one(Action(TAMPER, f"{TAMPER.name} {path}", operand=operand))
        return record.event is not None and record.event["kind"] == "done"

    def link(self, path: str, to: str) -> None:
        """Make a symbolic link in the workdir, where nothing is."""
        self._reported("link", path, {"path": path, "to": target_of(path, to)})

    def copy(self, path: str, to: str) -> None:
        """Put a copy of a file or folder of the workdir in the place of what lies at another place in it."""
        apart(path, to)
        self._reported("copy", path, {"path": path, "to": to})

    def move(self, path: str, to: str) -> None:
        """Rename a file or folder of the workdir. A process that has it open keeps it open."""
        apart(path, to)
        self._reported("copy", path, {"path": path, "to": to, "move": True})

    def loosen(self, path: str = ".", *, holding: str = "") -> list[dict[str, Any]]:
        """Rebuild each SQLite database of the workdir without its constraints: [{path, tables, error}].

        `holding`: only tables with this text in a row, and unique indexes that let every row in come instead.
        """
        operand = {"path": path, **({"holding": holding} if holding else {})}
        found: list[dict[str, Any]] = self._reported("loosen", path, operand)["databases"]
        return found

    def report(self, report: Report, what: str, operand: Mapping[str, Any]) -> dict[str, Any]:
        """The value of an act of the harness, which a kind of step or a suite brings with it."""
        return report.value_of(self._one(Action(report, f"{report.name} {what}", operand=operand)), operand)

    def insert(self, table: str, *rows: Mapping[str, Any]) -> dict[str, Any]:
        """Put rows into the store itself: {inserted, error}. What fails without a constraint ends the test."""
        return self._tried("insert", table, rows, {})

    def alter(self, family: str, key: str, value: str | None) -> None:
        """Put a row into the RocksDB store, or remove it; base64url. What cannot be done ends the test as not reached.

        No process may have it open: first `kill`, then `reopen`.
        """
        self._altered(family, {"key": key, "value": value})

    def drop(self, family: str) -> None:
        """Drop a family of the RocksDB store. See `alter`."""
        self._altered(family, {"drop": True})

    def _altered(self, family: str, change: Mapping[str, Any]) -> None:
        done = self._reported("alter", family, {"path": store_path(self._session.contract), "family": family, **change})
        if done["error"] is not None:
            _not_reached(f"alter {family} came to nothing: {done['error']}")

    def probe(self, table: str, *rows: Mapping[str, Any], or_replace: bool = False) -> dict[str, Any]:
        """Put rows into a copy of the store: {inserted, error}. What fails without a constraint ends the test."""
        return self._tried("probe", table, rows, {"or_replace": or_replace})

    def probe_change(self, table: str, row: Mapping[str, Any], to: Mapping[str, Any], how: str) -> dict[str, Any]:
        """Put a row into a copy of the store and change it: {inserted, error} of the change. See `probe`.

        `how` is `update`, `update or replace`, or `upsert`, an insert that meets the row.
        """
        return self._tried("probe", table, [row], {"or_replace": False, "change": {"how": how, "to": dict(to)}})

    def _tried(
        self, kind: str, table: str, rows: Sequence[Mapping[str, Any]], more: Mapping[str, Any]
    ) -> dict[str, Any]:
        operand = {"path": store_path(self._session.contract), "table": table, "rows": list(rows), **more}
        value = self._reported(kind, table, operand)
        if value["inserted"] is None:
            _not_reached(f"{kind} {table} came to nothing: {value['error']}")
        return value

    def _reported(self, kind: str, what: str, operand: Mapping[str, Any]) -> dict[str, Any]:
        report = kinds()[kind].report
        assert report is not None
        return self.report(report, what, operand)

    def around(self, method: Method) -> dict[str, Any]:
        """The state that a refusal of this method has to leave alone; nothing where the contract keeps none."""
        inertness = self._session.contract.inertness_of(method)
        if inertness is None:
            return {}
        tree = {} if inertness.tree is None else {TREE: self.tree(inertness.tree)}
        if inertness.observe is None:
            return {STORE: self.inspect()["rows"], **tree}
        audit = {inertness.audit: self.observe(inertness.audit)} if inertness.audit is not None else {}
        return {inertness.observe: self.observe(inertness.observe), **audit, **tree}

    # Time and processes

    def clock(self, step: str, *, waiting: int | None = None) -> None:
        """Move the clock of every worker by a span such as `+300s`, or to an instant.

        A worker that is `waiting` in a call has looked at its clock before; move it once the call is done.
        """
        workers = [worker for worker in range(self.workers) if worker != waiting]
        self._run(self._session.clock(shift(self.now, step), workers, f"clock {step}"))

    def begin_again(self, how: str, worker: int = 0) -> None:
        """A worker ends and comes back to the same store: `how` is `restart` or `kill`."""
        if how == "restart":
            self.restart(worker)
        else:
            self.kill(worker)
            self.reopen(worker)

    def kill(self, *workers: int) -> None:
        """SIGKILL to the process groups of these workers, or of worker 0."""
        self._must_be_durable()
        for worker in workers or (0,):
            self._run(self._session.kill(worker, f"kill {worker}"))

    def reopen(self, *workers: int) -> None:
        """Start killed workers again on the same workdir: these, or worker 0."""
        for worker in workers or (0,):
            self._run(self._session.reopen(worker, f"open worker {worker}"))

    def starts_on_what_is_there(self) -> bool:
        """Whether all workers, which are killed, start again; one that refuses has noticed what lies there."""
        return self.unless_fault(lambda: self.reopen(*range(self.workers)))[0]

    def restart(self, worker: int = 0) -> None:
        """Close a worker in order and start it again on the same workdir."""
        self._must_be_durable()
        notes = ("restart: close", "restart: stop", f"open worker {worker}")
        self._run(self._session.restart(worker, notes))

    def end(self) -> None:
        """Close every worker in order."""
        for worker in reversed(range(self.workers)):
            self._run(self._session.close(worker, f"close worker {worker}"))

    def rand(self, label: str) -> str:
        """16 random hexadecimal digits, fixed by seed, case and label."""
        return self._scope.digits("rand", label, 16)

    def hex64(self, label: str) -> str:
        """64 random hexadecimal digits, fixed by seed, case and label."""
        return self._scope.digits("hex64", label, 64)

    def dice(self, label: str) -> Random:
        """Dice, fixed by seed, case and label."""
        return Random(self.hex64(label))  # noqa: S311 - nothing is kept secret with it


def _not_reached(why: str, n: int | None = None) -> NoReturn:
    """End the test: what it is about was not reached."""
    raise NonConformance(Judgement(Verdict.NOT_REACHED, detail=why, n=n))
