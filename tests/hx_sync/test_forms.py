"""Normal forms of what stands in objects and arguments of hx-sync."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.vectors.derive import derive

GOOD = "2025-12-31T12:00:00Z"


@pytest.mark.parametrize(
    "same", ["2025-12-31T13:00:00+01:00", "2025-12-31T12:00:00.000000Z", "2025-12-30T23:00:00-13:00"]
)
def test_spellings_of_one_instant_have_one_form(same: str) -> None:
    assert derive("hx.instant", same) == derive("hx.instant", GOOD)


@pytest.mark.parametrize(
    "other", ["2025-12-31T12:00:00.000001Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"]
)
def test_another_instant_has_another_form(other: str) -> None:
    assert derive("hx.instant", other) not in (None, derive("hx.instant", GOOD))


@pytest.mark.parametrize(
    "none",
    [
        "2025-12-31T24:00:00Z",
        "2025-12-31T2:00:00Z",
        "2025-02-30T12:00:00Z",
        "2025-12-31T12:00:60Z",
        "2025-12-31T12:00:00",
        "2025-12-31T12:00:00.0000000Z",
        "0000-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "\uff12025-12-31T12:00:00Z",
        0,
    ],
)
def test_what_is_no_instant_has_no_form(none: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        derive("hx.instant", none)


@pytest.mark.parametrize("either", ["2025-12-31t12:00:00Z", "2025-12-31T12:00:00z", "2025-12-31 12:00:00Z"])
def test_what_rfc_3339_leaves_open_is_open(either: str) -> None:
    assert derive("hx.instant", either) is None


def test_a_number_counts_by_its_value() -> None:
    assert derive("hx.integer", 1.0) == derive("hx.integer", 1)
    for none in (True, 1.5, "1", None):
        with pytest.raises(ValueError, match=r"."):
            derive("hx.integer", none)


@pytest.mark.parametrize(
    "text", ['\ufeff{"events":[]}', '{"events":[],"events":[]}', '{"events":[]}{}', '{"events":{}}', "[]"]
)
def test_what_is_no_batch_has_no_form(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        derive("hx.batch_text", text)


def test_a_batch_in_another_spelling_has_the_same_form() -> None:
    assert derive("hx.batch_text", '{"pins" :[],"events":[]}') == derive("hx.batch_text", '{"events":[],"pins":[]}')


def test_a_header_has_exactly_the_members_of_its_type() -> None:
    header: dict[str, Any] = {
        "magic": "HXOBJ",
        "version": 0,
        "object_type": "manifest",
        "vault_id": "v",
        "crypto": {"alg": "x"},
        "node_id": "n",
        "created_at": GOOD,
    }
    text = derive("hx.text", header)
    assert derive("hx.header_text", text) == text
    for wrong in (
        {**header, "more": 1},
        {**header, "crypto": {"alg": "x", "more": 1}},
        {**header, "object_type": "blob"},
    ):
        with pytest.raises(ValueError, match=r"."):
            derive("hx.header_text", derive("hx.text", wrong))


def test_a_key_without_a_place_is_misplaced() -> None:
    key = derive("hx.key", {"type": "blob", "id": "ab" * 32})
    assert derive("hx.place", key) == key
    for other in (f"{key}.partial", key.upper(), key.replace("/ab/ab/", "/ab/ac/")):
        assert derive("hx.place", other) == {"form": other, "class": "misplaced"}
