"""The near misses: canonicalisers that are right but for one habit, and the committed records that show it.

`data/nearmiss.json` says what each one does and which records it gets wrong, as measured with a program for each of
them when the records were written. A record's `kills` comes from there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.specs.errors import SpecError, StrictJsonError
from holdfast.specs.schema import explain, published_validator
from holdfast.specs.strictjson import loads

DATA = "nearmiss.json"
PLACE = f"vectors/jcs/data/{DATA}"


@dataclass(frozen=True, slots=True)
class NearMiss:
    """What a near miss does, and the ids of the records that it answers wrongly."""

    what: str
    killed_by: tuple[str, ...]


def read_near_misses(data: bytes) -> Mapping[str, NearMiss]:
    """Every near miss by name, of the bytes of the file. Raises SpecError if they do not fit the schema."""
    try:
        raw = loads(data)
    except StrictJsonError as error:
        raise SpecError(f"{PLACE}: expected JSON, found {error}") from error
    problem = explain(published_validator("near-misses"), raw)
    if problem is not None:
        raise SpecError(f"{PLACE}: {problem}")
    return {name: NearMiss(entry["what"], tuple(entry["killed_by"])) for name, entry in raw.items()}


def write(near_misses: Mapping[str, NearMiss]) -> bytes:
    """The file's bytes; `read_near_misses` gives the same back."""
    raw = {
        name: {"what": near_misses[name].what, "killed_by": list(near_misses[name].killed_by)}
        for name in sorted(near_misses)
    }
    return json.dumps(raw, indent=1).encode("ascii") + b"\n"
