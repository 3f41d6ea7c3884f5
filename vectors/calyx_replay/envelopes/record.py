"""Committed envelope vectors: the model of a record, and reading its line.

`vectors/calyx_replay/data/envelopes.jsonl` holds one JSON object a line; its shape is
`specs/schemas/envelope.schema.json`. A record gives the bytes of an envelope as they come over the wire, and its key;
or it says why they must be refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from holdfast.specs.errors import SpecError
from holdfast.vectors.lines import bytes_of, read_lines, with_own_ids

FILE = "envelopes.jsonl"
PLACE = f"vectors/calyx_replay/data/{FILE}"
SCHEMA = "envelope"


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


@cache
def load() -> tuple[EnvelopeVector, ...]:
    """Every record, by line. Raises SpecError for a line that does not fit, a repeated id, and no file."""
    resource = files("holdfast.vectors").joinpath("calyx_replay", "data", FILE)
    if not resource.is_file():
        raise SpecError(f"expected vectors in {PLACE}, found none; reinstall holdfast")
    return with_own_ids(read(resource.read_bytes(), place=PLACE), PLACE)


def read(data: bytes, *, place: str) -> list[EnvelopeVector]:
    """The records of one file's bytes. `place` is its name in errors (SpecError)."""
    return read_lines(data, _record, schema=SCHEMA, place=place)


def _record(raw: Mapping[str, Any], place: str) -> EnvelopeVector:
    return EnvelopeVector(
        **{**raw, "envelope": bytes_of(raw["envelope"], place), "reasons": tuple(raw["reasons"])},
    )
