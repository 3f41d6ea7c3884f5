"""Bytes that take the place of an object: some that cannot be imported, and some that say something else."""

from __future__ import annotations

import hashlib
from random import Random
from typing import Any

from holdfast.conformance.cases.values import from_base64url
from holdfast.conformance.suites.hx_sync.model import Blob, Segment, Tombstone
from holdfast.conformance.suites.hx_sync.operations import Bad, Lies
from holdfast.conformance.suites.hx_sync.permutations import Made
from holdfast.specs.strictjson import canonical
from holdfast.vectors.derive import derive

# An object of which a part is another: which of these it is depends on the part.
_ALTERED = frozenset({"OBJECT_MALFORMED", "FOREIGN_VAULT", "OBJECT_MISPLACED", "OBJECT_UNAUTHENTIC"})
_MALFORMED = frozenset({"OBJECT_MALFORMED"})


# What makes any object one that cannot be opened.
BENT = ("flipped", "cut", "longer", "empty")


def bent(how: str, data: bytes) -> tuple[bytes, Lies]:
    """These bytes so that no device can open them."""
    dice = Random(hashlib.sha256(data).digest())  # noqa: S311 - nothing is kept secret with it
    if how == "flipped":
        at = dice.randrange(len(data))
        return _bad(data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :], _ALTERED)
    if how == "cut":
        return _bad(data[: dice.randrange(1, len(data))], _ALTERED)
    if how == "longer":
        return _bad(data + dice.choice((b"\0", b"\n", data)), _ALTERED)
    return _bad(b"", _MALFORMED)


def damaged(how: str, made: Made, data: bytes, other: Made) -> tuple[bytes, Lies] | None:
    """What comes in the place of an object with these bytes, and what it says; None where that is not possible."""
    if how in BENT:
        return bent(how, data)
    if how == "of another":
        return _bad(other.data, frozenset({"OBJECT_MISPLACED"})) if other.data and other.key != made.key else None
    return _sealed(how, made, data)


def _sealed(how: str, made: Made, data: bytes) -> tuple[bytes, Lies] | None:
    """An object of the same id that is well sealed: with a malformed payload, or with the same payload."""
    label = hashlib.sha256(data + how.encode()).hexdigest()
    asked: dict[str, Any]
    if isinstance(made.says, Blob):
        if how != "replaced" or "bytes" not in made.args:
            return None
        sealed = from_base64url(derive("hx.blob", {"bytes": made.args["bytes"], "label": label}))
        return sealed, Lies(made.says, hashlib.sha256(sealed).hexdigest())
    if isinstance(made.says, Segment):
        payload: Any = made.says.batch
        asked = {"type": "segment", "id": made.args["segment_id"], "node_id": made.says.node_id}
    else:
        scope = {} if made.says.scope is None else {"node_id": made.says.scope}
        payload = {"start_ts": made.says.start_ts, "end_ts": made.says.end_ts, **scope}
        asked = {"type": "tombstone", "id": made.says.tombstone_id}
    text = canonical(payload).decode()
    if how == "replaced":
        sealed = _bytes({**asked, "label": label, "payload_text": text})
        return sealed, Lies(made.says, hashlib.sha256(sealed).hexdigest(), "another")
    broken = {"byte order mark": f"\ufeff{text}", "malformed": f"{text[:-1]},{_EXTRA}}}"}[how]
    reason = "TOMBSTONE_MALFORMED" if isinstance(made.says, Tombstone) else "SEGMENT_MALFORMED"
    return _bad(_bytes({**asked, "label": label, "payload_text": broken}), frozenset({reason}))


# A member that is no list, in any payload.
_EXTRA = '"extra":1'


def _bytes(asked: dict[str, Any]) -> bytes:
    return from_base64url(derive("hx.object", asked))


def _bad(data: bytes, reasons: frozenset[str]) -> tuple[bytes, Lies]:
    return data, Lies(Bad(reasons), hashlib.sha256(data).hexdigest())
