"""The doctor: a handshake, and the mistakes that adapters usually make, each by name, with the line to change.

Nothing here is a verdict on an implementation. The doctor helps to get an adapter ready for one.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from pathlib import Path
from typing import Any

import psutil

from holdfast.conformance.adapter.messages import PROTOCOL, Event
from holdfast.conformance.adapter.pool import Exhausted, WorkerPool
from holdfast.conformance.adapter.worker import Greeting, GreetingError, Worker
from holdfast.conformance.cases.drive import Driver
from holdfast.conformance.cases.record import Judgement, Record, Side
from holdfast.conformance.cases.session import (
    CONCURRENCY,
    EXCHANGE,
    KILLABLE,
    START,
    Action,
    carried_out,
    located,
    open_request,
)
from holdfast.conformance.durability.proving import starts_at_floors
from holdfast.conformance.inspection import store
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.interpret import interpret, worker_count
from holdfast.conformance.run.plan import methods_of, usable
from holdfast.conformance.run.settings import RunSettings
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.servers.errors import StartError
from holdfast.specs import Case, Contract, load_contract
from holdfast.specs.leaves import resolved
from holdfast.specs.model import CaseKind, Group, Inspection

# How long an adapter may take to answer once its input has ended, in seconds.
_BUFFERED_S = 10.0
# What the harness makes in a workdir itself, and what a failpoint leaves there.
_NOT_OF_A_STORE = frozenset({"hold"})
_ADVICE = {
    FailureMode.CRASH: "It ended before it answered. Run it by hand, type the hello line, read its standard error.",
    FailureMode.EOF: "It ended, or closed standard output, unanswered. It must read standard input in a loop.",
    FailureMode.HANG: "No answer: usual causes are output that is not flushed after each line, or reading standard "
    "input to its end before answering.",
    FailureMode.GARBAGE: "Standard output carries protocol lines only, one JSON object each, with the id of its "
    "request. Usual causes: a banner, a log line, a print for debugging. Log to standard error.",
    FailureMode.MISSING: "Nothing came.",
    FailureMode.BUSY: "The machine was too busy to decide: try again while it is quieter, or with --slow FACTOR.",
}
_LINES = (
    (
        "expected the answer to request",
        'The `id` is not that of the request. Copy it: answer = {"id": request["id"], …}, once for each request.',
    ),
    (
        "does not fit protocol-",
        "The line is JSON, and no such answer: compare its members with those in docs/adapter-protocol.md. The answer "
        "to hello repeats the `challenge`.",
    ),
    (
        "integer",
        "A number beyond 2^53 is another number for half of all readers. Write such integers as text.",
    ),
    (
        "expected one JSON object on the line",
        "This line is no answer. Find where it is printed, and print it to standard error: a banner, a log line, or "
        "what a library says.",
    ),
)
_BUFFERED = (
    "The answer came only when standard input had ended: output is buffered. Flush after each line: "
    "print(…, flush=True), writer.Flush(), out.flush()."
)


def advice_on(event: Event, command: Sequence[str] = ()) -> str:
    """What to change. Of a silent command it is tried whether its answer is in a buffer."""
    if event.kind is FailureMode.HANG and command and _is_buffered(command):
        return _BUFFERED
    if event.kind is FailureMode.GARBAGE:
        return next((advice for text, advice in _LINES if text in event.detail), _ADVICE[FailureMode.GARBAGE])
    return _ADVICE[event.kind]


def _is_buffered(command: Sequence[str]) -> bool:
    hello = {"id": "1", "op": "hello", "protocol": PROTOCOL, "kit": "holdfast/doctor", "challenge": "0" * 32}
    with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError):
        child = subprocess.Popen(
            [*command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            said, _ = child.communicate(json.dumps(hello).encode() + b"\n", timeout=_BUFFERED_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        return bool(json.loads(said.splitlines()[0])["ok"])
    return False


def left_behind(group: int) -> list[str]:
    """The processes of a group whose leader has ended."""
    found = []
    for process in psutil.process_iter(["pid", "name"]):
        with contextlib.suppress(ProcessLookupError, PermissionError, psutil.Error):
            if os.getpgid(process.pid) == group and process.pid != group:
                found.append(f"{process.info['name']} ({process.pid})")
    return found


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of an acknowledged operation after a kill, and whether the workdir holds anything."""

    case: str
    judged: Judgement
    is_empty: bool


