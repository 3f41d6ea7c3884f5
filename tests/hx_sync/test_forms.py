"""Normal forms of what stands in objects and arguments of hx-sync."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.vectors.derive import derive

GOOD = "2025-12-31T12:00:00Z"


@pytest.mark.parametrize("either", ["2025-12-31t12:00:00Z", "2025-12-31T12:00:00z", "2025-12-31 12:00:00Z"])
def test_what_rfc_3339_leaves_open_is_open(either: str) -> None:
    assert derive("hx.instant", either) is None


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
