"""jcs: asking for the canonical form of a vector in a profile, and what the answers show."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from itertools import zip_longest
from typing import Any

from holdfast.conformance.attacks.bench import Bench, listed
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import base64url, from_base64url
from holdfast.conformance.verdict import Verdict
from holdfast.reports.plain import bytes_as_text, difference
from holdfast.vectors.jcs.clauses import reasons_of
from holdfast.vectors.record import Canonical, Vector, load
from holdfast.vectors.taxonomy import Profile


@unique
class Part(Enum):
    """What canonical bytes are made of: the clauses of one part say nothing of the others."""

    NUMBER = "a number"
    STRING = "a string"
    ORDER = "the order"
    FORM = "literals, brackets and what stands between"


@dataclass(frozen=True, slots=True)
class Found:
    """One answer that is not the recorded one; `part` is where accepted bytes part from those that are due."""

    verdict: Verdict
    text: str
    n: int | None
    part: Part | None = None


_TOKEN = re.compile(rb'(?P<string>"(?:[^"\\]|\\.)*")|(?P<number>-?[0-9][-+0-9.eE]*)|.', re.DOTALL)
# What stands in the place of a number is a wrong number, but for these.
_BETWEEN = b" \t\r\n,]}"


def part_of(due: bytes, given: bytes) -> Part:
    """The part at whose bytes `given` leaves `due`; they differ."""
    wanted, found = ([(each.lastgroup, each[0]) for each in _TOKEN.finditer(text)] for text in (due, given))
    if sorted(text for _, text in wanted) == sorted(text for _, text in found):
        return Part.ORDER
    end = (None, b"")
    first = next(pair for pair in zip_longest(wanted, found, fillvalue=end) if pair[0] != pair[1])
    (kind, _), (other, text) = first
    if kind == "number" and text not in _BETWEEN:
        return Part.NUMBER
    # With a member too few, another name stands where its name is due.
    return Part.STRING if kind == other == "string" and len(wanted) == len(found) else Part.FORM


def args_of(document: bytes, profile: Profile) -> Mapping[str, Any]:
    return {"document": base64url(document), "profile": profile.value}


def _text(data: bytes) -> str:
    return bytes_as_text(data, most=80)


def described(answer: Answer) -> str:
    if answer.outcome == "refused":
        return str(answer.reason)
    value = answer.value or {}
    return f"accepted {_text(from_base64url(value['canonical']))}" if "canonical" in value else answer.outcome


# Committed vectors


def _too_deep(answer: Answer, document: bytes, floor: int) -> bool:
    """RFC 8259 section 9 allows a limit to depth, and the contract says how low it may be."""
    return answer.reason == "DEPTH_EXCEEDED" and _depths([document])[0] > floor


def _depths(documents: Sequence[bytes]) -> list[int]:
    # numpy and pyarrow take a third of a second, for which no list of cases should wait.
    from holdfast.vectors.jcs.measures import depths

    return depths(documents)


def canonicalised(profile: Profile, session: SuiteSession, record: Vector, floor: int) -> Iterator[Found]:
    """canonicalise in one profile."""
    due = record.expected[profile]
    answer = session.call("canonicalise", args_of(record.document, profile))
    where = f"{_text(record.document)} ({record.id}) in {profile.value}"
    if answer.outcome == "refused":
        if _too_deep(answer, record.document, floor):
            return
        if isinstance(due, Canonical):
            text = f"refused with {answer.reason}; {where}; {_text(due.body)} is due"
            yield Found(Verdict.OVER_REFUSAL, text, answer.n)
        elif answer.reason not in (wanted := reasons_of(record.clause, due.reason)):
            text = f"refused with {answer.reason}, {' or '.join(wanted)} is due; {where}"
            yield Found(Verdict.WRONG_REASON, text, answer.n)
    elif not isinstance(due, Canonical):
        yield Found(Verdict.FAIL_OPEN, f"accepted, {due.reason} is due; {where}; {described(answer)}", answer.n)
    elif parts := difference(due.body, from_base64url(answer.value["canonical"])):
        text = f"{where}: {described(answer)}, {_text(due.body)} is due; {parts}"
        part = part_of(due.body, from_base64url(answer.value["canonical"]))
        yield Found(Verdict.WRONG_REASON, text, answer.n, part)


def verified(profile: Profile, session: SuiteSession, record: Vector, floor: int) -> Iterator[Found]:
    """verify in one profile, on the document and on its canonical form."""
    due = record.expected[profile]
    body = due.body if isinstance(due, Canonical) else None
    for document in (record.document,) if body in (None, record.document) else (record.document, body):
        answer = session.call("verify", args_of(document, profile))
        where = f"verify of {_text(document)} ({record.id}) in {profile.value}"
        if _too_deep(answer, document, floor):
            continue
        if document == body:
            if answer.outcome != "accepted":
                yield Found(Verdict.OVER_REFUSAL, f"{where}: refused with {answer.reason}, it is canonical", answer.n)
        elif answer.outcome != "refused":
            yield Found(Verdict.FAIL_OPEN, f"{where}: accepted, it is not canonical", answer.n)
        else:
            reason = "NOT_CANONICAL" if isinstance(due, Canonical) else due.reason
            if answer.reason not in (wanted := reasons_of(record.clause, reason)):
                text = f"{where}: refused with {answer.reason}, {' or '.join(wanted)} is due"
                yield Found(Verdict.WRONG_REASON, text, answer.n)


def claimed(bench: Bench) -> list[Profile]:
    """The profiles that the adapter has; each strict one is a role."""
    return [profile for profile in Profile if profile.value not in bench.not_claimed]


def floor_of(bench: Bench) -> int:
    parameter = bench.contract.parameters["depth_floor"].value
    assert isinstance(parameter, int)
    return parameter


def run(bench: Bench, part: Part | None, *families: str) -> None:
    """Every vector of these families, in core; of wrong bytes those of the part alone, and without a part none."""
    kept = {f"JCS-{family}" for family in families}
    run_in_core(bench, (record for record in load("jcs") if record.clause.rpartition("-")[0] in kept), {part, None})


def run_in_core(bench: Bench, records: Iterable[Vector], parts: Collection[Part | None]) -> None:
    """Every record in core; what is found of these parts, None for what is no matter of bytes."""
    found: list[Found] = []
    with bench.session() as session:
        for record in records:
            found += canonicalised(Profile.CORE, session, record, floor_of(bench))
    report(bench, [each for each in found if each.part in parts])


def run_beside_core(
    bench: Bench, records: Iterable[Vector], ask: Callable[[SuiteSession, Vector, int], Iterator[Found]]
) -> None:
    """Every vector by another question. What core answers wrongly too, and depth, is left to core's tests."""
    found: list[Found] = []
    floor, told, asked = floor_of(bench), 0, list(records)
    with bench.session() as session:
        for record, depth in zip(asked, _depths([each.document for each in asked]), strict=True):
            if depth > floor:
                continue
            here = list(ask(session, record, floor))
            if here and any(canonicalised(Profile.CORE, session, record, floor)):
                continue
            found += here
            told += 1
    if not told:
        bench.fail("not_reached", "core answers no vector as it is recorded, so nothing can be said beside it")
    report(bench, found)


def report(bench: Bench, found: list[Found]) -> None:
    """Fail with the gravest of what was found."""
    if found:
        found.sort(key=lambda one: one.verdict.rank)
        bench.fail(
            found[0].verdict.value,
            listed([one.text for one in found]),
            at=found[0].n,
        )
