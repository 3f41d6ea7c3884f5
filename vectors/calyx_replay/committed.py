"""Committed envelopes of `calyx-replay`: the model of a record, reading its line, and the checks.

`vectors/calyx_replay/data/envelopes.jsonl` holds one JSON object a line; its shape is
`specs/schemas/envelope.schema.json`. A record gives the bytes of an envelope as they come over the wire, and its key;
or it says why they must be refused. Each check returns problems as text and does not stop at the first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.vectors.calyx_replay.derive import VARIANTS
from holdfast.vectors.derive import derive
from holdfast.vectors.lines import bytes_of, one_change, read_lines, repeated_ids, unlike_others, wrong_terms
from holdfast.vectors.spelling import encoded

FILE = "envelopes.jsonl"
FILES = frozenset({FILE})
PLACE = f"vectors/calyx_replay/data/{FILE}"
SCHEMA = "envelope"
# The derivation that makes a new envelope. All others change the envelope of the twin.
FROM_THE_BEGINNING = "calyx.envelope"
_MALFORMED, _UNSIGNED = "ENVELOPE_MALFORMED", "SIGNATURE_INVALID"


@dataclass(frozen=True, slots=True)
class EnvelopeVector:
    """The bytes of one envelope, and its key or the reasons to refuse it.

    `replay_key` is None for what must be refused: with one of `reasons`, beside its `twin`, which is accepted. The
    bytes are what `derivation`, a name that `vectors.derive` knows, gives for `of`; unless it makes an envelope from
    the beginning, `of` is completed by the bytes of the twin as `envelope`.
    """

    id: str
    contract: str
    clause: str
    envelope: bytes
    replay_key: str | None
    reasons: tuple[str, ...]
    derivation: str
    of: Mapping[str, Any]
    twin: str | None
    note: str


def read(data: bytes, *, place: str) -> list[EnvelopeVector]:
    """The records of one file's bytes. `place` is its name in errors (SpecError)."""
    return read_lines(data, _record, schema=SCHEMA, place=place)


def _record(raw: Mapping[str, Any], place: str) -> EnvelopeVector:
    return EnvelopeVector(
        **{**raw, "envelope": bytes_of(raw["envelope"], place), "reasons": tuple(raw["reasons"])},
    )


def problems(files: Mapping[str, bytes]) -> Iterable[str]:
    """See `holdfast.vectors.lint.Committed`."""
    yield from unlike_others(files[FILE], schema=SCHEMA, place=PLACE)
    records = read(files[FILE], place=PLACE)
    yield from lint_envelopes(records)
    spelt = {record.of.get("how") for record in records if record.derivation == "calyx.variant"}
    for how in sorted(VARIANTS.keys() - spelt):
        yield f"no envelope is spelt in the way {how}"


def lint_envelopes(records: Sequence[EnvelopeVector]) -> Iterable[str]:
    """Every problem of envelope vectors: among themselves, with `holdfast.vectors.derive`, with their contracts."""
    if not records:
        yield "there are no envelope records, so nothing is shown"
    yield from repeated_ids(records)
    by_id = {record.id: record for record in records}
    for record in records:
        yield from _derived(record, by_id)
        yield from _key(record) if record.replay_key is not None else _refusal(record, by_id)
        yield from wrong_terms(record, f"is made by {record.derivation}", record.derivation, record.reasons)
    yield from _sameness(records)


def _derived(record: EnvelopeVector, by_id: Mapping[str, EnvelopeVector]) -> Iterable[str]:
    asked = dict(record.of)
    if record.derivation != FROM_THE_BEGINNING:
        twin = by_id.get(record.twin or "")
        if twin is None:
            yield f"{record.id}: {record.derivation} changes the envelope of a twin, and there is none"
            return
        asked["envelope"] = encoded(twin.envelope)
    try:
        found = derive(record.derivation, asked)
    except ValueError as error:
        yield f"{record.id}: {record.derivation} makes no envelope of it: {error}"
        return
    if found != encoded(record.envelope):
        yield f"{record.id}: {record.derivation} makes other bytes, {found}"


def _key(record: EnvelopeVector) -> Iterable[str]:
    found = derive("calyx.replay_key", encoded(record.envelope))
    if found != record.replay_key:
        yield f"{record.id}: calyx.replay_key gives {found}, the record says {record.replay_key}"
    if hashlib.sha256(record.envelope).hexdigest() != record.replay_key:
        yield f"{record.id}: its key is not the SHA-256 of its bytes"
    if record.reasons or record.twin is not None:
        yield f"{record.id}: has a key, so it needs neither reasons nor a twin"


def _refusal(record: EnvelopeVector, by_id: Mapping[str, EnvelopeVector]) -> Iterable[str]:
    if not record.reasons:
        yield f"{record.id}: has neither a key nor a reason to be refused"
    elif set(record.reasons) != _reasons(record):
        yield f"{record.id}: {record.derivation} makes what is refused with {' or '.join(sorted(_reasons(record)))}"
    twin = by_id.get(record.twin or "")
    if twin is None:
        yield f"{record.id}: a refusal without a twin proves nothing; name an envelope with a key beside it"
    elif twin.replay_key is None:
        yield f"{record.id}: its twin {twin.id} must have a key"
    elif record.derivation == FROM_THE_BEGINNING and not one_change(record.of, twin.of):
        yield f"{record.id}: differs from its twin {twin.id} in more than one member"


def _reasons(record: EnvelopeVector) -> set[str]:
    """The derivations sign what they make, but for a signature that is the change itself, or an old one."""
    if record.derivation != "calyx.malleated" and record.of.get("resign", True):
        return {_MALFORMED}
    # A signature that is too long is none, and no canonical spelling either.
    return {_UNSIGNED, _MALFORMED} if record.of.get("how") == "trailing-bytes" else {_UNSIGNED}


def _sameness(records: Sequence[EnvelopeVector]) -> Iterable[str]:
    first: dict[bytes, EnvelopeVector] = {}
    for record in records:
        other = first.setdefault(record.envelope, record)
        if other is not record:
            yield f"{record.id}: has the bytes of {other.id}, so it shows nothing"
