"""Does an adapter read base64url strictly? A line break never belongs to an encoded value.

Decoders of many languages skip unknown characters, so that one value gets many spellings. A guard that compares
spellings then misses a value with a line break. So the doctor sends a value that a case accepts with a line break.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.conformance.adapter.messages import Event
from holdfast.conformance.adapter.pool import WorkerPool
from holdfast.conformance.cases.action import Action
from holdfast.conformance.cases.drive import Driver
from holdfast.conformance.cases.interpret import interpret, worker_count
from holdfast.conformance.cases.record import Record, Side
from holdfast.conformance.session import EXCHANGE
from holdfast.conformance.verdict import Silence
from holdfast.specs import Case, Contract
from holdfast.specs.model import Group

# How many cases are tried until one of them is accepted unchanged.
_TRIES = 3
# The pattern of every schema for bytes.
_ALPHABET = "A-Za-z0-9_-"
_SHORTEST = 8


@dataclass(frozen=True, slots=True)
class Strictness:
    """The outcome. `spoiled` is the outcome of the value with a line break, or the event in its place.

    Both are None where no case of the contract could be used, and `plain` is what the value itself was answered.
    """

    method: str = ""
    spoiled: str | Event | None = None
    plain: str | None = None
    # What the value itself was answered in the place of that.
    refused: str = ""


def strictness(
    pool: WorkerPool, contract: Contract, not_claimed: Mapping[str, str], *, root: Path, config: Mapping[str, str]
) -> Strictness | None:
    """Try it on worker 0 in sessions of their own; None if the contract has no such argument."""
    carriers = _carriers(contract)
    if not carriers:
        return None
    found = Strictness()
    for case in [case for case in contract.cases if _usable(contract, case, carriers, not_claimed)][:_TRIES]:
        workdir = root / f"bytes-{case.id.replace('/', '-')}"
        workdir.mkdir()
        driver = Driver(pool, workdir, config=config)
        reading = interpret(contract, case, Side.MAIN, seed="doctor", not_claimed=not_claimed)
        found = _tried(pool, driver, reading, carriers)
        if isinstance(found.spoiled, Event) or found.plain is not None:
            return found
        pool.get(0).exchange({"op": "close"}, timeout=pool.deadlines.op)
    return found


def _carriers(contract: Contract) -> dict[str, str]:
    """The operations with an argument that holds bytes, and its name."""
    found = {}
    for method in contract.methods.values():
        shared = method.args.schema.get("$defs", {})
        for name, part in _named(method.args.schema, shared).get("properties", {}).items():
            if method.group is Group.OPERATION and _ALPHABET in str(_named(part, shared).get("pattern", "")):
                found[method.name] = name
    return found


def _named(part: Mapping[str, Any], shared: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema, or the one of `$defs` that it names."""
    found: Mapping[str, Any] = shared.get(str(part.get("$ref", "")).rpartition("/")[2], part)
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


def _tried(pool: WorkerPool, driver: Driver, reading: Any, carriers: Mapping[str, str]) -> Strictness:
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
                return Strictness(method, Event(Silence(event["kind"]), str(event["detail"])))
    except StopIteration:
        return Strictness()


def _sent(pool: WorkerPool, driver: Driver, action: Action, method: str, name: str) -> Strictness:
    request = action.requests[0][1]
    text = request["args"][name]
    # At the end of a group of four, as in the line breaks of mail and PEM.
    middle = max(4, len(text) // 8 * 4)
    broken = {**request, "args": {**request["args"], name: f"{text[:middle]}\n{text[middle:]}"}}
    reply = pool.get(0).exchange(broken, timeout=pool.deadlines.op)
    if reply.answer is None:
        return Strictness(method, reply.event)
    record = driver.execute(action)[0]
    if record.answer is None and record.event is not None:
        return Strictness(method, Event(Silence(record.event["kind"]), str(record.event["detail"])))
    came = str((record.answer or {}).get("outcome"))
    good = came if came in ("accepted", "ok") else None
    why = "" if good else " ".join((came, str((record.answer or {}).get("reason", "")))).strip()
    return Strictness(method, str(reply.answer["outcome"]), good, why)
