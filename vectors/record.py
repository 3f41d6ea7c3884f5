"""Committed canonicalisation vectors: the model of a record, and reading its line.

`vectors/jcs/data/<category>.jsonl` holds one JSON object a line; its shape is `specs/schemas/vector.schema.json`.
Bytes travel as lower-case hexadecimal, because half of the documents are not text. A record says what each profile
answers: canonical bytes, or a refusal and its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from holdfast.specs.errors import SpecError
from holdfast.vectors.lines import bytes_of, read_lines, with_own_ids
from holdfast.vectors.taxonomy import Category, Profile

SCHEMA = "vector"


@dataclass(frozen=True, slots=True)
class Canonical:
    """The profile accepts the document, and this is its canonical form."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """The profile refuses the document, for this reason of the contract."""

    reason: str


Expected: TypeAlias = Canonical | Refused


@dataclass(frozen=True, slots=True)
class Vector:
    """One document and what every profile must answer.

    `clause` is the clause of the contract that the document is about, `kills` the near-miss serialisers (tests) that
    answer wrongly to it, `source` where it comes from, `twin` the accepted record that differs from a refused one in
    its one defect only.
    """

    id: str
    category: Category
    document: bytes
    expected: Mapping[Profile, Expected]
    clause: str
    kills: tuple[str, ...]
    source: str
    twin: str | None
    note: str

    @property
    def canonical(self) -> bytes | None:
        """The canonical bytes in `core`; None if it refuses the document."""
        answer = self.expected[Profile.CORE]
        return answer.body if isinstance(answer, Canonical) else None

    @property
    def refused_by(self) -> int:
        """The profiles that refuse the document, as a set of `Profile.bit`."""
        return sum(profile.bit for profile, answer in self.expected.items() if isinstance(answer, Refused))


@cache
def load(name: str = "jcs") -> tuple[Vector, ...]:
    """Every record of `vectors/NAME/data`, in the order of the categories and of the lines.

    Raises SpecError for a line that does not fit the schema, a repeated id, and for a set with no records.
    """
    folder = files("holdfast.vectors").joinpath(name, "data")
    records: list[Vector] = []
    for category in Category:
        resource = folder.joinpath(f"{category.value}.jsonl")
        if resource.is_file():
            records += read(resource.read_bytes(), place=f"vectors/{name}/data/{category.value}.jsonl")
    if not records:
        raise SpecError(f"expected vectors in vectors/{name}/data, found none; reinstall holdfast")
    return with_own_ids(records, f"vectors/{name}/data")


def read(data: bytes, *, place: str) -> list[Vector]:
    """The records of one file's bytes. `place` is its name in errors (SpecError)."""
    return read_lines(data, _record, schema=SCHEMA, place=place)


def _record(raw: Mapping[str, Any], place: str) -> Vector:
    return Vector(
        id=raw["id"],
        category=Category(raw["category"]),
        document=bytes_of(raw["document"], place),
        expected={profile: _expected(raw["expected"][profile.value], place) for profile in Profile},
        clause=raw["clause"],
        kills=tuple(raw["kills"]),
        source=raw["source"],
        twin=raw["twin"],
        note=raw["note"],
    )


def _expected(raw: Mapping[str, str], place: str) -> Expected:
    return Canonical(bytes_of(raw["canonical"], place)) if "canonical" in raw else Refused(raw["refused"])
