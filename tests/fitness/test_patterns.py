"""Values that probes make of the pattern of a CHECK, or of a sample of the policy."""

from __future__ import annotations

import re

import pytest

from holdfast.conformance.fitness.trying.values import digest_of, of_pattern, pattern_of, sample_shape


@pytest.mark.parametrize(
    "text",
    [
        "^lrk:[0-9a-f]{64}$",
        "^[A-Za-z0-9_-]{22}$",
        "^[A-Z]{4}-[0-9]{20,30}$",
        "^n[a-z]+$",
        r"^v1\.[G-Z]{12,}$",
        "^a?b*[xyz]{90}$",
    ],
)
def test_values_of_a_pattern_are_of_it_and_differ(text: str) -> None:
    pattern = pattern_of(text)
    made = [of_pattern(pattern)(number) for number in range(200)]
    assert [value for value in made if re.fullmatch(text[1:-1], value) is None] == []
    assert len(set(made)) == 200


@pytest.mark.parametrize("before", ["", " ?", "0?", "0*", "0{0,2}", "[0x]?", "(v1:)?", "([.][0-9]{1,6})?"])
def test_what_may_be_left_out_is_left_out(before: str) -> None:
    pattern = pattern_of(f"^{before}[0-9a-f]{{64}}$")
    assert of_pattern(pattern)(7) == digest_of(7)


@pytest.mark.parametrize(
    "text", ["", "^$", "[0-9]{64}", "^(a|b)[0-9]{64}$", "^[^a]{40}$", r"^\d{64}$", "^[[:digit:]]{40}$"]
)
def test_what_is_of_another_form_is_no_pattern(text: str) -> None:
    assert pattern_of(text) == ()


@pytest.mark.parametrize(
    ("text", "length"), [("n{hex:21}", 22), ("{hex:1}", 1), ("{hex:64}", 64), ("{hex}", 64), ("{hex:8}-{hex:8}", 17)]
)
def test_sample_has_as_many_digits_as_it_says(text: str, length: int) -> None:
    made = sample_shape(text)
    assert len(made(1)) == length
    assert made(1) != made(12)


@pytest.mark.parametrize("text", ["{hex:0}", "{hex:65}", "{hex:064}", "{hex:-1}"])
def test_number_of_digits_that_there_is_not_stands_as_it_is(text: str) -> None:
    assert sample_shape(text)(1) == text
