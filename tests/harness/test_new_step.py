"""A new kind of step is one file: it is found by its place, run on a live session, and judged again from its record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.conformance import steps
from holdfast.conformance.cases.values import CaseError
from holdfast.conformance.steps import kinds
from holdfast.conformance.steps.__main__ import composed, text_of
from holdfast.specs.schema import Validator, check_schema, explain
from tests.harness.ledger import case_of, ran

# How it is written, done, read back and judged.
NAMES = """
import os

from holdfast.conformance.cases.forms import PATH, REPORTED, form, value_form
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.report import path_of, reading_of
from holdfast.conformance.steps import Step

NAMES = Report(
    name="names",
    do=lambda workdir, operand: {"names": os.stat(workdir / operand["path"]).st_nlink},
    schema=value_form(names={"type": "integer", "minimum": 1}),
)
STEP = Step(
    name="names",
    form=form({"names": PATH, **REPORTED}, ("names",)),
    read=reading_of(NAMES, lambda reading, step: {"path": path_of("names", step, reading)}),
    report=NAMES,
)
"""
PLACED = {"place": "alone", "content": {"$utf8": "x"}}


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A kind of step that counts the names of a file, from a file outside the kit."""
    (tmp_path / "names.py").write_text(NAMES, encoding="utf-8")
    monkeypatch.setattr(steps, "__path__", [*steps.__path__, str(tmp_path)])
    steps.kinds.cache_clear()
    yield
    monkeypatch.undo()
    steps.kinds.cache_clear()


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize(
    ("step", "due"),
    [
        ({"names": "alone", "expect": {"value": {"names": 1}}}, "conforms"),
        ({"names": "alone", "expect": {"value": {"names": 2}}}, "wrong_reason"),
        ({"names": "nothing"}, "not_reached"),
        ({"names": "../outside"}, "kit_fault"),
    ],
)
def test_a_new_kind_of_step_runs_and_is_judged_again_from_its_record(step: dict[str, object], due: str) -> None:
    # `ran` holds the judgement from the records against that of the run.
    (result,) = ran(case_of(PLACED, step))
    assert result.judgement.verdict.value == due, result.judgement.detail


@pytest.mark.usefixtures("names")
def test_a_new_kind_of_step_is_part_of_the_schema_that_is_written() -> None:
    schema = composed()["cases"]
    validator = Validator({"$defs": schema["$defs"], "$ref": "#/$defs/step"})
    assert explain(validator, {"names": "alone"}) is None
    assert explain(validator, {"names": "alone", "surprise": 1}) is not None
    assert "names" in composed()["inspection"]["$defs"]


@pytest.mark.usefixtures("names")
def test_two_kinds_of_one_name_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "place_again.py").write_text(NAMES.replace('name="names"', 'name="place"'), encoding="utf-8")
    steps.kinds.cache_clear()
    with pytest.raises(CaseError, match="one kind of step called place"):
        steps.kinds()


def test_a_kind_that_no_file_declares_is_no_step() -> None:
    schema = composed()["cases"]
    validator = Validator({"$defs": schema["$defs"], "$ref": "#/$defs/step"})
    assert explain(validator, {"names": "alone"}) is not None


# The published schemas of steps are what the files of the kinds of steps say.

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
