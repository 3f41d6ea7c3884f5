"""Checks for errors in the canonicalisation vectors that no single record shows.

Each check returns problems as text and does not stop at the first. No code here canonicalises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from holdfast.specs.loader import load_terms
from holdfast.specs.model import Contract
from holdfast.vectors.jcs.committed.build import records
from holdfast.vectors.jcs.nearmiss import PLACE, NearMiss, data, load_near_misses
from holdfast.vectors.jcs.nearmiss import write as write_near_misses
from holdfast.vectors.lines import repeated_ids
from holdfast.vectors.record import Canonical, Refused, Vector
from holdfast.vectors.taxonomy import Category, Profile

CONTRACT = "jcs"
# A refused document and its twin differ in one place, of at most this number of bytes: an escaped surrogate pair.
MAX_DEFECT = 12
_NUMBER = frozenset(b"0123456789+-.eE")
# Clauses that no single document can show.
WITHOUT_VECTORS = {
    "JCS-PURE-01": "it is about two calls",
    "JCS-REQ-01": "it is about arguments that are no document",
}


def problems() -> Iterable[str]:
    """See `holdfast.vectors.lint.Committed`."""
    near_misses = load_near_misses()
    yield from _near_miss_file(near_misses)
    yield from lint_records(records(), contract=load_terms(CONTRACT), near_misses=near_misses)


def lint_records(
    records: Sequence[Vector], *, contract: Contract, near_misses: Mapping[str, NearMiss]
) -> Iterable[str]:
    """Every problem of canonicalisation vectors among themselves, with their contract and with the near misses."""
    if not records:
        yield "there are no records, so nothing is shown"
    yield from _identity(records)
    yield from _order(records)
    yield from _expectations(records, contract)
    answered = [record for record in records if set(record.expected) == set(Profile)]
    yield from _twins(answered)
    yield from _idempotence(answered)
    yield from _clauses(records, contract)
    yield from _kills(records, near_misses)


def _near_miss_file(near_misses: Mapping[str, NearMiss]) -> Iterable[str]:
    if data().read_bytes() != write_near_misses(near_misses):
        yield f"{PLACE}: is not in the order and layout in which it is written"


def _identity(records: Sequence[Vector]) -> Iterable[str]:
    yield from repeated_ids(records)
    for record in records:
        if not record.id.startswith(f"{record.category.value}-"):
            yield f"{record.id}: is of category {record.category.value}; an id begins with its category"
        for member in ("clause", "source", "note"):
            if not getattr(record, member).strip():
                yield f"{record.id}: has no {member}"


def _order(records: Sequence[Vector]) -> Iterable[str]:
    place = {category: index for index, category in enumerate(Category)}
    for before, after in pairwise(records):
        if place[before.category] > place[after.category]:
            yield f"{after.id}: stands behind {before.id}; records stand in the order of the categories"
    missing = set(Category) - {record.category for record in records}
    if missing:
        yield f"no record is of category {', '.join(sorted(category.value for category in missing))}"


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


def _kills(records: Sequence[Vector], near_misses: Mapping[str, NearMiss]) -> Iterable[str]:
    ids = {record.id for record in records}
    for name, near_miss in near_misses.items():
        if not near_miss.killed_by:
            yield f"near miss {name}: no record kills it"
        for identifier in near_miss.killed_by:
            if identifier not in ids:
                yield f"near miss {name}: is killed by {identifier}, which does not exist"
    for record in records:
        if list(record.kills) != sorted(set(record.kills)):
            yield f"{record.id}: its near misses are not sorted, or not unique"
        for name in record.kills:
            if name not in near_misses:
                yield f"{record.id}: kills {name}, which is no near miss"
            elif record.id not in near_misses[name].killed_by:
                yield f"{record.id}: claims to kill {name}, which was not measured"
