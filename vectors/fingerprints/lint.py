"""Checks of the committed fingerprint vectors. Each returns problems as text and does not stop at the first."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from holdfast.vectors.derive import derive
from holdfast.vectors.fingerprints.record import FILE, SCHEMA, Fingerprint, read
from holdfast.vectors.lines import one_change, repeated_ids, unlike_others, wrong_terms


def lint_file(files: Mapping[str, bytes], contract: str) -> Iterable[str]:
    """See `holdfast.vectors.lint.Committed.problems`: of the one file, whose records are all of this contract."""
    place = f"vectors/{contract.replace('-', '_')}/data/{FILE}"
    yield from unlike_others(files[FILE], schema=SCHEMA, place=place)
    records = read(files[FILE], place=place)
    yield from lint_fingerprints(records)
    for record in records:
        if record.contract != contract:
            yield f"{record.id}: is of {record.contract}, and stands in {place}"


def lint_fingerprints(records: Sequence[Fingerprint]) -> Iterable[str]:
    """Every problem of fingerprint vectors: among themselves, with `holdfast.vectors.derive`, with their contracts."""
    if not records:
        yield "there are no fingerprint records, so nothing is shown"
    yield from repeated_ids(records)
    by_id = {record.id: record for record in records}
    for record in records:
        yield from _derived(record)
        yield from _refusal(record, by_id.get(record.twin or ""))
        yield from wrong_terms(record, f"its key is {record.key}", record.key)
    yield from _sameness(records, by_id)


def _derived(record: Fingerprint) -> Iterable[str]:
    try:
        found = derive(record.key, record.request)
    except ValueError as error:
        if record.sha256 is not None:
            yield f"{record.id}: {record.key} has no value for it: {error}"
        return
    if record.sha256 is None:
        yield f"{record.id}: must be refused, and {record.key} gives it {found}"
    elif found != record.sha256:
        yield f"{record.id}: {record.key} gives {found}, the record says {record.sha256}"


def _refusal(record: Fingerprint, twin: Fingerprint | None) -> Iterable[str]:
    if (record.preimage is None) != (record.sha256 is None):
        yield f"{record.id}: has a preimage without a digest, or a digest without a preimage"
    elif record.preimage is not None:
        if hashlib.sha256(record.preimage).hexdigest() != record.sha256:
            yield f"{record.id}: its digest is not that of its preimage"
        if record.twin is not None:
            yield f"{record.id}: has a fingerprint, so it needs no twin"
    elif twin is None:
        yield f"{record.id}: a refusal without a twin proves nothing; name a record with a fingerprint beside it"
    elif twin.sha256 is None or twin.key != record.key:
        yield f"{record.id}: its twin {twin.id} must have a {record.key}"
    elif not one_change(record.request, twin.request):
        yield f"{record.id}: differs from its twin {twin.id} in more than one member"


def _sameness(records: Sequence[Fingerprint], by_id: dict[str, Fingerprint]) -> Iterable[str]:
    """Check that records share a fingerprint exactly if they declare it."""
    first: dict[tuple[str, str], Fingerprint] = {}
    for record in records:
        if record.sha256 is None:
            continue
        other = first.setdefault((record.key, record.sha256), record)
        named = by_id.get(record.same_as or "")
        if record.same_as is None and other is not record:
            yield f"{record.id}: has the fingerprint of {other.id} and does not say so"
        elif record.same_as is not None and (named is None or named.sha256 != record.sha256):
            yield f"{record.id}: must have the fingerprint of {record.same_as}, and has another"
        elif named is not None and named.request == record.request:
            yield f"{record.id}: has the request of {named.id}, so it shows nothing"
        elif named is not None and not one_change(record.request, named.request):
            yield f"{record.id}: differs from {named.id} in more than one member"
