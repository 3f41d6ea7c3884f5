"""The published schemas of a contract's files are those of their types."""

from __future__ import annotations

import pytest

from holdfast.specs.publish import FILES, schema_of
from holdfast.specs.schema import published_schema


@pytest.mark.parametrize("name", FILES)
def test_a_published_schema_is_that_of_its_types(name: str) -> None:
    assert published_schema(name) == schema_of(name), "run `python -m holdfast.specs.publish`"
