"""Committed fingerprint vectors: the model of a record, and reading and writing its line.

`vectors/data/fingerprints/<module>.jsonl` holds one JSON object a line; its shape is
`specs/schemas/fingerprint.schema.json`. A record gives a request, the bytes that are hashed for it, spelt out by
hand, and their SHA-256; or it says that the request has no fingerprint and must be refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from specs.errors import SpecError, StrictJsonError
from specs.schema import explain, published_validator
from specs.strictjson import loads

_SCHEMA = "fingerprint"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """One request and one of its keys. `key` is a name that `vectors.derive` knows.

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
    """Every record, by file and line. Raises SpecError for a line that does not fit, a repeated id, and no records."""
    folder = files("vectors").joinpath("data", "fingerprints")
    names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    records: list[Fingerprint] = []
    for name in names:
        records += read(folder.joinpath(name).read_bytes(), place=f"vectors/data/fingerprints/{name}")
    if not records:
        raise SpecError("expected vectors in vectors/data/fingerprints, found none; reinstall holdfast")
    seen: set[str] = set()
    for record in records:
        if record.id in seen:
            raise SpecError(f"vectors/data/fingerprints: the id {record.id} stands there twice; ids are unique")
        seen.add(record.id)
    return tuple(records)


def read(data: bytes, *, place: str) -> list[Fingerprint]:
    """The records of one file's bytes. `place` is its name in errors (SpecError)."""
    if not data.endswith(b"\n"):
        raise SpecError(f"{place}: expected every line to end with a line feed; the last one is cut off")
    return [_record(line, f"{place}:{number}") for number, line in enumerate(data[:-1].split(b"\n"), start=1)]


def _record(line: bytes, place: str) -> Fingerprint:
    try:
        raw: Any = loads(line)
    except StrictJsonError as error:
        raise SpecError(f"{place}: expected one JSON object, found {error}") from error
    problem = explain(published_validator(_SCHEMA), raw)
    if problem is not None:
        raise SpecError(f"{place}: {problem}")
    preimage = raw["preimage"]
    if preimage is not None and preimage.strip() != preimage:
        raise SpecError(f"{place}: expected hexadecimal digits only, found a blank beside them")
    return Fingerprint(**{**raw, "preimage": None if preimage is None else bytes.fromhex(preimage)})


def write(records: Iterable[Fingerprint]) -> bytes:
    """The lines of `records`; `read` of it gives them back."""
    return b"".join(_line(record) for record in records)


def _line(record: Fingerprint) -> bytes:
    raw = {
        "id": record.id,
        "key": record.key,
        "contract": record.contract,
        "clause": record.clause,
        "request": record.request,
        "preimage": None if record.preimage is None else record.preimage.hex(),
        "sha256": record.sha256,
        "same_as": record.same_as,
        "twin": record.twin,
        "note": record.note,
    }
    return json.dumps(raw, ensure_ascii=True).encode("ascii") + b"\n"
