"""The committed canonicalisation vectors: what is wrong with their files, and with records among themselves.

Each check returns problems as text and does not stop at the first. Expected bytes and reasons are typed by hand; the
reference, asked through frames like any other runner, has to give the same.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Mapping, Sequence

from holdfast.reports.plain import bytes_as_text, difference
from holdfast.specs.loader import load_terms
from holdfast.specs.model import Contract
from holdfast.vectors.jcs.frames import Status, run
from holdfast.vectors.jcs.sdk import find, reference
from holdfast.vectors.lines import read_json, repeated_ids, unlike_others
from holdfast.vectors.record import SCHEMA, Canonical, Refused, Vector, read
from holdfast.vectors.taxonomy import Category, Profile

# The near misses: canonicalisers that are right but for one habit, and the committed records that show it.
# `data/nearmiss.json` says what each one does and which records it gets wrong, as measured with a program for each of
# them when the records were written. A record's `kills` comes from there.

DATA = "nearmiss.json"
PLACE = f"vectors/jcs/data/{DATA}"


# By the name of a near miss: the ids of the records that it answers wrongly.
Killers = Mapping[str, Sequence[str]]


def read_near_misses(data: bytes) -> Killers:
    """The killers of every near miss, of the bytes of the file. Raises SpecError if they do not fit the schema."""
    return {name: entry["killed_by"] for name, entry in read_json(data, "jcs", DATA, "near-misses").items()}


def _in_order(data: bytes) -> bytes:
    raw = {name: {"what": entry["what"], "killed_by": entry["killed_by"]} for name, entry in json.loads(data).items()}
    return json.dumps(dict(sorted(raw.items())), indent=1).encode("ascii") + b"\n"


CONTRACT = "jcs"
FILES = frozenset({DATA, *(f"{category.value}.jsonl" for category in Category)})
# A refused document and its twin differ in one place, of at most this number of bytes: an escaped surrogate pair.
MAX_DEFECT = 12
_NUMBER = frozenset(b"0123456789+-.eE")
# Clauses that no single document can show.
WITHOUT_VECTORS = {
    "JCS-PURE-01": "it is about two calls",
    "JCS-REQ-01": "it is about arguments that are no document",
}
# The name of a record of RFC 8785 appendix B says the bits of its double; the literal has 17 digits.
_BITS = re.compile(f"{Category.NUMBER_SHORTEST.value}-b-([0-9a-f]{{16}})")
# Deeper than Python recurses by itself.
_DEEP = 1000
# Seconds that the reference may take for one document.
_DEADLINE_S = 60.0


def problems(files: Mapping[str, bytes]) -> Iterable[str]:
    """See `holdfast.vectors.lint.Committed`."""
    near_misses = read_near_misses(files[DATA])
    if files[DATA] != _in_order(files[DATA]):
        yield f"{PLACE}: is not in the order and layout of near misses"
    records: list[Vector] = []
    for category in Category:
        name = f"{category.value}.jsonl"
        place = f"vectors/jcs/data/{name}"
        yield from unlike_others(files[name], schema=SCHEMA, place=place)
        found = read(files[name], place=place)
        yield from (f"{each.id}: stands in {place}" for each in found if each.category is not category)
        records += found
    yield from lint_records(records, contract=load_terms(CONTRACT), near_misses=near_misses)
    yield from wrong_answers(records)


def wrong_answers(records: Sequence[Vector]) -> Iterable[str]:
    """Expected answers that the reference does not give."""
    documents = [record.document for record in records]
    for profile in Profile:
        answers = run(find(reference(profile)).command, documents, deadline=_DEADLINE_S)
        for record, (status, body) in zip(records, answers, strict=True):
            expected = record.expected[profile]
            accepted = isinstance(expected, Canonical)
            due = expected.body if isinstance(expected, Canonical) else expected.reason.encode()
            # After a reason stands the place of the defect.
            said = body if status is Status.CANONICAL else body.partition(b" ")[0]
            if said != due or (status is Status.CANONICAL) is not accepted:
                told = f"{status} {bytes_as_text(said, most=80)}; {difference(due, said)}"
                yield f"{record.id}: expects {bytes_as_text(due, most=80)} in {profile}, the reference says {told}"


def lint_records(records: Sequence[Vector], *, contract: Contract, near_misses: Killers) -> Iterable[str]:
    """Every problem of canonicalisation vectors among themselves, with their contract and with the near misses."""
    if not records:
        yield "there are no records, so nothing is shown"
    yield from _identity(records)
    yield from _complete(records, contract)
    yield from _expectations(records, contract)
    answered = [record for record in records if set(record.expected) == set(Profile)]
    yield from _twins(answered)
    yield from _idempotence(answered)
    yield from _clauses(records, contract)
    yield from _kills(records, near_misses)


def _identity(records: Sequence[Vector]) -> Iterable[str]:
    yield from repeated_ids(records)
    for record in records:
        if not record.id.startswith(f"{record.category.value}-"):
            yield f"{record.id}: is of category {record.category.value}; an id begins with its category"
        for member in ("clause", "source", "note"):
            if not getattr(record, member).strip():
                yield f"{record.id}: has no {member}"
        bits = _BITS.fullmatch(record.id)
        if bits and record.document != b"[%.16e]" % struct.unpack(">d", bytes.fromhex(bits[1]))[0]:
            yield f"{record.id}: its literal is not that of its bits with 17 digits"


def _complete(records: Sequence[Vector], contract: Contract) -> Iterable[str]:
    missing = set(Category) - {record.category for record in records}
    if missing:
        yield f"no record is of category {', '.join(sorted(category.value for category in missing))}"
    floor = contract.parameters["depth_floor"].value
    for bracket in (b"[", b"{"):
        levels = {record.document.count(bracket) for record in records if record.category is Category.SIZE}
        if floor not in levels or max(levels, default=0) < _DEEP:
            yield f"no record of category P15 has {floor} {bracket.decode()}, or none has {_DEEP} of them"


def _expectations(records: Sequence[Vector], contract: Contract) -> Iterable[str]:
    for record in records:
        if set(record.expected) != set(Profile):
            yield f"{record.id}: expected an answer of each profile, found {', '.join(sorted(record.expected))}"
            continue
        core = record.expected[Profile.CORE]
        if record.category.refused != isinstance(core, Refused):
            yield f"{record.id}: core must {'refuse' if record.category.refused else 'accept'} this category"
        if len({answer.body for answer in record.expected.values() if isinstance(answer, Canonical)}) > 1:
            yield f"{record.id}: two profiles accept it with different bytes"
        for profile, answer in record.expected.items():
            if isinstance(answer, Refused) and answer.reason not in contract.reasons:
                yield f"{record.id}: {profile} refuses with {answer.reason}, which contract {CONTRACT} does not know"
            if isinstance(core, Refused) and answer != core:
                yield f"{record.id}: core refuses it, {profile} must refuse it for the same reason"
        if record.category is Category.NOT_CANONICAL and record.canonical == record.document:
            yield f"{record.id}: is its own canonical form, so it is not of category {record.category.value}"


def _twins(records: Sequence[Vector]) -> Iterable[str]:
    by_id = {record.id: record for record in records}
    for record in records:
        if not record.refused_by:
            if record.twin is not None:
                yield f"{record.id}: is accepted by all profiles, so it needs no twin"
            continue
        twin = by_id.get(record.twin or "")
        if record.twin is None:
            yield f"{record.id}: a refusal without a twin proves nothing; name the accepted record beside it"
        elif twin is None:
            yield f"{record.id}: its twin {record.twin} does not exist"
        elif twin.refused_by & record.refused_by:
            yield f"{record.id}: its twin {twin.id} is refused by a profile that refuses it too"
        elif not _one_defect(record.document, twin.document, record.category):
            yield f"{record.id}: differs from its twin {twin.id} in more than one small place"


def _one_defect(document: bytes, twin: bytes, category: Category) -> bool:
    """Whether two documents differ in one place: a few bytes, the digits of one number, or the encoding of all."""
    if document == twin:
        return False
    if category is Category.ENCODING and document in _encodings(twin):
        return True
    left, right = _difference(document, twin)
    if max(len(left), len(right)) <= MAX_DEFECT:
        return True
    return _NUMBER.issuperset(left) and _NUMBER.issuperset(right)


def _encodings(document: bytes) -> set[bytes]:
    text = document.decode("utf-8")
    plain = {text.encode(name) for name in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")}
    marked = {("\ufeff" + text).encode(name) for name in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")}
    return plain | marked


def _difference(left: bytes, right: bytes) -> tuple[bytes, bytes]:
    """The rest of both without their common beginning and end."""
    shorter = min(len(left), len(right))
    start = next((at for at in range(shorter) if left[at] != right[at]), shorter)
    left, right = left[start:], right[start:]
    shorter = min(len(left), len(right))
    end = next((at for at in range(shorter) if left[-1 - at] != right[-1 - at]), shorter)
    return left[: len(left) - end], right[: len(right) - end]


def _idempotence(records: Sequence[Vector]) -> Iterable[str]:
    known: dict[bytes, Vector] = {}
    for record in records:
        other = known.setdefault(record.document, record)
        if other.expected != record.expected:
            yield f"{record.id}: has the document of {other.id}, and other expectations"
    for record in records:
        canonical = None if record.canonical is None else known.get(record.canonical)
        if canonical is None:
            continue
        if canonical.canonical != canonical.document:
            yield f"{record.id}: its canonical form is the document of {canonical.id}, which is not canonical there"
        elif canonical.refused_by & ~record.refused_by:
            yield f"{record.id}: a profile accepts it and refuses its canonical form, {canonical.id}"


def _clauses(records: Sequence[Vector], contract: Contract) -> Iterable[str]:
    shown = {record.clause for record in records}
    for record in records:
        if record.clause not in contract.clauses:
            yield f"{record.id}: is about clause {record.clause}, which contract {CONTRACT} does not have"
    for clause in contract.clauses:
        if clause in WITHOUT_VECTORS and clause in shown:
            yield f"clause {clause}: has vectors, though it is said to have none; drop one of the two"
        if clause not in WITHOUT_VECTORS and clause not in shown:
            yield f"clause {clause}: no vector is about it; write one, or say why there is none"
    for clause in WITHOUT_VECTORS.keys() - contract.clauses.keys():
        yield f"clause {clause}: is said to have no vectors, and does not exist"


def _kills(records: Sequence[Vector], near_misses: Killers) -> Iterable[str]:
    ids = {record.id for record in records}
    measured: dict[str, set[str]] = {}
    for name, killers in near_misses.items():
        if not killers:
            yield f"near miss {name}: no record kills it"
        for identifier in killers:
            measured.setdefault(identifier, set()).add(name)
            if identifier not in ids:
                yield f"near miss {name}: is killed by {identifier}, which does not exist"
    for record in records:
        if list(record.kills) != sorted(set(record.kills)):
            yield f"{record.id}: its near misses are not sorted, or not unique"
        for name in sorted(measured.get(record.id, set()) - set(record.kills)):
            yield f"{record.id}: kills {name}, as was measured, and does not say so"
        for name in record.kills:
            if name not in near_misses:
                yield f"{record.id}: kills {name}, which is no near miss"
            elif record.id not in near_misses[name]:
                yield f"{record.id}: claims to kill {name}, which was not measured"
