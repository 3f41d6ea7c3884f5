"""Bugs of size and position are found by the ladder, and right canonicalisers of another style are not accused."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from holdfast.vectors.jcs.ladder import steps
from holdfast.vectors.jcs.opening import Opening, opening_of
from holdfast.vectors.jcs.spark.judge import Command, Judge
from holdfast.vectors.taxonomy import Profile

RUNNER = str(Path(__file__).with_name("runner.py"))
FLOOR = opening_of(0).floor


def shown(bug: str, rungs: tuple[str, ...], seed: int = 3) -> list[dict[str, Any]]:
    """The departures of the runner with a bug on some rungs."""
    opening = Opening(seed, FLOOR, (), rungs)
    judge = Judge(Command((sys.executable, RUNNER, bug), 20, 30), Profile.CORE, opening.count, 1000, opening=opening)
    numbers = pa.RecordBatch.from_pydict({"id": pa.array(range(opening.slices))})
    rows = [row for batch in judge([numbers]) for row in batch.to_pylist()]
    assert sum(row["rows"] for row in rows if row["kind"] == "opening") == opening.count
    assert not [row for row in rows if row["kind"] in ("failed", "restarted")]
    return [row for row in rows if row["kind"] == "mismatch"]


@pytest.mark.parametrize(
    ("bug", "begin", "finding"),
    [
        ("deep-duplicate", "depth-objects-1001", "accepted_must_refuse"),
        ("stack-1000", "depth-bare-10", "no_verdict"),
        ("chunk-decode", "split-65536-three-bytes", "wrong_bytes"),
        ("literal-400", "digits-500", "wrong_bytes"),
        ("sort-last-1000", "members-1001", "wrong_bytes"),
        ("last-duplicate", "members-9-duplicate", "accepted_must_refuse"),
        ("wrap-64", "integer-2^63", "wrong_bytes"),
        ("edge-63", "integer-2^63-plain", "wrong_bytes"),
        ("last-leading-zero", "every-elements-N5", "accepted_must_refuse"),
        ("zero-exponent", "zero-0-e2^", "over_refusal"),
        ("string-65535", "string-70000-last-", "wrong_bytes"),
        ("control-4096", "string-16384-raw-control", "accepted_must_refuse"),
    ],
)
def test_a_bug_that_needs_a_size_or_a_position_is_found_there(bug: str, begin: str, finding: str) -> None:
    rungs = tuple(name for name in steps() if name.startswith(begin))
    assert shown("", rungs) == []
    departing = shown(bug, rungs)
    assert {row["finding"] for row in departing} == {finding}
    assert all(row["name"] in rungs and row["clause"] for row in departing)


@pytest.mark.parametrize("style", ["", "depth-limit"])
def test_a_right_canonicaliser_in_an_unusual_style_is_not_accused(style: str) -> None:
    departing = shown(style, tuple(steps())[:: 17 if style else 13])
    assert Counter(row["name"] for row in departing) == {}


def test_what_may_be_refused_for_its_depth_may_not_be_answered_wrongly() -> None:
    rungs = tuple(name for name in steps() if name.startswith("depth-") and "257" in name)
    assert {row["finding"] for row in shown("deep-order", rungs)} == {"wrong_bytes"}
