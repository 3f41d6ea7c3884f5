"""The usual mistakes of adapters, each by what shows it, with the line to change."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psutil

from holdfast.conformance.adapter.messages import PROTOCOL, Event
from holdfast.conformance.cases.record import Judgement, Side
from holdfast.conformance.cases.session import carried_out
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.interpret import interpret, worker_count
from holdfast.conformance.run.plan import methods_of
from holdfast.conformance.verdict import FailureMode
from holdfast.specs import Case, Contract
from holdfast.specs.model import CaseKind

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
