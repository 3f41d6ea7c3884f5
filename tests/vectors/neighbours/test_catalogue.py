"""The catalogue of near misses: each entry makes something, and that is near."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.specs.leaves import LeafKind
from holdfast.vectors.neighbours import neighbour, neighbours
from holdfast.vectors.neighbours.catalogue import catalogue

GOOD: dict[LeafKind, Any] = {
    "base64url": "AbCd-_78AbCdAQ",
    "blob": "AbCdAbCdAbCdAbCd",
    "boolean": True,
    "constant": "register-dot",
    "document": '{"a":"x/y","header":{"b":"c","d":"e","items":[{"f":"g\u00e9"}]}}',
    "duration": 24,
    "hex": "9f" * 32,
    "identifier": "olive-owner-1",
    "instant": "2026-01-01T00:00:00Z",
    "integer": 7,
    "key": "9f" * 32,
    "object": {"a": "b", "c": 1},
    "path": "dot://acme/lamps/one",
    "text": "a subject or two",
    "token": "Olive-_0123456789ab",
    "uuid": "0c0ffee0-0123-4567-89ab-0123456789ab",
}


@pytest.mark.parametrize("kind", GOOD)
def test_every_near_miss_differs_from_the_good_value_beside_it(kind: LeafKind) -> None:
    found = neighbours(kind, GOOD[kind])
    assert found
    assert all(json.dumps(near.base) != json.dumps(near.value) for near in found.values())


def test_every_entry_makes_a_near_miss_of_some_good_value() -> None:
    made = {name for kind, good in GOOD.items() for name in neighbours(kind, good)}
    assert {miss.name for group in catalogue().groups.values() for miss in group} - made == set()


@pytest.mark.parametrize("kind", GOOD)
def test_one_near_miss_is_made_as_all_of_them_are(kind: LeafKind) -> None:
    for name, near in neighbours(kind, GOOD[kind]).items():
        assert neighbour(kind, GOOD[kind], name) == near


@pytest.mark.parametrize("at", [8, 255, 4096, -8, -256])
def test_a_place_of_difference_is_where_it_says(at: int) -> None:
    name = f"differs from the end at {-at}" if at < 0 else f"differs at {at}"
    near = neighbour("blob", GOOD["blob"], name)
    assert near is not None
    different = [place for place, pair in enumerate(zip(near.base, near.value, strict=True)) if len(set(pair)) == 2]
    assert different == [at if at >= 0 else len(near.base) + at - 1]
    assert len(near.base) % 4 == 0


@pytest.mark.parametrize(
    "name",
    [
        "member twice",
        "member twice one level down",
        "member twice two levels down",
        "member twice with another name spelling one level down",
    ],
)
def test_a_member_that_stands_there_twice_says_the_same_to_a_lenient_reader(name: str) -> None:
    near = neighbour("document", GOOD["document"], name)
    assert near is not None
    assert json.loads(near.value) == json.loads(GOOD["document"])
    assert near.value != GOOD["document"]


def test_a_value_without_a_place_for_it_has_no_such_near_miss() -> None:
    assert neighbour("instant", "2026-01-01T00:00:00Z", "hour of one digit") is not None
    assert neighbour("instant", "2026-01-01T10:00:00Z", "hour of one digit") is None
