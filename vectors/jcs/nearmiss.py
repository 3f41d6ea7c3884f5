"""The near misses: canonicalisers that are right but for one habit, and the committed records that show it.

`data/nearmiss.json` says what each one does and which records it gets wrong, as measured with a program for each of
them when the records were written. A record's `kills` comes from there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

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


def data() -> Traversable:
    """The file."""
    return files("holdfast.vectors").joinpath("jcs", "data", DATA)


@cache
def load_near_misses() -> Mapping[str, NearMiss]:
    """Every near miss by name. Raises SpecError if the file is missing or does not fit its schema."""
    resource = data()
    if not resource.is_file():
        raise SpecError(f"expected {PLACE}, found nothing; reinstall holdfast")
    try:
        raw = loads(resource.read_bytes())
    except StrictJsonError as error:
        raise SpecError(f"{PLACE}: expected JSON, found {error}") from error
    problem = explain(published_validator("near-misses"), raw)
    if problem is not None:
        raise SpecError(f"{PLACE}: {problem}")
    return {name: NearMiss(entry["what"], tuple(entry["killed_by"])) for name, entry in raw.items()}


def write(near_misses: Mapping[str, NearMiss]) -> bytes:
    """The file's bytes; `load_near_misses` gives the same back."""
    raw = {
        name: {"what": near_misses[name].what, "killed_by": list(near_misses[name].killed_by)}
        for name in sorted(near_misses)
    }
    return json.dumps(raw, indent=1).encode("ascii") + b"\n"
