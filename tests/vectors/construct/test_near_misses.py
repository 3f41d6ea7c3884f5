"""The stream distinguishes canonicalisers: a short stretch of it catches nearly every near miss."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from holdfast.vectors.jcs.nearmiss import load_near_misses
from holdfast.vectors.record import Canonical, Refused, Vector
from holdfast.vectors.taxonomy import Category, Profile
from tests.vectors.construct.sample import first_rows
from tests.vectors.nearmiss.honest import Honest
from tests.vectors.nearmiss.matrix import FAMILIES, kills, mistakes
from tests.vectors.nearmiss.registry import NEAR_MISSES

# What a document of the stream never or hardly ever does: nest deeper than parsers may refuse to go; be all of a
# string without an end, in an array.
NOT_CAUGHT = {"depth-crash", "unclosed-strings"}
# Oracles are slow, and longer documents only show them more of the same.
MOST_BYTES = 2500


@cache
def records() -> tuple[Vector, ...]:
    """The rows as records."""
    made = []
    for each in first_rows():
        if len(each["document"]) <= MOST_BYTES:
            expected = {
                profile: Refused(each["reason"]) if each["refused_by"] & profile.bit else Canonical(each["canonical"])
                for profile in Profile
            }
            name, category = str(each["index"]), Category(each["category"])
            made.append(Vector(name, category, each["document"], expected, "", (), "", None, ""))
    return tuple(made)


def candidates(name: str) -> Iterator[Vector]:
    """Rows of the categories whose committed records catch this near miss, then all others."""
    categories = {record.partition("-")[0] for record in load_near_misses()[name].killed_by}
    yield from (record for record in records() if record.category in categories)
    yield from (record for record in records() if record.category not in categories)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: str(family.__name__.rpartition(".")[2]))
def test_first_rows_catch_the_near_misses(family: object) -> None:
    kinds = {name: kind for name, kind in NEAR_MISSES.items() if kind.__module__ == getattr(family, "__name__", None)}
    for name in NOT_CAUGHT & set(kinds):
        del kinds[name]
    missed = {name for name, kind in kinds.items() if not any(kills(kind, record) for record in candidates(name))}
    assert missed == set()


def test_honest_canonicaliser_makes_no_mistake() -> None:
    assert [mistake for record in records()[:1500] for mistake in mistakes(Honest, record)] == []
