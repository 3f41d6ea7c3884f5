"""jcs: asking for the canonical form of a vector in a profile, and what the answers show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.conformance.cases.values import base64url, from_base64url
from holdfast.conformance.session import Answer
from holdfast.conformance.suites.bench import Bench, listed
from holdfast.conformance.suites.jcs.documents import (
    depth_of,
)
from holdfast.conformance.suites.session import SuiteSession
from holdfast.conformance.verdict import Verdict
from holdfast.vectors.record import Canonical, Expected, Vector, load
from holdfast.vectors.taxonomy import Profile


@dataclass(frozen=True, slots=True)
class Found:
    """One answer that is not the recorded one."""

    verdict: Verdict
    text: str
    n: int | None


def args_of(document: bytes, profile: Profile) -> Mapping[str, Any]:
    return {"document": base64url(document), "profile": profile.value}


def described(answer: Answer) -> str:
    if answer.outcome == "refused":
        return str(answer.reason)
    value = answer.value or {}
    return f"accepted {from_base64url(value['canonical'])[:80]!r}" if "canonical" in value else answer.outcome


# Committed vectors


def _too_deep(answer: Answer, document: bytes, floor: int) -> bool:
    """RFC 8259 section 9 allows a limit to depth, and the contract says how low it may be."""
    return answer.reason == "DEPTH_EXCEEDED" and depth_of(document) > floor


def canonicalised(
    session: SuiteSession, record: Vector, profile: Profile, due: Expected, floor: int
) -> Iterator[Found]:
    answer = session.call("canonicalise", args_of(record.document, profile))
    where = f"{record.document[:80]!r} ({record.id}) in {profile.value}"
    if answer.outcome == "refused":
        if _too_deep(answer, record.document, floor):
            return
        if isinstance(due, Canonical):
            yield Found(
                Verdict.OVER_REFUSAL, f"{where}: refused with {answer.reason}, {due.body[:80]!r} is due", answer.n
            )
        elif answer.reason != due.reason:
            yield Found(Verdict.WRONG_REASON, f"{where}: refused with {answer.reason}, {due.reason} is due", answer.n)
    elif not isinstance(due, Canonical):
        yield Found(Verdict.FAIL_OPEN, f"{where}: {described(answer)}, {due.reason} is due", answer.n)
    elif from_base64url(answer.value["canonical"]) != due.body:
        yield Found(Verdict.WRONG_REASON, f"{where}: {described(answer)}, {due.body[:80]!r} is due", answer.n)


def in_profile(profile: Profile, session: SuiteSession, record: Vector, floor: int) -> Iterator[Found]:
    return canonicalised(session, record, profile, record.expected[profile], floor)


def verified(profile: Profile, session: SuiteSession, record: Vector, floor: int) -> Iterator[Found]:
    """verify in one profile, on the document and on its canonical form."""
    due = record.expected[profile]
    body = due.body if isinstance(due, Canonical) else None
    for document in (record.document,) if body in (None, record.document) else (record.document, body):
        answer = session.call("verify", args_of(document, profile))
        where = f"verify of {document[:80]!r} ({record.id}) in {profile.value}"
        if _too_deep(answer, document, floor):
            continue
        if document == body:
            if answer.outcome != "accepted":
                yield Found(Verdict.OVER_REFUSAL, f"{where}: refused with {answer.reason}, it is canonical", answer.n)
        elif answer.outcome != "refused":
            yield Found(Verdict.FAIL_OPEN, f"{where}: accepted, it is not canonical", answer.n)
        else:
            wanted = "NOT_CANONICAL" if isinstance(due, Canonical) else due.reason
            if answer.reason != wanted:
                yield Found(Verdict.WRONG_REASON, f"{where}: refused with {answer.reason}, {wanted} is due", answer.n)


def floor_of(bench: Bench) -> int:
    parameter = bench.contract.parameters["depth_floor"].value
    assert isinstance(parameter, int)
    return parameter


def run(bench: Bench, *families: str) -> None:
    """Every vector of these families of clauses, in core."""
    found: list[Found] = []
    with bench.session() as session:
        for record in load("jcs"):
            if record.clause.rpartition("-")[0] in {f"JCS-{family}" for family in families}:
                due = record.expected[Profile.CORE]
                found += canonicalised(session, record, Profile.CORE, due, floor_of(bench))
    report(bench, found)


def run_beside_core(
    bench: Bench, records: Iterable[Vector], ask: Callable[[SuiteSession, Vector, int], Iterator[Found]]
) -> None:
    """Every vector by another question. What core answers wrongly too, and depth, is left to core's tests."""
    found: list[Found] = []
    floor, told = floor_of(bench), 0
    with bench.session() as session:
        for record in records:
            if depth_of(record.document) > floor:
                continue
            here = list(ask(session, record, floor))
            due = record.expected[Profile.CORE]
            if here and any(canonicalised(session, record, Profile.CORE, due, floor)):
                continue
            found += here
            told += 1
    if not told:
        bench.fail("not_reached", "core answers no vector as it is recorded, so nothing can be said beside it")
    report(bench, found)


def report(bench: Bench, found: list[Found]) -> None:
    """Fail with the gravest of what was found."""
    if found:
        order = list(Verdict)
        found.sort(key=lambda one: order.index(one.verdict))
        bench.fail(
            found[0].verdict.value,
            listed([one.text for one in found]),
            expected="what vectors/jcs/data says, or the construction of the document",
            at=found[0].n,
        )
