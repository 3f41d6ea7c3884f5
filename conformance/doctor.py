"""The doctor: a handshake, and the mistakes that adapters usually make, each by name.

Nothing here is a verdict about an implementation; it helps to get an adapter to the point where there can be one.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from pathlib import Path

from conformance.adapter.janitor import Janitor
from conformance.adapter.messages import Event
from conformance.adapter.process import Deadlines, StartError, adapter_environment
from conformance.adapter.worker import AdapterCommand, Greeting, GreetingError, Worker
from conformance.cases.reading import worker_count
from conformance.cases.request import START, located, open_request
from conformance.verdict import Silence
from specs import contract_names, load_contract


@unique
class Health(Enum):
    """How one examination ended."""

    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Examination:
    """One thing looked at: what was expected, what came, what to do. `advice` is empty when all is well."""

    name: str
    health: Health
    found: str
    advice: str = ""


_HELLO_ADVICE = {
    Silence.CRASH: "It ended before it answered. Run it by hand, type the hello line, read its standard error.",
    Silence.EOF: "It ended, or closed standard output, unanswered. It must read standard input in a loop.",
    Silence.HANG: "No answer: usual causes are output that is not flushed after each line, or reading standard input "
    "to its end before answering.",
    Silence.GARBAGE: "Standard output carries protocol lines only, one JSON object each, with the id of its request. "
    "Usual causes: a banner, a log line, a print for debugging. Log to standard error.",
    Silence.MISSING: "Nothing came.",
    Silence.BUSY: "The machine was too busy to tell: try again while it is quieter, or with --slow FACTOR.",
}


def examine(
    argv: Sequence[str],
    *,
    contract: str | None,
    deadlines: Deadlines,
    config: Mapping[str, str],
    passed: Sequence[str] = (),
    slow: float = 1.0,
) -> list[Examination]:
    """Examine the adapter `argv`, which is told the factor `slow`.

    The list ends at the first thing without which the next makes no sense.
    """
    found: list[Examination] = []
    with Janitor() as janitor:
        command = AdapterCommand(tuple(argv), adapter_environment(passed, slow=slow), deadlines)
        try:
            worker = Worker(command, janitor=janitor, number=0, epoch_ns=time.monotonic_ns())
            worker.await_greeting()
        except StartError as error:
            return [Examination("start", Health.BAD, str(error), "Check the path and the execute permission.")]
        except GreetingError as error:
            said = f"; standard error ends: {error.log.strip()[-300:]}" if error.log.strip() else ""
            return [
                Examination("start", Health.GOOD, "the program starts"),
                Examination("hello", Health.BAD, error.event.detail + said, _HELLO_ADVICE[error.event.kind]),
            ]
        try:
            found += [Examination("start", Health.GOOD, "the program starts"), _said(worker.greeting)]
            found += _claims(worker.greeting)
            name = contract or next(
                (c.contract for c in worker.greeting.claims if c.contract in contract_names()), None
            )
            if name is not None:
                folder = janitor.make_folder(parent=Path(tempfile.gettempdir()))
                found += _session(worker, name, folder, config=config, deadlines=deadlines)
            found.append(_shutdown(worker, deadlines))
        finally:
            worker.kill()
    return found


def _said(greeting: Greeting) -> Examination:
    said = greeting.implementation
    text = f"{said['name']} {said['version']} ({said['language']}), {greeting.max_workers} workers"
    return Examination("hello", Health.GOOD, text)


def _claims(greeting: Greeting) -> list[Examination]:
    if not greeting.claims:
        return [Examination("claims", Health.BAD, "none", "List under `claims` the contracts that are implemented.")]
    found = []
    for claim in greeting.claims:
        where = f"claim {claim.contract}"
        if claim.contract not in contract_names():
            advice = f"Known contracts: {', '.join(contract_names())}."
            found.append(Examination(where, Health.BAD, "this kit does not know it", advice))
            continue
        contract = load_contract(claim.contract)
        if claim.version != contract.version:
            text = f"version {claim.version}, this kit has {contract.version}"
            found.append(Examination(where, Health.BAD, text, "Read the CHANGELOG and claim the version of this kit."))
            continue
        unknown = set(claim.not_claimed) - set(contract.methods) - {"concurrency", "clock"}
        if unknown:
            text = f"not_claimed names {', '.join(sorted(unknown))}"
            found.append(
                Examination(where, Health.BAD, text, "Name methods of the contract, `concurrency` or `clock`.")
            )
        else:
            lacks = f", not claimed: {', '.join(claim.not_claimed)}" if claim.not_claimed else ""
            found.append(Examination(where, Health.GOOD, f"version {claim.version}{lacks}"))
        if any(worker_count(contract, case) > greeting.max_workers for case in contract.cases):
            text = f"limits.workers is {greeting.max_workers}, some cases need more"
            advice = "Those cases will be `unsupported`. Let several processes share the store in one workdir."
            found.append(Examination("workers", Health.BAD, text, advice))
    return found


def _session(
    worker: Worker, name: str, folder: Path, *, config: Mapping[str, str], deadlines: Deadlines
) -> list[Examination]:
    found: list[Examination] = []
    open_: dict[str, object] = located(
        open_request(name, "fresh", clock=START, seed="doctor", config={}), folder, config
    )
    contract = load_contract(name)
    steps: list[tuple[str, dict[str, object], str, str]] = [
        ("open", open_, "ok", "`open` with state fresh answers outcome ok."),
        ("clock", {"op": "clock", "now": START}, "ok", "`clock` answers ok, and times are taken from it."),
    ]
    if contract.inertness is not None:
        look: dict[str, object] = {"op": "call", "method": contract.inertness.observe, "args": {}}
        steps.append((f"observe {contract.inertness.observe}", look, "ok", "Observations answer ok with a value."))
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
            assert reply.event is not None
            found.append(Examination(label, Health.BAD, reply.event.detail, _HELLO_ADVICE[reply.event.kind]))
            return found
        came = reply.answer["outcome"]
        text = came + (f": {reply.answer['detail']}" if "detail" in reply.answer else "")
        good = came == wanted
        found.append(Examination(label, Health.GOOD if good else Health.BAD, text, "" if good else advice))
        if start and not good:
            found.append(Examination("session", Health.SKIPPED, "no session could be opened"))
            return found
    return found


def _shutdown(worker: Worker, deadlines: Deadlines) -> Examination:
    if worker.dead is not None:
        return Examination("shutdown", Health.SKIPPED, f"already gone: {worker.dead.detail}")
    reply = worker.exchange({"op": "bye"}, timeout=deadlines.op)
    ended: Event | None = worker.wait_for_end(timeout=deadlines.quit)
    if reply.answer is None or reply.answer.get("outcome") != "ok":
        return Examination("shutdown", Health.BAD, "`bye` was not answered with ok", "Answer `bye`, then exit.")
    if ended is None:
        advice = "Exit after `bye` and at end of file on standard input; otherwise the process is killed."
        return Examination("shutdown", Health.BAD, f"still running {deadlines.quit:g} s after `bye`", advice)
    if ended.kind is not Silence.EOF:
        return Examination("shutdown", Health.BAD, ended.detail, "Exit with status 0 after `bye`.")
    return Examination("shutdown", Health.GOOD, "exits with status 0 after `bye`")
