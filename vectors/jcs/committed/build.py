"""From the pages to the files of `data`: the order of records, and the near misses that each of them kills."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from holdfast.vectors.jcs.committed import (
    grammar,
    numbers,
    order,
    strings,
    structure,
    twins,
    unreadable,
    verification,
)
from holdfast.vectors.jcs.nearmiss import load_near_misses
from holdfast.vectors.record import Vector, write
from holdfast.vectors.taxonomy import Category


def records() -> tuple[Vector, ...]:
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


def _kills() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for name, near_miss in load_near_misses().items():
        for identifier in near_miss.killed_by:
            found.setdefault(identifier, []).append(name)
    return {identifier: tuple(sorted(names)) for identifier, names in found.items()}


def files() -> Mapping[str, bytes]:
    """One file for each category."""
    by_category: dict[Category, list[Vector]] = {category: [] for category in Category}
    for record in records():
        by_category[record.category].append(record)
    return {f"{category.value}.jsonl": write(found) for category, found in by_category.items()}
