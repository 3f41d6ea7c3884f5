"""The rows of mutated requests, one at a time: the base, the change, and which rows are equal.

Rows come in blocks: a base request of each contract, its other spellings, and each of its fields changed once.
Every row is a pure function of (seed, index).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from holdfast.vectors.fingerprints.requests import (
    Draw,
    identity,
    mesh_base,
    mesh_mutated,
    mesh_spelt,
    rs4a_base,
    rs4a_mutated,
    rs4a_spelt,
)

_MESH_FIELDS = (
    "envelope_version",
    "destination_kind",
    "destination_ref",
    "reply_to",
    "priority",
    "meta",
    "body",
)
_LOGICAL_FIELDS = ("operation", "canonical_target", "artifact_hash", "owner_or_approval_binding")
_REPLAY_FIELDS = ("protocol_version", *_LOGICAL_FIELDS, "deployed_artifact_hash", "run_id")
# Neighbours in the hashed bytes: moving a character over the border must change the key.
_MESH_BORDERS = ("destination_ref/reply_to",)
_RS4A_BORDERS = ("operation/canonical_target", "owner_or_approval_binding/run_id")


# One place in a block: a key, what is changed, and for the base the way in which it is spelt; 0 is the plain one.
_Slot = tuple[str, str, int | None]


def _slots(key: str, fields: tuple[str, ...], ways: int) -> Iterator[_Slot]:
    yield from ((key, f"spelling-{way}" if way else "", way) for way in range(ways))
    yield from ((key, field, None) for field in fields)


COVERED: Mapping[str, tuple[str, ...]] = {
    "mesh.fingerprint": _MESH_FIELDS,
    "rs4a.logical_request_key": _LOGICAL_FIELDS,
    "rs4a.replay_key": _REPLAY_FIELDS,
}
_BLOCK = (
    *_slots("mesh.fingerprint", (*_MESH_FIELDS, *_MESH_BORDERS), ways=3),
    *_slots("rs4a.logical_request_key", (*_REPLAY_FIELDS, *_RS4A_BORDERS), ways=2),
    *_slots("rs4a.replay_key", (*_REPLAY_FIELDS, *_RS4A_BORDERS), ways=2),
)
BLOCK_ROWS = len(_BLOCK)


@dataclass(frozen=True, slots=True)
class Row:
    """One request and its origin: `base` is the number of its block, `field` what was changed, empty for the base.

    Two rows of one key have the same `identity` exactly if their requests are equal in what the key covers.
    """

    index: int
    base: int
    key: str
    field: str
    identity: bytes
    request: Mapping[str, Any]


def row_at(seed: int, index: int) -> Row:
    """One row, rebuilt alone."""
    number, place = divmod(index, BLOCK_ROWS)
    key, field, way = _BLOCK[place]
    fields: Mapping[str, str] = _bases(seed, number)[key.partition(".")[0]]
    spelt, mutated = (mesh_spelt, mesh_mutated) if key.startswith("mesh.") else (rs4a_spelt, rs4a_mutated)
    if way is None:
        # Places of mutations are negative, those of bases are not.
        fields = mutated(fields, field, Draw(seed, -1 - index))
    return Row(index, number, key, field, identity(fields, COVERED[key]), spelt(fields, way or 0))


# Rows are mostly asked for in order, and a block has one pair of bases.
@lru_cache(maxsize=4)
def _bases(seed: int, number: int) -> dict[str, dict[str, str]]:
    return {
        "mesh": mesh_base(Draw(seed, 2 * number), number),
        "rs4a": rs4a_base(Draw(seed, 2 * number + 1), number),
    }