def kept(engine: Engine, contract: Contract) -> Kept | None:
    """Run the shortest script that kills a process after an answer; None where none can be run."""
    pool, lacks = engine.pool, engine.not_claimed(contract)
    # An earlier check may have left its session open.
    pool.get(0).exchange({"op": "close"}, timeout=pool.deadlines.op)
    most = pool.get(0).greeting.max_workers
    usable = [case for case in contract.cases if _is_usable(contract, case, lacks, most)]
    if not usable:
        return None
    case = min(usable, key=lambda each: len(each.given) + len(each.when) + len(each.then))
    driver = engine.driver(contract)
    reading = interpret(contract, case, Side.MAIN, seed=engine.settings.seed, not_claimed=lacks)
    judged = carried_out(reading, driver.execute)
    is_empty = not any(path.is_file() for path in driver.workdir.rglob("*") if path.parent.name not in _NOT_OF_A_STORE)
    driver.finish(judged)
    return Kept(case.id, judged, is_empty)


def _is_usable(contract: Contract, case: Case, not_claimed: Mapping[str, str], workers: int) -> bool:
    lacks = {*not_claimed}
    steps = (*case.given, *case.when, *case.then)
    return (
        case.kind is CaseKind.DURABILITY
        and any("kill" in step for step in steps)
        and not any("start" in step or "provoke" in step for step in steps)
        and lacks.isdisjoint(
            methods_of(contract, case) | contract.roles_of(case.clauses, case.roles) | case.needs | {"kill"}
        )
        and worker_count(contract, case) <= workers
        and case.surface == "ready"
    )


@unique
class Health(Enum):
    """How one examination ended."""

    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Examination:
    """One check: what was expected, what came, what to do. `advice` is empty when all is well.

    `worker` is the number of the adapter's process that was asked, None where none was.
    """

    name: str
    health: Health
    found: str
    advice: str = ""
    worker: int | None = None


_STARTS = Examination("start", Health.GOOD, "the program starts", worker=0)
# Capabilities that are no methods and no roles.
_CAPABILITIES = frozenset({CONCURRENCY, KILLABLE, "clock", "http", "websocket"})
# A start that takes longer is named. Faults start an adapter hundreds of times.
_SLOW_START_S = 3.0


def left_out() -> list[Examination]:
    """The contracts that other distributions bring, and that cannot be used."""
    wrong = usable()[1]
    return [Examination(f"contract {name}", Health.SKIPPED, f"unusable: {why}") for name, why in wrong.items()]


def examine(settings: RunSettings, *, contract: str | None) -> list[Examination]:
    """Check an adapter. The list ends at the first failed check that the next one depends on."""
    with Engine(settings) as engine, contextlib.ExitStack() as stack:
        stack.callback(engine.pool.abort)
        began = time.monotonic()
        try:
            worker = engine.pool.get(0)
        except StartError as error:
            return [Examination("start", Health.BAD, str(error), "Check the path and the execute permission.")]
        except GreetingError as error:
            said = f"; standard error ends: {error.log.strip()[-300:]}" if error.log.strip() else ""
            advice = advice_on(error.event, settings.adapter)
            return [_STARTS, Examination("hello", Health.BAD, error.event.detail + said, advice, 0)]
        took = time.monotonic() - began
        found = [_STARTS, _said(worker.greeting), *_claims(worker.greeting)]
        name = contract or next((c.contract for c in worker.greeting.claims if c.contract in usable()[0]), None)
        if name is not None:
            known = load_contract(name)
            try:
                engine.provision(name)
            except StartError as error:
                return [*found, Examination("launcher", Health.BAD, str(error))]
            found += _sessions(engine, known)
            found += _starts(known, took, engine.settings.factor)
        found.append(_shutdown(engine.pool))
    return found


def _starts(contract: Contract, took: float, slow: float) -> Iterator[Examination]:
    """Whether a start is slow, and how long the faults of a contract take at least by that."""
    if took > _SLOW_START_S * slow:
        advice = (
            "Load what is large when it is first needed, and connect at `open`. A run starts an adapter many times."
        )
        yield Examination("start time", Health.BAD, f"a start took {took:.2g} s", advice, 0)
    if not contract.faults:
        return
    starts = starts_at_floors(contract)
    minutes = math.ceil(starts * took / 60)
    text = f"a start took {took:.2g} s; at their floors they take about {starts} starts, so {minutes} min or more"
    yield Examination("faults", Health.GOOD, text)


def _said(greeting: Greeting) -> Examination:
    said = greeting.implementation
    text = f"{said['name']} {said['version']} ({said['language']}), {greeting.max_workers} workers"
    return Examination("hello", Health.GOOD, text, worker=0)


