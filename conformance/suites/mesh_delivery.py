"""mesh-delivery: what a script cannot say. Every committed fingerprint, and fields mutated one at a time."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.suites import clause
from conformance.suites.bench import Bench, Session
from vectors.fingerprints import Fingerprint, load
from vectors.fingerprints.rows import BLOCK_ROWS, Row, row_at

_KEY = "mesh.fingerprint"
# The rows of a test are fixed, so that two runs have the same plan. Each block tries every field of one request.
_SEED = 44
_BLOCKS = 12
# So many of a test's findings are told in words; the others are counted.
_SHOWN = 4


def _recorded(session: Session, record: Fingerprint) -> Iterator[tuple[str, str]]:
    """A verdict and its words, if the answer is not the recorded one."""
    answer = session.call("fingerprint", record.request)
    if record.sha256 is None:
        if answer.outcome != "refused":
            yield "fail_open", f"{record.id}: has a fingerprint; it must be refused ({record.note})"
    elif answer.outcome == "refused":
        yield "over_refusal", f"{record.id}: refused with {answer.reason}; it has a fingerprint ({record.note})"
    elif answer.value["fingerprint"] != record.sha256:
        yield "wrong_reason", f"{record.id}: {answer.value['fingerprint']}, {record.sha256} is due ({record.note})"


def _run(bench: Bench, *clauses: str) -> None:
    """Every request of vectors/data/fingerprints/mesh.jsonl that is about these clauses."""
    found: list[tuple[str, str]] = []
    with bench.session() as session:
        for record in load():
            if record.key == _KEY and record.clause in clauses:
                found += _recorded(session, record)
    if found:
        # An open door is told before a wrong digest.
        found.sort(key=lambda one: one[0] != "fail_open")
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        bench.fail(found[0][0], "; ".join(text for _, text in found[:_SHOWN]) + more)


@clause("MESH-4.4-F1", "MESH-4.4-F2")
def test_committed_fingerprints_of_framing(bench: Bench) -> None:
    """All fields at once, and versions."""
    _run(bench, "MESH-4.4-F1", "MESH-4.4-F2")


@clause("MESH-4.4-F3", "MESH-4.4-F4")
def test_committed_fingerprints_of_destinations(bench: Bench) -> None:
    """Kinds and references."""
    _run(bench, "MESH-4.4-F3", "MESH-4.4-F4")


@clause("MESH-4.4-F5")
def test_committed_fingerprints_of_replies(bench: Bench) -> None:
    """Ids in every spelling, and none."""
    _run(bench, "MESH-4.4-F5")


@clause("MESH-4.4-F6")
def test_committed_fingerprints_of_priorities(bench: Bench) -> None:
    """Priorities, and the default."""
    _run(bench, "MESH-4.4-F6")


@clause("MESH-4.4-F7")
def test_committed_fingerprints_of_metas(bench: Bench) -> None:
    """What RFC 8785 makes of meta."""
    _run(bench, "MESH-4.4-F7")


@clause("MESH-4.4-F8")
def test_committed_fingerprints_without_meta(bench: Bench) -> None:
    """The spellings of no meta."""
    _run(bench, "MESH-4.4-F8")


@clause("MESH-4.4-F9", "MESH-4.4-F10")
def test_committed_fingerprints_of_bodies(bench: Bench) -> None:
    """Bytes that are no text, and texts that look like fields."""
    _run(bench, "MESH-4.4-F9", "MESH-4.4-F10")


@clause("MESH-4.4-F12", "MESH-4.4-F13")
def test_committed_requests_without_a_fingerprint(bench: Bench) -> None:
    """NUL, and metas that cannot be canonicalised without loss."""
    _run(bench, "MESH-4.4-F12", "MESH-4.4-F13")


@clause("MESH-4.4-F10")
def test_no_mutated_request_shares_a_fingerprint(bench: Bench) -> None:
    """Requests that differ in one field, and requests that are spelt otherwise."""
    rows = (row_at(_SEED, index) for index in range(_BLOCKS * BLOCK_ROWS))
    by_fingerprint: dict[str, Row] = {}
    by_identity: dict[bytes, tuple[Row, str]] = {}
    with bench.session() as session:
        for row in rows:
            if row.key != _KEY:
                continue
            answer = session.call("fingerprint", row.request)
            if answer.outcome != "accepted":
                bench.fail("over_refusal", f"{row.request}: refused with {answer.reason}; nothing is wrong with it")
            found = answer.value["fingerprint"]
            other = by_fingerprint.setdefault(found, row)
            if other.identity != row.identity:
                told = (
                    f"{other.request} and {row.request} differ in {row.field or other.field} and have one fingerprint"
                )
                bench.fail("fail_open", told, received=found)
            equal, fingerprint = by_identity.setdefault(row.identity, (row, found))
            if fingerprint != found:
                told = f"{equal.request} and {row.request} are one request in two spellings"
                bench.fail("wrong_reason", told, expected=fingerprint, received=found)
