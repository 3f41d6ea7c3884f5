"""From the pages to the files of `vectors/data`: the order of records, and the near misses that each of them kills."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from holdfast.vectors.calyx_replay.envelopes.record import EnvelopeVector
from holdfast.vectors.calyx_replay.envelopes.record import write as write_envelopes
from holdfast.vectors.committed import (
    envelopes_calyx,
    fingerprints_mesh,
    fingerprints_rs4a,
    grammar,
    numbers,
    order,
    strings,
    structure,
    twins,
    unreadable,
    verification,
)
from holdfast.vectors.fingerprints.record import Fingerprint
from holdfast.vectors.fingerprints.record import write as write_fingerprints
from holdfast.vectors.jcs.nearmiss import load_near_misses
from holdfast.vectors.record import Vector, write
from holdfast.vectors.taxonomy import Category


def jcs_records() -> tuple[Vector, ...]:
    """Every record, by category and within it as written, the twins behind the others."""
    pages = chain(
        numbers.records(),
        strings.records(),
        order.records(),
        structure.records(),
        unreadable.records(),
        grammar.records(),
        unreadable.encodings(),
        verification.records(),
        twins.records(),
    )
    place = {category: index for index, category in enumerate(Category)}
    kills = _kills()
    return tuple(
        replace(record, kills=kills.get(record.id, ())) for record in sorted(pages, key=lambda r: place[r.category])
    )


def fingerprint_records() -> Mapping[str, tuple[Fingerprint, ...]]:
    """Every fingerprint record, by the module of `holdfast.vectors.derive` that knows its key."""
    return {"mesh": tuple(fingerprints_mesh.records()), "rs4a": tuple(fingerprints_rs4a.records())}


def envelope_records() -> Mapping[str, tuple[EnvelopeVector, ...]]:
    """Every envelope record, by the module of `holdfast.vectors.derive` that makes it anew."""
    return {"calyx": tuple(envelopes_calyx.records())}


def _kills() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for name, near_miss in load_near_misses().items():
        for identifier in near_miss.killed_by:
            found.setdefault(identifier, []).append(name)
    return {identifier: tuple(sorted(names)) for identifier, names in found.items()}


def files() -> dict[str, bytes]:
    """The files of `vectors/data`, by their path inside it."""
    by_category: dict[Category, list[Vector]] = {category: [] for category in Category}
    for record in jcs_records():
        by_category[record.category].append(record)
    return {
        **{f"jcs/{category.value}.jsonl": write(records) for category, records in by_category.items()},
        **{f"fingerprints/{name}.jsonl": write_fingerprints(page) for name, page in fingerprint_records().items()},
        **{f"envelopes/{name}.jsonl": write_envelopes(page) for name, page in envelope_records().items()},
    }
