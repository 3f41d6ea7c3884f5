"""The rows of mutated requests, one at a time: the base, the change, and which rows are equal.

Rows come in blocks: a base request of each contract, its other spellings, and each of its fields changed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, unique
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from holdfast.vectors.fingerprints.requests import (
    Draw,
    Drawn,
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


@unique
class _Change(Enum):
    """What a row does to its base."""

    SPELLING = "spelling"
    FIELD = "field"


@dataclass(frozen=True, slots=True)
class _Slot:
    """One place in a block: a key, and what is changed. A spelling's number is its way, 0 is the plain one."""

    key: str
    change: _Change
    field: str
    way: int = 0


def _slots(key: str, fields: tuple[str, ...], ways: int) -> tuple[_Slot, ...]:
    spellings = tuple(_Slot(key, _Change.SPELLING, "" if way == 0 else f"spelling-{way}", way) for way in range(ways))
    return (*spellings, *(_Slot(key, _Change.FIELD, field) for field in fields))


COVERED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "mesh.fingerprint": _MESH_FIELDS,
        "rs4a.logical_request_key": _LOGICAL_FIELDS,
        "rs4a.replay_key": _REPLAY_FIELDS,
    }
)
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
    slot = _BLOCK[place]
    drawn = _drawn(seed, index, slot, _bases(seed, number))
    return Row(index, number, slot.key, slot.field, identity(drawn.fields, COVERED[slot.key]), drawn.request)


# Rows are mostly asked for in order, and a block has one pair of bases.
@lru_cache(maxsize=4)
def _bases(seed: int, number: int) -> dict[str, dict[str, str]]:
    return {
        "mesh": mesh_base(Draw(seed, 2 * number), number),
        "rs4a": rs4a_base(Draw(seed, 2 * number + 1), number),
    }


def _drawn(seed: int, index: int, slot: _Slot, bases: Mapping[str, Mapping[str, str]]) -> Drawn:
    family = slot.key.partition(".")[0]
    spelt, mutated = (mesh_spelt, mesh_mutated) if family == "mesh" else (rs4a_spelt, rs4a_mutated)
    if slot.change is _Change.SPELLING:
        return spelt(bases[family], slot.way)
    # Places of mutations are negative, those of bases are not.
    return spelt(mutated(bases[family], slot.field, Draw(seed, -1 - index)), 0)