def _claims(greeting: Greeting) -> list[Examination]:
    if not greeting.claims:
        return [Examination("claims", Health.BAD, "none", "List under `claims` the contracts that are implemented.")]
    found = []
    known, wrong = usable()
    for claim in greeting.claims:
        where = f"claim {claim.contract}"
        if claim.contract in wrong and claim.contract not in known:
            continue
        if claim.contract not in known:
            advice = f"Known contracts: {', '.join(known)}."
            found.append(Examination(where, Health.BAD, "this kit does not know it", advice))
            continue
        contract = load_contract(claim.contract)
        if claim.version != contract.version:
            text = f"version {claim.version}, this kit has {contract.version}"
            found.append(Examination(where, Health.BAD, text, "Read the CHANGELOG and claim the version of this kit."))
            continue
        unknown = set(claim.not_claimed) - set(contract.methods) - set(contract.roles) - _CAPABILITIES
        if unknown:
            text = f"not_claimed names {', '.join(sorted(unknown))}"
            found.append(
                Examination(
                    where, Health.BAD, text, "Name methods or roles of the contract, `concurrency`, `kill` or `clock`."
                )
            )
        else:
            lacks = f", not claimed: {', '.join(claim.not_claimed)}" if claim.not_claimed else ""
            found.append(Examination(where, Health.GOOD, f"version {claim.version}{lacks}"))
        if any(worker_count(contract, case) > greeting.max_workers for case in contract.cases):
            most = max(worker_count(contract, case) for case in contract.cases)
            text = f"limits.workers is {greeting.max_workers}, some cases need up to {most}"
            advice = "Those cases will be `unsupported`. Let several processes share the store in one workdir."
            found.append(Examination("workers", Health.BAD, text, advice))
    return found


def _sessions(engine: Engine, contract: Contract) -> list[Examination]:
    """A session of worker 0, then the checks that need more than one."""
    worker = engine.pool.get(0)
    found = _session(engine, worker, contract)
    if worker.dead is not None:
        return found
    found.append(_close_alone(engine.pool, worker.greeting))
    if found[-1].health is Health.GOOD and all(item.name != "session" for item in found):
        found += _bytes(engine, contract)
        found += _kept(engine, contract)
    return found


def _kept(engine: Engine, contract: Contract) -> Iterator[Examination]:
    """Whether what was acknowledged is there after a kill, and whether it lies in the workdir."""
    try:
        found = kept(engine, contract)
    except (StartError, GreetingError, Exhausted) as error:
        yield Examination("kill", Health.SKIPPED, f"no worker could be had: {error}")
        return
    if found is None:
        return
    verdict = found.judged.verdict
    if verdict is Verdict.LOST_DURABILITY:
        advice = (
            "It is answered before it is stored. Commit, with the sync, and only then write the line of the answer."
        )
        yield Examination("kill", Health.BAD, f"{found.case}: {found.judged.detail}", advice)
    elif verdict is not Verdict.CONFORMS:
        yield Examination("kill", Health.SKIPPED, f"{found.case}: {verdict.value}: {found.judged.detail}")
    else:
        yield Examination("kill", Health.GOOD, "what was acknowledged is there after a kill")
    if found.is_empty and not engine.settings.launcher:
        advice = (
            "Put the store into the `workdir` of `open`: sessions run at the same time, each with a store of its own."
        )
        yield Examination("store in the workdir", Health.BAD, "an operation left no file there", advice)


def _session(engine: Engine, worker: Worker, contract: Contract) -> list[Examination]:
    found: list[Examination] = []
    workdir, deadlines = engine.driver(contract).workdir, engine.pool.deadlines
    asked = open_request(contract.name, "fresh", clock=START, seed=engine.settings.seed, config={})
    open_ = located(asked, workdir, engine.provision(contract.name))
    steps: list[tuple[str, dict[str, object], str, str]] = [
        ("open", open_, "ok", "`open` with state fresh answers outcome ok."),
        ("clock", {"op": "clock", "now": START}, "ok", "`clock` answers ok, and times are taken from it."),
    ]
    observed = None if contract.inertness is None else contract.inertness.observe
    if observed in engine.not_claimed(contract):
        observed = None
    if observed is not None:
        look: dict[str, object] = {"op": "call", "method": observed, "args": {}}
        steps.append((f"observe {observed}", look, "ok", "Observations answer ok with a value."))
    unknown: dict[str, object] = {"op": "call", "method": "no_such_method", "args": {}}
    steps.append(
        ("unknown method", unknown, "fault", "An unknown method is a `fault`, never accepted and never silence.")
    )
    steps.append(("close", {"op": "close"}, "ok", "`close` answers ok and the process stays."))
    for label, request, wanted, advice in steps:
        start = label == "open"
        timeout = deadlines.start if start else deadlines.op
        reply = worker.exchange(request, timeout=timeout)
        if reply.answer is None:
            found.append(_silent(label, reply.event, worker.number))
            return found
        came = reply.answer["outcome"]
        text = came + (f": {reply.answer['detail']}" if "detail" in reply.answer else "")
        good = came == wanted
        health = Health.GOOD if good else Health.BAD
        found.append(Examination(label, health, text, "" if good else advice, worker.number))
        if start and not good:
            found.append(Examination("session", Health.SKIPPED, "no session could be opened"))
            return found
        if start and contract.inspection is not None and observed is None:
            found.append(_store(contract.inspection, workdir))
    return found


