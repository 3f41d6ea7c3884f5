"""The ladder of sizes: every rung can be made alone, is right, and is as large as it claims to be."""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pytest

from holdfast.vectors.jcs.construct import Row
from holdfast.vectors.jcs.ladder import rung, steps
from holdfast.vectors.jcs.measures import Measure, measured
from holdfast.vectors.taxonomy import Profile
from tests.vectors.reference import ask_reference

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
    for one, (status, body) in zip(rungs, ask_reference(profile, [one.document for one in rungs]), strict=True):
        if one.refused_by & profile.bit:
            assert status == b"R", one.name
            assert one.canonical is not None or body.split(b" ")[0].decode() == one.reason, one.name
        else:
            assert (status, body) == (b"C", one.canonical), one.name


def test_the_twin_of_each_refused_rung_is_accepted() -> None:
    twins = {one.name: one.twin for one in sample() if one.twin is not None and len(one.twin) < 20_000}
    assert all(status == b"C" for status, _ in ask_reference(Profile.CORE, list(twins.values())))
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
    found = {measure: values.tolist() for measure, values in measured(pa.array(documents, pa.binary())).items()}
    assert found[Measure.BYTES] == [len(document) for document in documents]
    assert found[Measure.DEPTH] == [4, 1, 0, 1]
    assert found[Measure.MEMBERS] == [2, 0, 0, 1]
    assert found[Measure.ELEMENTS] == [3, 0, 0, 0]
    assert found[Measure.UNITS] == [4, 0, 0, 2]
    assert found[Measure.NUMBER] == [7, 0, 0, 0]
    assert found[Measure.SPACE] == [2, 0, 0, 0]
