"""What a run may claim: nothing of a category without rows, of a runner that failed, of rows that do not exist."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import typer

from holdfast.conformance.cli.console import Format
from holdfast.conformance.cli.vectors.evidence import exit_of_result, parity_json, record
from holdfast.conformance.cli.vectors.parity import _print_matrix, _status, describe
from holdfast.conformance.cli.vectors.spark import working
from holdfast.conformance.cli.vectors.verify import print_result, result_json
from holdfast.conformance.verdict import Exit
from holdfast.reports.evidence import read_evidence
from holdfast.specs import schema
from holdfast.vectors.jcs.frames import Answered, StartError, Status
from holdfast.vectors.jcs.spark import session
from holdfast.vectors.jcs.spark import verify as subject
from holdfast.vectors.jcs.spark.blocks import BLOCK_ROWS
from holdfast.vectors.jcs.spark.generate import stream_version
from holdfast.vectors.jcs.spark.judge import Command
from holdfast.vectors.jcs.spark.manifest import Manifest, OutputError, Part
from holdfast.vectors.jcs.spark.parity import Parity, page
from holdfast.vectors.jcs.spark.results import Result, Stored, Target
from holdfast.vectors.jcs.spark.shrink import Shrinker
from holdfast.vectors.jcs.spark.storage import Store
from holdfast.vectors.jcs.spark.tally import Meaning, Row
from holdfast.vectors.taxonomy import Category, Profile


def result_of(
    *, without: Sequence[Category] = (), found: Mapping[Category, Meaning] | None = None, name: str = "fake"
) -> Result:
    """Two rows of each category but some, all of which agree but those of the categories that are `found` wanting."""
    departing = found or {}
    rows = tuple(
        Row(
            category,
            profile,
            {**dict.fromkeys(Meaning, 0), departing.get(category, Meaning.AGREE): 0 if category in without else 2},
        )
        for profile in Profile
        for category in Category
    )
    count = 2 * (len(Category) - len(without))
    target = Target(name, "Python", "json", "1", Command((sys.executable,), 1, 1))
    return Result(target, Profile.CORE, "1", 0, count, f"sha256:{'0' * 64}", rows, 0, (), "answers", None, 1)


LACKING = (Category.NUMBER_GRAMMAR, Category.ENCODING)


def test_a_category_without_rows_is_no_pass_anywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = result_of(without=LACKING)
    assert record(result_of(), tmp_path / "whole.jsonl") is Exit.OK
    assert record(result, tmp_path / "run.jsonl") is Exit.INCOMPLETE
    run = read_evidence(tmp_path / "run.jsonl")
    assert run.defects == ()
    assert run.footer is not None
    assert (run.footer.verdict, run.footer.exit) == ("not_reached", 12)
    lacking = {line.case: line for line in run.verdicts if line.verdict != "conforms"}
    assert set(lacking) == {"vectors/core/N5", "vectors/core/N8"}
    assert all("nothing is proven about it" in line.detail for line in lacking.values())
    assert run.header is not None
    assert set(run.header.plan) == {f"vectors/core/{category.value}" for category in Category}
    raw = result_json(result, Exit.INCOMPLETE, None)
    assert schema.explain(schema.published_validator("vectors-verify"), raw) is None
    assert raw["without_rows"] == ["N5", "N8"]
    print_result(result)
    assert "no rows of N5, N8: nothing is proven about them" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("finding", "status"),
    [
        (Meaning.ACCEPTED, Exit.FAIL_OPEN),
        (Meaning.WRONG_BYTES, Exit.INCOMPLETE),
        (Meaning.NO_VERDICT, Exit.INCOMPLETE),
        (Meaning.OVER_REFUSAL, Exit.INCOMPLETE),
    ],
)
def test_a_category_without_rows_hides_nothing_graver(finding: Meaning, status: Exit) -> None:
    assert exit_of_result(result_of(without=LACKING, found={Category.SIZE: finding})) is status


@pytest.mark.parametrize("finding", [Meaning.ACCEPTED, Meaning.WRONG_BYTES])
def test_the_page_marks_what_was_accepted_though_it_must_be_refused_and_nothing_else(finding: Meaning) -> None:
    text = page(_compared(result_of(found={Category.SIZE: finding})), describe)
    assert text.count('<td class="n open">') == (finding is Meaning.ACCEPTED)


def _compared(*libraries: Result, **more: Any) -> Parity:
    return Parity((result_of(name="reference", **more), *libraries), ())


def test_a_comparison_without_rows_of_a_category_does_not_stand(capsys: pytest.CaptureFixture[str]) -> None:
    assert _status(_compared(result_of()), ()) is Exit.OK
    found = _compared(result_of(without=LACKING), without=LACKING)
    assert _status(found, ()) is Exit.INCOMPLETE
    raw = parity_json(found, Exit.INCOMPLETE)
    assert schema.explain(schema.published_validator("vectors-parity"), raw) is None
    assert raw["without_rows"] == ["N5", "N8"]
    assert "No rows of N5, N8" in page(found, describe)
    _print_matrix(found)
    said = capsys.readouterr().out
    assert "no rows of N5, N8: nothing is proven about them" in said
    assert next(line.split() for line in said.splitlines() if line.startswith("N8")) == ["N8", "?", "?"]


def test_a_runner_that_failed_of_nothing_in_particular_has_an_unproven_column(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tired = replace(result_of(found={Category.SIZE: Meaning.WRONG_BYTES}), restarts=3, restarted="exited with status 5")
    found = _compared(tired, result_of(name="sound"))
    assert _status(found, ()) is Exit.INCOMPLETE
    raw = parity_json(found, Exit.INCOMPLETE)
    assert schema.explain(schema.published_validator("vectors-parity"), raw) is None
    assert [one["restarts"] for one in raw["sdks"]] == [0, 3, 0]
    text = page(found, describe)
    assert "fake is not proven: 3 processes of the runner failed" in text
    assert "<b>fake</b>: agrees on every row" not in text
    assert "<b>sound</b>: agrees on every row" in text
    assert text.count(">?</text>") == len(Profile) * (len(Category) - 1)
    _print_matrix(found)
    said = capsys.readouterr().out
    assert "not proven: fake (Python): 3 processes of the runner failed on no document in particular" in said
    squares = {line.split()[0]: line.split()[1:] for line in said.splitlines() if line.strip()}
    assert squares["P1"] == ["·", "?", "·"]
    assert squares["P15"] == ["·", "W100", "·"]


def test_a_table_that_does_not_add_up_is_a_fault_of_the_kit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "opened", lambda _: contextlib.nullcontext())
    with pytest.raises(typer.Exit) as caught, working("local[1]", Format.TEXT):
        subject._adds_up(replace(result_of(), missing=1))
    assert caught.value.exit_code == 20
    assert "fault of the kit" in capsys.readouterr().err


def test_a_runner_that_is_gone_when_its_counterexample_shrinks_keeps_what_it_answered() -> None:
    class Gone:
        def shrink(self, *_: object) -> None:
            raise StartError("the runner does not exist")

    expected = Answered(Status.CANONICAL, b"1")
    assert subject._shrunk(cast("Shrinker", Gone()), b"1.0", expected, Category.NUMBER_NOTATION) is None


def _stored(blocks: int) -> Stored:
    """Stored `blocks`, each of which has its number for a digest."""
    leaves = tuple(f"{number:064x}" for number in range(blocks))
    part = Part("rows", 0, blocks * BLOCK_ROWS, 1, "", leaves)
    count = blocks * BLOCK_ROWS
    manifest = Manifest(stream_version(), 0, count, BLOCK_ROWS, "", {}, (part,))
    return Stored(cast("Store", SimpleNamespace(uri="file:/rows")), manifest)


@pytest.mark.parametrize(("blocks", "sampled"), [(3, 3), (4, 4), (100, 4)])
def test_stored_blocks_are_made_again_all_of_a_few_and_some_of_many(
    monkeypatch: pytest.MonkeyPatch, blocks: int, sampled: int
) -> None:
    made: list[int] = []

    def make(seed: int, number: int, count: int) -> Any:
        made.append(number)
        return SimpleNamespace(rows=number)

    monkeypatch.setattr(subject, "block_of", make)
    monkeypatch.setattr(subject, "leaf", lambda rows: rows.to_bytes(32, "big"))
    subject._expectations_are_ours(_stored(blocks))
    assert len(made) == len(set(made)) == sampled
    monkeypatch.setattr(subject, "leaf", lambda rows: (rows + (rows == 1)).to_bytes(32, "big"))
    if sampled == blocks:
        with pytest.raises(OutputError, match="not what seed"):
            subject._expectations_are_ours(_stored(blocks))