def _silent(label: str, event: Event | None, worker: int) -> Examination:
    assert event is not None
    return Examination(label, Health.BAD, event.detail, advice_on(event), worker)


def _store(place: Inspection, workdir: Path) -> Examination:
    """Where the contract fixes the store, the harness reads it itself and asks no worker."""
    label = f"store {place.path}"
    try:
        found = store.inspect(workdir, place.path, place.format)
    except OSError as error:
        found = {"exists": True, "error": str(error)}
    if found["exists"] and not found["error"]:
        return Examination(label, Health.GOOD, "the harness can read it")
    text = found["error"] or "there is none after `open`"
    kept = "file of the workdir, as SQLite" if place.format == "sqlite" else "folder of the workdir, as RocksDB"
    return Examination(label, Health.BAD, f"{text}; expected the store in this {kept} writes it")


def _close_alone(pool: WorkerPool, greeting: Greeting) -> Examination:
    """`close` at a worker that never had a session: the kit sends it after an `open` that failed."""
    label = "close without a session"
    # A worker of its own, where the adapter allows two: unlike a closed session, it has never had one.
    number = 1 if greeting.max_workers > 1 else 0
    try:
        worker = pool.get(number)
    except (StartError, GreetingError) as error:
        advice = "A second worker starts as the first one does; they share the store in the workdir."
        return Examination("second worker", Health.BAD, str(error), advice, number)
    reply = worker.exchange({"op": "close"}, timeout=pool.deadlines.op)
    if reply.answer is None:
        return _silent(label, reply.event, number)
    came = str(reply.answer["outcome"])
    if came in ("ok", "fault"):
        return Examination(label, Health.GOOD, came, worker=number)
    return Examination(label, Health.BAD, came, "`close` answers ok, or `fault` where nothing is open.", number)


# Does an adapter read base64url strictly? A line break never belongs to an encoded value. Decoders of many languages
# skip unknown characters, so that one value gets many spellings. A guard that compares spellings then misses a value
# with a line break. So the doctor sends a value that a case accepts with a line break.

_BYTES = "line break in base64"
# How many cases are tried until one of them is accepted unchanged.
_TRIES = 3
# The pattern of every schema for bytes.
_ALPHABET = "A-Za-z0-9_-"
_SHORTEST = 8


def _bytes(engine: Engine, contract: Contract) -> Iterator[Examination]:
    """Try it on worker 0 in sessions of their own; nothing if the contract has no such argument."""
    carriers = _carriers(contract)
    if not carriers:
        return
    found, pool, lacks = _untried(), engine.pool, engine.not_claimed(contract)
    try:
        for case in [case for case in contract.cases if _usable(contract, case, carriers, lacks)][:_TRIES]:
            reading = interpret(contract, case, Side.MAIN, seed=engine.settings.seed, not_claimed=lacks)
            found = _tried(pool, engine.driver(contract), reading, carriers)
            if found.health is not Health.SKIPPED:
                break
            pool.get(0).exchange({"op": "close"}, timeout=pool.deadlines.op)
    except (StartError, GreetingError, Exhausted) as error:
        found = Examination(_BYTES, Health.SKIPPED, f"no worker could be had: {error}", worker=0)
    yield found


def _untried(why: str = "") -> Examination:
    return Examination(_BYTES, Health.SKIPPED, f"no value without one was accepted{why}", worker=0)


def _carriers(contract: Contract) -> dict[str, str]:
    """The operations with an argument that holds bytes, and its name."""
    found = {}
    for method in contract.methods.values():
        shared = method.args.schema.get("$defs", {})
        for name, part in resolved(method.args.schema, shared).get("properties", {}).items():
            if method.group is Group.OPERATION and _ALPHABET in str(resolved(part, shared).get("pattern", "")):
                found[method.name] = name
    return found


