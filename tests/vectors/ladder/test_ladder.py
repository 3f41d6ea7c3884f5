"""The ladder of sizes: every rung can be made alone, is right, and is as large as it claims to be."""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from holdfast.vectors.jcs.construct import Row
from holdfast.vectors.jcs.frames import Status, run
from holdfast.vectors.jcs.ladder import rung, steps
from holdfast.vectors.jcs.measures import Measure, measured
from holdfast.vectors.jcs.opening import Opening, opening_of
from holdfast.vectors.jcs.sdk import find, reference
from holdfast.vectors.jcs.spark.judge import Command, Judge, of_opening
from holdfast.vectors.taxonomy import Profile

SEED = 5
# The reference takes a tenth of a second for the largest. No divisor of the numbers of positions and kinds.
EVERY = 11


@cache
def sample() -> tuple[Row, ...]:
    """Some of the rungs, of every size, position and kind."""
    return tuple(rung(SEED, name) for name in list(steps())[::EVERY])


@pytest.mark.parametrize("profile", Profile)
def test_the_reference_answers_as_the_construction_expects(profile: Profile) -> None:
    # The strict profiles differ in numbers and characters, which are small documents.
    rungs = [one for one in sample() if profile is Profile.CORE or len(one.document) < 4096]
    answers = run(find(reference(profile)).command, [one.document for one in rungs], deadline=60)
    for one, (status, body) in zip(rungs, answers, strict=True):
        if one.refused_by & profile.bit:
            assert status is Status.REFUSED, one.name
            assert one.canonical is not None or body.split(b" ")[0].decode() == one.reason, one.name
        else:
            assert (status, body) == (Status.CANONICAL, one.canonical), one.name


def test_the_twin_of_each_refused_rung_is_accepted() -> None:
    twins = {one.name: one.twin for one in sample() if one.twin is not None and len(one.twin) < 20_000}
    answers = run(find("reference").command, list(twins.values()), deadline=60)
    assert [each.status for each in answers] == [Status.CANONICAL] * len(twins)
    for one in sample():
        assert (one.twin is None) == (one.canonical is not None)
        assert one.twin != one.document


def test_a_rung_alone_is_the_same_again_and_another_seed_fills_it_otherwise() -> None:
    names = list(steps())[::40]
    first = [rung(SEED, name) for name in names]
    assert first == [rung(SEED, name) for name in reversed(names)][::-1]
    others = [rung(SEED + 1, name) for name in names]
    assert [one.category for one in first] == [one.category for one in others]
    assert sum(a.document != b.document for a, b in zip(first, others, strict=True)) > len(names) // 4


def test_every_axis_is_climbed_to_its_end() -> None:
    names = [name for name in steps() if "5000" in name or "5001" in name or "70000" in name or "2000" in name]
    documents = pa.array([rung(SEED, name).document for name in names[::3]], pa.binary())
    most = {measure: int(found.max()) for measure, found in measured(documents).items()}
    assert most[Measure.DEPTH] >= 5000
    assert most[Measure.MEMBERS] >= 5000
    assert most[Measure.ELEMENTS] >= 5000
    assert most[Measure.UNITS] >= 70_000
    assert most[Measure.NUMBER] >= 2000
    assert most[Measure.SPACE] >= 70_000


def test_measures_are_those_of_small_documents_counted_by_hand() -> None:
    documents = [b'{"a":[1,2,{"b":"\\u00e9\\\\\\"x","\xf0\x9f\x98\x80":{}}],"c":  -12.5e3}', b"[]", b"", b'{"[,":"]]"}']
    documents += [b"[[[", b'["[[[", "\\"[[", {}]']
    found = {measure: values.tolist() for measure, values in measured(pa.array(documents, pa.binary())).items()}
    assert found[Measure.BYTES] == [len(document) for document in documents]
    assert found[Measure.DEPTH] == [4, 1, 0, 1, 3, 2]
    assert found[Measure.MEMBERS] == [2, 0, 0, 1, 0, 0]
    assert found[Measure.ELEMENTS] == [3, 0, 0, 0, 1, 3]
    assert found[Measure.UNITS] == [4, 0, 0, 2, 0, 3]
    assert found[Measure.NUMBER] == [7, 0, 0, 0, 0, 0]
    assert found[Measure.SPACE] == [2, 0, 0, 0, 0, 1]


# Bugs of size and position are found by the ladder, and right canonicalisers of another style are not accused.

RUNNER = str(Path(__file__).with_name("runner.py"))
FLOOR = opening_of(0).floor


def shown(bug: str, rungs: tuple[str, ...], seed: int = 3) -> list[dict[str, Any]]:
    """The departures of the runner with a bug on some rungs."""
    opening = Opening(seed, FLOOR, (), rungs)
    source = partial(of_opening, opening=opening)
    judge = Judge(Command((sys.executable, RUNNER, bug), 20, 30), Profile.CORE, 1000, source, opens=True)
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
