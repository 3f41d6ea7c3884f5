"""Instants of records and tombstones: every year of four digits in UTC, and each in one spelling."""

from __future__ import annotations

import pytest

from holdfast.reference_impl.hx_sync.instants import InstantError, Instants


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000000Z"),
        ("0000-02-29T13:00:00.5+01:00", "0000-02-29T12:00:00.500000Z"),
        ("0001-01-01T00:00:00+00:01", "0000-12-31T23:59:00.000000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
        ("2026-01-01T00:00:00.1+05:30", "2025-12-31T18:30:00.100000Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_an_instant_is_written_as_it_was_read(text: str, shown: str) -> None:
    instants = Instants()
    assert instants.write(instants.read(text)) == shown


def test_the_year_0000_ends_where_the_year_0001_begins() -> None:
    instants = Instants()
    assert instants.read("0000-12-31T23:59:59.999999Z") + 1 == instants.read("0001-01-01T00:00:00Z")


@pytest.mark.parametrize(
    "text", ["0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "0000-02-30T00:00:00Z", "-001-01-01T00:00:00Z"]
)
def test_what_lies_outside_of_these_years_is_no_instant(text: str) -> None:
    with pytest.raises(InstantError):
        Instants().read(text)
