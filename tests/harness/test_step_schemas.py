"""The published schemas of steps are what the files of the kinds of steps say."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.conformance.steps import kinds
from holdfast.conformance.steps.__main__ import composed, text_of
from holdfast.specs.schema import check_schema

SCHEMAS = Path(__file__).resolve().parents[2] / "specs" / "schemas"


@pytest.mark.parametrize("name", ["cases", "inspection"])
def test_the_published_schema_is_the_one_that_the_steps_compose(name: str) -> None:
    schema = composed()[name]
    check_schema(schema, name=name)
    published = (SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8")
    assert published == text_of(schema), "write it anew: python -m holdfast.conformance.steps"


def test_each_kind_of_step_is_told_by_a_member_that_only_it_requires() -> None:
    required = [name for step in kinds().values() for name in step.form["required"] if name in kinds()]
    assert sorted(required) == list(kinds())
