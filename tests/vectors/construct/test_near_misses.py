"""The stream distinguishes canonicalisers: a short stretch of it catches one that is right but for one habit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import copysign
from typing import Any

import pytest

from holdfast.vectors.taxonomy import Profile
from tests.vectors.construct import byhand
from tests.vectors.construct.sample import first_rows
from tests.vectors.es6 import oracle

# Longer documents only show more of the same.
MOST_BYTES = 2500
TEXT, NUMBER = oracle.text, byhand._number
HABITS: Mapping[str, tuple[str, Any]] = {
    "the solidus is escaped": ("byhand._TABLE", {**byhand._TABLE, 0x2F: "\\/"}),
    "delete is escaped": ("byhand._TABLE", {**byhand._TABLE, 0x7F: "\\u007f"}),
    "escapes are long": ("byhand._TABLE", {code: f"\\u{code:04x}" for code in byhand._TABLE}),
    "hexadecimal digits are capital": ("byhand._TABLE", {**byhand._TABLE, 0x1F: "\\u001F"}),
    "the last of two members wins": ("byhand._members", dict),
    "NaN is read": ("byhand._constant", lambda _: None),
    "members are ordered by code points": ("byhand.sorted", lambda members, **_: sorted(members)),
    "members stay as they came": ("byhand.sorted", lambda members, **_: members),
    "numbers are of single precision": ("byhand._number", lambda text: NUMBER(f"{float(text):.8g}")),
    "minus zero is kept": ("es6.oracle.text", lambda value: TEXT(value) if copysign(1, value) > 0 or value else "-0"),
    "exponents have two digits": ("es6.oracle.text", lambda value: TEXT(value).replace("e-7", "e-07")),
}


def mistakes() -> Iterator[int]:
    """The rows that are answered otherwise than the stream expects of profile `core`."""
    for row in first_rows():
        if len(row["document"]) <= MOST_BYTES:
            try:
                answer: bytes | None = byhand.canonical(row["document"])
            except byhand.RefusedError:
                answer = None
            if answer != (None if row["refused_by"] & Profile.CORE.bit else row["canonical"]):
                yield row["index"]


def test_a_canonicaliser_without_a_habit_makes_no_mistake() -> None:
    assert list(mistakes()) == []


@pytest.mark.parametrize("habit", HABITS)
def test_first_rows_catch_a_habit(habit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, value = HABITS[habit]
    package = "tests.vectors.construct." if place.startswith("byhand") else "tests.vectors."
    monkeypatch.setattr(package + place, value, raising=False)
    assert next(mistakes(), None) is not None
