"""The honest canonicaliser survives every committed record, and each near miss is killed by those that say so."""

from __future__ import annotations

import pytest

from holdfast.vectors.jcs.nearmiss import load_near_misses
from holdfast.vectors.record import load
from holdfast.vectors.taxonomy import Profile
from tests.vectors.nearmiss.honest import Honest
from tests.vectors.nearmiss.matrix import FAMILIES, answer, kills, mistakes
from tests.vectors.nearmiss.registry import NEAR_MISSES, habit

FAMILY_NAMES = [family.__name__.rpartition(".")[2] for family in FAMILIES]


def _of(family: str) -> dict[str, type[Honest]]:
    return {name: kind for name, kind in NEAR_MISSES.items() if kind.__module__.endswith(f".{family}")}


def test_the_honest_canonicaliser_is_right_about_every_record_in_every_profile() -> None:
    assert [mistake for record in load() for mistake in mistakes(Honest, record)] == []


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_a_record_kills_what_it_claims_to_kill_and_nothing_else(family: str) -> None:
    claimed = {(name, record.id) for record in load() for name in record.kills if name in _of(family)}
    measured = {(name, record.id) for record in load() for name, kind in _of(family).items() if kills(kind, record)}
    assert measured - claimed == set(), "kills that are not claimed; run `python -m tests.vectors.nearmiss.matrix`"
    assert claimed - measured == set(), "claims that are not so; run `python -m tests.vectors.nearmiss.matrix`"


def test_every_near_miss_is_killed_by_a_record() -> None:
    killed = {name for record in load() for name in record.kills}
    assert killed == set(NEAR_MISSES)


def test_the_published_list_has_these_near_misses_and_their_habits() -> None:
    assert {name: near_miss.what for name, near_miss in load_near_misses().items()} == {
        name: habit(name) for name in NEAR_MISSES
    }


def test_no_two_near_misses_are_killed_by_the_same_records_for_the_same_answers() -> None:
    seen: dict[object, str] = {}
    for name, kind in NEAR_MISSES.items():
        rows = [record for record in load() if name in record.kills]
        shown = tuple(
            (
                record.id,
                answer(kind, Profile.CORE, record.document),
                answer(kind, Profile.I_JSON_STRICT, record.document),
            )
            for record in rows
        )
        assert shown not in seen, f"{name} cannot be told from {seen.get(shown)}"
        seen[shown] = name


def test_a_near_miss_overrides_one_guard_of_the_honest_one() -> None:
    for name, kind in NEAR_MISSES.items():
        assert issubclass(kind, Honest), name
        assert habit(name).endswith("."), name
