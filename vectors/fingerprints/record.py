"""Committed fingerprint vectors: the model of a record, and reading its line.

`vectors/<contract>/data/fingerprints.jsonl` holds one JSON object a line; its shape is
`specs/schemas/fingerprint.schema.json`. A record gives a request, the bytes that are hashed for it, spelt out by
hand, and their SHA-256; or it says that the request has no fingerprint and must be refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from holdfast.specs.errors import SpecError
from holdfast.specs.registry import contracts
from holdfast.vectors.lines import bytes_of, read_lines, with_own_ids

FILE = "fingerprints.jsonl"
SCHEMA = "fingerprint"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """One request and one of its keys. `key` is a name that `holdfast.vectors.derive` knows.

    `preimage` and `sha256` are None for a request that must be refused; then `twin` is the record beside it that has
    a fingerprint. `same_as` is the record whose fingerprint this request must have, spelt otherwise.
    """

    id: str
    key: str
    contract: str
    clause: str
    request: Mapping[str, Any]
    preimage: bytes | None
    sha256: str | None
    same_as: str | None
    twin: str | None
    note: str


@cache
def load() -> tuple[Fingerprint, ...]:
    """Every record, by contract and line.

    Raises SpecError for a line that does not fit, a repeated id, and no records.
    """
    records: list[Fingerprint] = []
    for one in contracts().values():
        path = one.vectors.path / "data" / FILE
        # Where other distributions have vectors of their own, no table of holdfast has room for them.
        if one.distribution is None and path.is_file():
            records += read(path.read_bytes(), place=f"vectors/{one.vectors.path.name}/data/{FILE}")
    if not records:
        raise SpecError(f"expected vectors in vectors/<contract>/data/{FILE}, found none; reinstall holdfast")
    return with_own_ids(records, FILE)


def read(data: bytes, *, place: str) -> list[Fingerprint]:
    """The records of one file's bytes. `place` is its name in errors (SpecError)."""
    return read_lines(data, _record, schema=SCHEMA, place=place)


def _record(raw: Mapping[str, Any], place: str) -> Fingerprint:
    preimage = raw["preimage"]
    return Fingerprint(**{**raw, "preimage": None if preimage is None else bytes_of(preimage, place)})
