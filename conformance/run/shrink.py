"""Makes a case that fails shorter, as long as it fails in the same way.

Only what has no effect is left out: what was observed, refused, or accepted as done before. So a sound implementation
gives the shorter case the answer that it would give the longer one, and what fails there is the same failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.cases.record import CaseResult, Judgement, Record
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.plan import PlannedCase
from holdfast.conformance.verdict import Verdict
from holdfast.specs import Case, Contract
from holdfast.specs.model import Group
from holdfast.specs.strictjson import canonical
from holdfast.vectors.fewest import fewest

# A case that needs longer is shown as short as it is by then.
MOST_TRIES = 200
_PARTS = ("then", "given", "when")
_STEP = re.compile(r"\b(given|when|then)\.([0-9]+)\b")
# Steps by which the harness looks, and changes nothing.
_READING = frozenset({"observe", "inspect", "file", "tree", "search", "remains", "check", "received"})
_LOCAL = "the harness does something itself between the requests of this case, so it cannot be made shorter"


class ShrinkError(Exception):
    """The case cannot be made shorter; the text says why."""


def is_same(one: Judgement, other: Judgement) -> bool:
    """Whether two judgements tell of one failure."""
    first, second = ((each.verdict, each.silence, each.expected, each.received) for each in (one, other))
    return first == second


def shorter_script(engine: Engine, contract: Contract, case: Case, judged: Judgement) -> tuple[Case, CaseResult]:
    """The script without the steps that the failure does not need, and its last result."""
    result = engine.run_case(contract, case)
    if not is_same(result.judgement, judged):
        raise ShrinkError(f"it does not fail in the same way again: {result.judgement.verdict.value}")
    idle = sorted(_without_effect(case, (*result.main, *result.twin)))
    shorter = case

    def fails(kept: Sequence[tuple[str, int]]) -> bool:
        nonlocal result, shorter
        gone = set(idle) - set(kept)
        steps = {
            part: tuple(step for at, step in enumerate(getattr(case, part)) if (part, at) not in gone)
            for part in _PARTS
        }
        if not steps["when"]:
            return False
        tried = replace(case, **steps)
        found = engine.run_case(contract, tried)
        if same := is_same(found.judgement, judged):
            shorter, result = tried, found
        return same

    fewest(idle, fails, tries=MOST_TRIES)
    return shorter, result


def _without_effect(case: Case, records: Sequence[Record]) -> set[tuple[str, int]]:
    """The steps of a script that changed nothing, by their part and number."""
    acting: set[tuple[str, int]] = set()
    for record in records:
        for part, number in _STEP.findall(record.action):
            if not _is_idle(record):
                acting.add((part, int(number)))
    return {
        (part, at)
        for part in _PARTS
        for at, step in enumerate(getattr(case, part))
        if (part, at) not in acting and (_READING & step.keys() or "call" in step)
    }


def _is_idle(record: Record) -> bool:
    """Whether an exchange has no effect on the store: nothing was done, or was done before."""
    request, answer = record.request or {}, record.answer or {}
    if request.get("op") != "call":
        return record.request is None
    return answer.get("outcome") in ("ok", "refused") or answer.get("effect") == "prior"


@dataclass(frozen=True, slots=True)
class Sent:
    """One request of a recorded session."""

    worker: int
    request: Mapping[str, Any]
    # Whether it had no effect when it was recorded.
    is_idle: bool


def last_session(
    contract: Contract, records: Sequence[Record], n: int | None
) -> tuple[Mapping[str, Any], list[Sent], Record]:
    """How the session of the judged record was opened, its requests up to that, and that. Raises ShrinkError."""
    end = next((at for at, record in enumerate(records) if record.n == n), len(records) - 1)
    begins = [at for at in range(end + 1) if records[at].is_fresh]
    if not begins or records[end].request is None or records[end].answer is None:
        raise ShrinkError("no answer of the adapter was judged, so there is nothing to make shorter")
    inside = records[begins[-1] + 1 : end + 1]
    if any(record.request is None or record.request["op"] not in ("open", "call", "clock") for record in inside):
        raise ShrinkError(_LOCAL)
    asked = [(record, record.request) for record in inside if record.request is not None]
    provocations = {name for name, method in contract.methods.items() if method.group is Group.PROVOCATION}
    sent = [
        Sent(record.worker, request, _is_idle(record) and request.get("method") not in provocations)
        for record, request in asked
    ]
    return records[begins[-1]].request or {}, sent, records[end]


def shorter_session(
    engine: Engine, contract: Contract, planned: PlannedCase, records: Sequence[Record], n: int | None
) -> CaseResult:
    """The requests that the judged answer needs, sent once more; the result's records are those."""
    opened, sent, judged = last_session(contract, records, n)
    result: CaseResult | None = None

    def fails(kept: Sequence[Sent]) -> bool:
        nonlocal result
        found = engine.run_suite_test(contract, planned, _replay(contract, opened, kept, judged))
        if fails_open := found.judgement.verdict is Verdict.FAIL_OPEN:
            result = found
        return fails_open

    if not fails(sent) or result is None:
        raise ShrinkError("the same requests do not bring the same answer again")
    # The last one is judged.
    idle = [at for at, each in enumerate(sent[:-1]) if each.is_idle]
    fewest(
        idle,
        lambda kept: fails([each for at, each in enumerate(sent) if at in kept or at not in idle]),
        tries=MOST_TRIES,
    )
    return result


def _replay(
    contract: Contract, opened: Mapping[str, Any], sent: Sequence[Sent], judged: Record
) -> Callable[[Bench], None]:
    """A test that fails open if the last request is answered as it was. What it says of a failure is not used."""
    workers = 1 + max(each.worker for each in sent)

    def test(bench: Bench) -> None:
        config = {name: value for name, value in opened["config"].items() if name in contract.parameters}
        with bench.session(workers, config, opened["surface"], now=opened["clock"], hurried=False) as session:
            answer: Mapping[str, Any] | None = None
            for each in sent:
                if each.request["op"] == "call":
                    answer = session.exchange(each.request["method"], each.request["args"], each.worker).answer
                elif each.request["op"] == "clock" and each.request["now"] != session.now:
                    session.clock(each.request["now"])
            if _told(answer) == _told(judged.answer):
                bench.fail(Verdict.FAIL_OPEN.value, "answered as before")

    return test


def _told(answer: Mapping[str, Any] | None) -> bytes:
    """What counts of an answer: of an operation its outcome, of anything else all of it."""
    said = dict(answer or {})
    if said.get("outcome") in ("accepted", "refused"):
        said = {name: said.get(name) for name in ("outcome", "effect", "reason")}
    return canonical({name: value for name, value in said.items() if name != "detail"})
