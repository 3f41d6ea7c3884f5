"""The short way of reading and writing JSON comes to what the strict reader and the RFC 8785 writer come to."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.reference_impl.hx_sync import canonical
from holdfast.specs import strictjson
from holdfast.specs.errors import StrictJsonError

TEXT = st.text(max_size=6) | st.sampled_from(
    ["\ue000", "\U0001f600", '"', "\\", "\x7f", "\u2028", "\n\x1f", "1.5", "1e3"]
)
NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False, width=32)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(VALUES)
def test_any_value_is_written_and_read_as_by_the_strict_ones(value: Any) -> None:
    try:
        due = strictjson.canonical(value)
        expected = strictjson.loads(due)
    except StrictJsonError:
        return
    assert canonical.write(value) == due
    assert canonical.read(due) == expected
    for spelt in (due, json.dumps(value).encode(), json.dumps(value, ensure_ascii=False).encode()):
        if canonical.is_easy(spelt):
            assert canonical.write_easy(canonical.read(spelt)) == due
