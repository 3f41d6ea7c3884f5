"""Counterexamples become small, and stay counterexamples of the same kind."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vectors.frames import Answered, Dialogue, Status
from vectors.spark.shrink import Shrinker

REFERENCE = (sys.executable, "-P", "-m", "reference_impl", "frames", "--profile", "core")
NAIVE = (sys.executable, str(Path(__file__).with_name("fake_sdk.py")), "naive")


@pytest.fixture(scope="module")
def shrinker() -> Iterator[Shrinker]:
    with Dialogue(REFERENCE, deadline=10) as oracle, Dialogue(NAIVE, deadline=10) as sdk:
        yield Shrinker(oracle, sdk, until=time.monotonic() + 120)


def test_wrong_bytes_shrink_to_what_makes_them_wrong(shrinker: Shrinker) -> None:
    document = b'{"some": [1, 2, {"deep": "text"}], "numbers" :[3,4,1e2,true], "last":null}'
    canonical = b'{"last":null,"numbers":[3,4,100,true],"some":[1,2,{"deep":"text"}]}'
    found = shrinker.shrink(document, Answered(Status.CANONICAL, canonical))
    assert found is not None
    assert len(found.document) <= len(b"1e2")
    assert found.expected.status is Status.CANONICAL
    assert found.answered.status is Status.CANONICAL
    assert found.expected.body != found.answered.body


def test_an_accepted_defect_keeps_its_reason_while_it_shrinks(shrinker: Shrinker) -> None:
    document = b'[1,{"b":[],"a":1,"x":{"y":2},"a":[1,2,3]},"more",{"and":"more"}]'
    found = shrinker.shrink(document, Answered(Status.REFUSED, b"DUPLICATE_NAME"))
    assert found is not None
    assert found.expected.body.startswith(b"DUPLICATE_NAME")
    assert found.answered.status is Status.CANONICAL
    assert len(found.document) <= len(b'{"a":1,"a":[]}')


def test_what_the_reference_does_not_expect_is_left_as_it_was_generated(shrinker: Shrinker) -> None:
    assert shrinker.shrink(b"[1.0]", Answered(Status.CANONICAL, b"[1.0]")) is None


def test_without_time_the_row_stays_as_it_is() -> None:
    with Dialogue(REFERENCE, deadline=10) as oracle, Dialogue(NAIVE, deadline=10) as sdk:
        assert Shrinker(oracle, sdk, until=0.0).shrink(b"[1.0]", Answered(Status.CANONICAL, b"[1]")) is None
