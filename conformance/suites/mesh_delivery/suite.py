"""mesh-delivery: what a script cannot say. Every committed fingerprint, and fields mutated one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from random import Random
from typing import Any

from holdfast.conformance.attacks import clause, tabled
from holdfast.conformance.attacks.bench import Bench, listed
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import base64url
from holdfast.conformance.suites.jcs.documents import constructed_rows, number_of
from holdfast.vectors.derive import derive
from holdfast.vectors.fingerprints import Fingerprint, load
from holdfast.vectors.fingerprints.rows import BLOCK_ROWS, Row, row_at
from holdfast.vectors.taxonomy import Profile

KEY = "mesh.fingerprint"
# Requests are generated from the seed of the run, because the committed ones are public and an adapter may look them
# up. Each block of rows tries every field of one request.
_BLOCKS = 12
_METAS, _LARGE = 80, 12
# Far beyond what a buffer of one page holds, and well within a line of the protocol.
_MOST_BYTES = 12_000
_PLAIN: Mapping[str, Any] = {"envelope_version": 1, "destination_kind": "topic", "body": "aGVsbG8"}
# Numbers whose digits older libraries get wrong, and names whose order depends on their encoding, in canonical form.
_WRITTEN = (
    (b'{"a":1e23,"b":4.9e-324,"c":2E23}', b'{"a":1e+23,"b":5e-324,"c":2e+23}'),
    ('{"\ue000":1,"\U0001f600":2}'.encode(), '{"\U0001f600":2,"\ue000":1}'.encode()),
)
# A key with a digit of another alphabet, and a ULID of more than 128 bits: libraries take both.
_FOREIGN: tuple[Mapping[str, str], ...] = (
    {"destination_kind": "dm", "destination_ref": "a" * 63 + "\uff11"},
    {"reply_to": "8" + "0" * 25},
)
# How many characters of a request are reported.
_TOLD = 400


def _recorded(session: SuiteSession, record: Fingerprint) -> Iterator[tuple[str, str, int | None]]:
    """A verdict, its words and its record, if the answer is not the recorded one."""
    answer = session.call("fingerprint", record.request)
    if record.sha256 is None:
        if answer.outcome != "refused":
            yield "fail_open", f"{record.id}: has a fingerprint; it must be refused ({record.note})", answer.n
    elif answer.outcome == "refused":
        yield (
            "over_refusal",
            f"{record.id}: refused with {answer.reason}; it has a fingerprint ({record.note})",
            answer.n,
        )
    elif answer.value["fingerprint"] != record.sha256:
        yield (
            "wrong_reason",
            f"{record.id}: {answer.value['fingerprint']}, {record.sha256} is due ({record.note})",
            answer.n,
        )


def _fingerprint(bench: Bench, session: SuiteSession, request: Mapping[str, Any]) -> str:
    what = f"{_told(request)}: nothing is wrong with it"
    return str(bench.must_be(session.call("fingerprint", request), "accepted", what)["fingerprint"])


def _told(request: Mapping[str, Any]) -> str:
    text = str(request)
    return text if len(text) <= _TOLD else f"{text[:_TOLD]}… ({len(text)} characters)"


def _run(bench: Bench, *clauses: str) -> None:
    """Every request of vectors/mesh_delivery/data/fingerprints.jsonl that is about these clauses."""
    found: list[tuple[str, str, int | None]] = []
    with bench.session() as session:
        for record in load():
            if record.key == KEY and record.clause in clauses:
                found += _recorded(session, record)
    if found:
        # An open door is reported before a wrong digest.
        found.sort(key=lambda one: one[0] != "fail_open")
        bench.fail(found[0][0], listed([text for _, text, _ in found]), at=found[0][2])


@clause("MESH-4.4-F10")
def test_no_mutated_request_shares_a_fingerprint(bench: Bench) -> None:
    """Requests that differ in one field, and requests that are spelt otherwise."""
    rows = (row_at(number_of(bench.seed), index) for index in range(_BLOCKS * BLOCK_ROWS))
    by_fingerprint: dict[str, Row] = {}
    by_identity: dict[bytes, tuple[Row, str]] = {}
    with bench.session() as session:
        for row in rows:
            if row.key != KEY:
                continue
            found = _fingerprint(bench, session, row.request)
            other = by_fingerprint.setdefault(found, row)
            if other.identity != row.identity:
                told = (
                    f"{other.request} and {row.request} differ in {row.field or other.field} and have one fingerprint"
                )
                bench.fail("fail_open", told, received=found)
            equal, fingerprint = by_identity.setdefault(row.identity, (row, found))
            if fingerprint != found:
                told = f"{equal.request} and {row.request} are one request in two spellings"
                bench.report("wrong_reason", told, expected=fingerprint, received=found)


def _metas(bench: Bench) -> Iterator[tuple[bytes, bytes | None, bytes]]:
    """Objects without end: a document, its canonical form or None if it must be refused, and it without its defect."""
    for row, twin in constructed_rows(bench.seed):
        if twin.lstrip().startswith(b"{"):
            refused = row["refused_by"] & Profile.SAFE_INT.bit
            yield row["document"], None if refused else row["canonical"], twin


def requests_to_send(bench: Bench) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any] | None]]:
    """The committed requests, and others with any meta, each with its canonical form; None for what has none."""
    committed = (record for record in load() if record.key == KEY)
    yield from ((record.request, None if record.sha256 is None else record.request) for record in committed)
    plain = {**_PLAIN, "destination_ref": "alerts"}
    yield from (({**plain, **foreign}, None) for foreign in _FOREIGN)
    documents = [*_WRITTEN, *((document, form) for document, form, _ in islice(_metas(bench), _METAS))]
    for document, form in documents:
        canonical = None if form is None else {**plain, "meta": base64url(form)}
        yield {**plain, "meta": base64url(document)}, canonical


@clause("MESH-4.4-F7")
def test_constructed_metas_enter_in_the_form_of_their_construction(bench: Bench) -> None:
    """Any object in any disguise has the fingerprint of its canonical form, and no other object has it."""
    with bench.session() as session:
        plain = {**_PLAIN, "destination_ref": session.rand("topic")}
        # An implementation that frames otherwise fails elsewhere; here its metas are held against each other alone.
        framed = _fingerprint(bench, session, plain) == derive(KEY, plain)
        known: dict[str, bytes] = {}
        accepted = ((document, form) for document, form, _ in _metas(bench) if form not in (None, b"{}"))
        for document, form in islice(accepted, _METAS):
            assert form is not None
            found = _fingerprint(bench, session, {**plain, "meta": base64url(document)})
            due = _fingerprint(bench, session, request := {**plain, "meta": base64url(form)})
            if framed:
                due = derive(KEY, request)
            bench.same(found, due, "wrong_reason", f"meta {document!r} is {form!r}")
            if known.setdefault(found, form) != form:
                bench.fail("fail_open", f"metas {known[found]!r} and {form!r} have one fingerprint", received=found)


@clause("MESH-4.4-F13")
def test_constructed_metas_with_a_defect_are_refused(bench: Bench) -> None:
    """Each beside the same object without its defect, which must be accepted to count."""
    told = 0
    with bench.session() as session:
        plain = {**_PLAIN, "destination_ref": session.rand("topic")}
        refused = ((document, twin) for document, form, twin in _metas(bench) if form is None)
        for document, twin in islice(refused, _METAS):
            if twin != document:
                if session.call("fingerprint", {**plain, "meta": base64url(twin)}).outcome != "accepted":
                    continue
                told += 1
            answer = session.call("fingerprint", {**plain, "meta": base64url(document)})
            if answer.outcome != "refused":
                bench.fail("fail_open", f"meta {document!r}: has a fingerprint; it must be refused")
            if answer.reason != "META_INVALID":
                bench.report("wrong_reason", f"meta {document!r}: {answer.reason}, META_INVALID is due")
    if not told:
        bench.fail("not_reached", "no meta is accepted without its defect, so no refusal counts")


@clause("MESH-4.4-F9", "MESH-4.4-F10")
def test_large_fields_count_whole(bench: Bench) -> None:
    """Versions, names, metas and bodies of any size, each changed in one place anywhere."""
    with bench.session() as session:
        for number in range(_LARGE):
            # What is generated is no secret.
            way = Random(f"{bench.seed} {number}")  # noqa: S311
            version, size = way.randint(1, 2**53 - 2), way.randrange(1, _MOST_BYTES)
            body, at = bytearray(way.randbytes(size)), way.randrange(size)
            name, place = (
                "".join(way.choices("ab\u00e9\u20ac\U0001f4a1", k=size // 8 + 1)),
                way.randrange(size // 8 + 1),
            )
            members = [f'"{one}":{one}' for one in range(size // 16 + 1)]
            request = {
                "envelope_version": version,
                "destination_kind": way.choice(("topic", "queue")),
                "destination_ref": name,
                "meta": base64url(f"{{{','.join(members)}}}".encode()),
                "body": base64url(bytes(body)),
            }
            body[at] ^= 1 << way.randrange(8)
            members[way.randrange(len(members))] = '"x":0'
            changes = {
                "envelope_version": version + 1,
                "destination_ref": f"{name[:place]}c{name[place + 1 :]}",
                "meta": base64url(f"{{{','.join(members)}}}".encode()),
                "body": base64url(bytes(body)),
            }
            first = _fingerprint(bench, session, request)
            for field, value in changes.items():
                if _fingerprint(bench, session, {**request, field: value}) == first:
                    told = f"{_told(request)} and the same with another {field} have one fingerprint"
                    bench.fail("fail_open", told, received=first)


def _of(*numbers: int) -> tuple[list[str], list[str]]:
    """Every request that is about these clauses proves them."""
    clauses = [f"MESH-4.4-F{number}" for number in numbers]
    return clauses, clauses


TESTS = tabled(
    __name__,
    _run,
    # All fields at once, and versions.
    test_committed_fingerprints_of_framing=_of(1, 2),
    # Kinds and references.
    test_committed_fingerprints_of_destinations=_of(3, 4),
    # Ids in every spelling, and none.
    test_committed_fingerprints_of_replies=_of(5),
    # Priorities, and the default.
    test_committed_fingerprints_of_priorities=_of(6),
    # What RFC 8785 makes of meta.
    test_committed_fingerprints_of_metas=_of(7),
    # The spellings of no meta.
    test_committed_fingerprints_without_meta=_of(8),
    # Bytes that are no text, and texts that resemble fields.
    test_committed_fingerprints_of_bodies=_of(9, 10),
    # NUL, and metas that cannot be canonicalised without loss.
    test_committed_requests_without_a_fingerprint=_of(12, 13),
)
