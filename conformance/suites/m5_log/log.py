"""What the tests of a log share: its files, its rows, and what must be done or refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.model import is_done
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import from_base64url
from holdfast.conformance.suites.m5_log.generate import Made, clock_of
from holdfast.vectors.derive import derive

COMMAND = "command_line"
TRUST, STATUS = "m5/trust.json", "m5/status.json"


def must_be_done(bench: Bench, answer: Answer, what: str) -> None:
    """Fail unless it was accepted, or exited with 0."""
    if not is_done(answer):
        received = f"{answer.outcome} {answer.reason or ''}"
        bench.fail(answer.judged("over_refusal"), f"{what} was not done", expected="accepted", received=received)


def put(bench: Bench, session: SuiteSession, *operations: Made, what: str = "an append") -> None:
    """Append operations, each of which must be accepted."""
    for each in operations:
        must_be_done(bench, session.call("put_op", {"op": each.raw}), what)


def must_be_refused(bench: Bench, answer: Answer, reason: str, what: str) -> None:
    """Fail unless it was refused; another reason is reported."""
    bench.must_be(answer, f"refused {reason}", f"{what} was not refused with {reason}")


def must_have_rows(bench: Bench, session: SuiteSession, stored: Iterable[Made]) -> None:
    """Fail unless edges and by_author have the rows of these operations, byte for byte, and no others."""
    due: dict[str, dict[str, str]] = {"edges": {}, "by_author": {}}
    for each in stored:
        due["edges"][each.op_id] = "".join(each.parents)
        due["by_author"][derive("m5.public_key", each.draft["key"]) + clock_of(each) + each.op_id] = ""
    rows = session.inspect()["rows"]
    for family, wanted in due.items():
        found = {row["key"]["blob"]: row["value"]["blob"] for row in rows[family]}
        if found != wanted:
            key = next(key for key in sorted(wanted.keys() | found.keys()) if found.get(key) != wanted.get(key))
            verdict, there = "lost_durability" if key in wanted else "state_leak", str(found.get(key))
            bench.fail(verdict, f"the row {key} of {family}", expected=str(wanted.get(key))[:400], received=there[:400])


def trust_of(trusted: Sequence[str] | Mapping[str, str]) -> bytes:
    """A trust file: names, each with its own key or with that of another label."""
    return from_base64url(derive("m5.trust", trusted))


def place_trust(session: SuiteSession, trusted: Sequence[str] | Mapping[str, str]) -> None:
    """Write the trust file."""
    session.place(TRUST, trust_of(trusted))


def status_of(revoked: Sequence[str]) -> bytes:
    """A status file, which revokes these hashes."""
    return from_base64url(derive("m5.status", list(revoked)))


def place_status(session: SuiteSession, revoked: Sequence[str]) -> None:
    """Write the status file."""
    session.place(STATUS, status_of(revoked))


def alter(session: SuiteSession, family: str, key: str, value: str | None) -> None:
    """Put a row into the store, in base64url, or take it out, while no process has it open."""
    session.kill()
    session.alter(family, key, value)
    session.reopen()
