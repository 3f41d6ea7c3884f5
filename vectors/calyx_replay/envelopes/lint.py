"""Checks of the committed envelope vectors. Each returns problems as text and does not stop at the first."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence

from holdfast.specs.errors import SpecError
from holdfast.specs.loader import load_terms
from holdfast.vectors.calyx_replay.envelopes.record import EnvelopeVector
from holdfast.vectors.derive import derive
from holdfast.vectors.lines import one_change, repeated_ids

# The derivation that makes a new envelope. All others change the envelope of the twin.
FROM_THE_BEGINNING = "calyx.envelope"
_MALFORMED, _UNSIGNED = "ENVELOPE_MALFORMED", "SIGNATURE_INVALID"


def lint_envelopes(records: Sequence[EnvelopeVector]) -> Iterable[str]:
    """Every problem of envelope vectors: among themselves, with `holdfast.vectors.derive`, with their contracts."""
    if not records:
        yield "there are no envelope records, so nothing is shown"
    yield from repeated_ids(records)
    by_id = {record.id: record for record in records}
    for record in records:
        yield from _derived(record, by_id)
        yield from _key(record) if record.replay_key is not None else _refusal(record, by_id)
        yield from _terms(record)
    yield from _sameness(records)


def travelling(data: bytes) -> str:
    """Bytes as the contract's methods take them: base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _derived(record: EnvelopeVector, by_id: Mapping[str, EnvelopeVector]) -> Iterable[str]:
    asked = dict(record.of)
    if record.derivation != FROM_THE_BEGINNING:
        twin = by_id.get(record.twin or "")
        if twin is None:
            yield f"{record.id}: {record.derivation} changes the envelope of a twin, and there is none"
            return
        asked["envelope"] = travelling(twin.envelope)
    try:
        found = derive(record.derivation, asked)
    except ValueError as error:
        yield f"{record.id}: {record.derivation} makes no envelope of it: {error}"
        return
    if found != travelling(record.envelope):
        yield f"{record.id}: {record.derivation} makes other bytes, {found}"


def _key(record: EnvelopeVector) -> Iterable[str]:
    found = derive("calyx.replay_key", travelling(record.envelope))
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


def _terms(record: EnvelopeVector) -> Iterable[str]:
    try:
        contract = load_terms(record.contract)
    except SpecError as error:
        yield f"{record.id}: {error}"
        return
    if record.clause not in contract.clauses:
        yield f"{record.id}: is about clause {record.clause}, which contract {record.contract} does not have"
    word = record.derivation.partition(".")[0]
    if not (record.id.startswith(f"{word}-") and record.contract.startswith(f"{word}-")):
        yield f"{record.id}: is made by {record.derivation}, so its id and its contract begin with {word}-"
    for reason in record.reasons:
        if reason not in contract.reasons:
            yield f"{record.id}: is refused with {reason}, which contract {record.contract} does not know"


def _sameness(records: Sequence[EnvelopeVector]) -> Iterable[str]:
    first: dict[bytes, EnvelopeVector] = {}
    for record in records:
        other = first.setdefault(record.envelope, record)
        if other is not record:
            yield f"{record.id}: has the bytes of {other.id}, so it shows nothing"