def _usable(contract: Contract, case: Case, carriers: Mapping[str, str], not_claimed: Mapping[str, str]) -> bool:
    """Whether the case first uses bytes in a call that must be accepted."""
    needs = case.needs | contract.roles_of(case.clauses, case.roles)
    if worker_count(contract, case) > 2 or case.workers > 1 or needs & {*not_claimed}:
        return False
    steps = (*case.given, *case.when)
    step = next((step for step in steps if {step.get("call"), step.get("start")} & carriers.keys()), None)
    if step is None or "call" not in step or "malformed" in step or case.surface != "ready":
        return False
    return bool(step.get("expect", {}).get("outcome", "accepted") == "accepted")


def _tried(pool: WorkerPool, driver: Driver, reading: Any, carriers: Mapping[str, str]) -> Examination:
    records: list[Record] | None = None
    try:
        while True:
            action: Action = next(reading) if records is None else reading.send(records)
            request = action.requests[0][1] if action.act is EXCHANGE else {}
            method = str(request.get("method", ""))
            text = request.get("args", {}).get(carriers.get(method, ""), "")
            if isinstance(text, str) and len(text) >= _SHORTEST:
                return _sent(pool, driver, action, method, carriers[method])
            records = list(driver.execute(action))
            event = records[-1].event
            if event is not None and event["kind"] not in ("done", "failed"):
                return _silent(_BYTES, _event_of(records[-1]), 0)
    except StopIteration:
        return _untried()


def _sent(pool: WorkerPool, driver: Driver, action: Action, method: str, name: str) -> Examination:
    request = action.requests[0][1]
    text = request["args"][name]
    # At the end of a group of four, as in the line breaks of mail and PEM.
    middle = max(4, len(text) // 8 * 4)
    broken = {**request, "args": {**request["args"], name: f"{text[:middle]}\n{text[middle:]}"}}
    reply = pool.get(0).exchange(broken, timeout=pool.deadlines.op)
    if reply.answer is None:
        return _silent(_BYTES, reply.event, 0)
    record = driver.execute(action)[0]
    if record.answer is None and record.event is not None:
        return _silent(_BYTES, _event_of(record), 0)
    spoiled, answer = str(reply.answer["outcome"]), record.answer or {}
    if spoiled in ("accepted", "ok"):
        advice = "Decode strictly: refuse every character that is not in the alphabet, and padding."
        return Examination(_BYTES, Health.BAD, f"{method}: {spoiled}", advice, 0)
    came = str(answer.get("outcome"))
    if came in ("accepted", "ok"):
        return Examination(_BYTES, Health.GOOD, f"{method}: {spoiled}, {came} without it", worker=0)
    why = " ".join((came, str(answer.get("reason", "")))).strip()
    return _untried(f": {method} answered {why} to one that a case expects to be accepted")


def _event_of(record: Record) -> Event:
    event = record.event or {}
    return Event(FailureMode(event["kind"]), str(event["detail"]))


def _shutdown(pool: WorkerPool) -> Examination:
    worker, deadlines = pool.current(0), pool.deadlines
    if worker is None or worker.dead is not None:
        why = "" if worker is None or worker.dead is None else f": {worker.dead.detail}"
        return Examination("shutdown", Health.SKIPPED, f"already gone{why}", worker=0)
    reply = worker.exchange({"op": "bye"}, timeout=deadlines.op)
    ended: Event | None = worker.process.wait_for_end(timeout=deadlines.quit)
    if ended is not None and (orphans := left_behind(worker.process.pid)):
        advice = "End what the adapter has started, at `close` and at `bye`, and wait for it."
        return Examination("shutdown", Health.BAD, f"it left processes behind: {', '.join(orphans)}", advice, 0)
    if reply.answer is None or reply.answer.get("outcome") != "ok":
        return Examination("shutdown", Health.BAD, "`bye` was not answered with ok", "Answer `bye`, then exit.", 0)
    if ended is None:
        advice = "Exit after `bye` and at end of file on standard input; otherwise the process is killed."
        return Examination("shutdown", Health.BAD, f"still running {deadlines.quit:g} s after `bye`", advice, 0)
    if ended.kind is not FailureMode.EOF:
        return Examination("shutdown", Health.BAD, ended.detail, "Exit with status 0 after `bye`.", 0)
    return Examination("shutdown", Health.GOOD, "exits with status 0 after `bye`", worker=0)
