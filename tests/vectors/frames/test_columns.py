"""Whole batches get the answers that single documents get."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from holdfast.vectors.jcs.frames import Answered, Status, run

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")

from holdfast.vectors.jcs.frames.columns import answered, canonical_frames, run_columns, status_bytes  # noqa: E402 - takes pyarrow

FAKE = (sys.executable, "-S", "-E", str(Path(__file__).with_name("fake_sdk.py")))
DOCUMENTS = [b"%d" % number * (number % 300) for number in range(5000)]
DOCUMENTS[7:7] = [b"?no", b"!crash", b"", b"!leave", b"!twice"]
DOCUMENTS[3000:3000] = [b"!text", b"x" * 600_000, b"?"]


@pytest.mark.parametrize("size", [1, 700, 4096, 10_000])
def test_batches_of_any_size_get_the_answers_of_their_documents(size: int) -> None:
    documents = DOCUMENTS if size > 1 else DOCUMENTS[:40]
    batches = [pa.array(documents[at : at + size], pa.binary()) for at in range(0, len(documents), size)]
    answers = [*run_columns(FAKE, batches, deadline=5)]
    assert [len(answer) for answer in answers] == [len(batch) for batch in batches]
    rows = [answered(answer, row) for answer in answers for row in range(len(answer))]
    assert _verdicts(rows) == _verdicts(run(FAKE, documents, deadline=5))


def _verdicts(answers: Iterable[Answered]) -> list[Answered]:
    """Answers without the words where there was none: they quote what happened to come in one piece."""
    return [
        answer if answer.status in (Status.CANONICAL, Status.REFUSED) else answer._replace(body=b"")
        for answer in answers
    ]


def test_empty_batches_and_slices_keep_their_places() -> None:
    whole = pa.array([b"a", b"?", b"b", b"c"], pa.binary())
    batches = [whole[:0], whole[1:3], whole[:0], whole[:0], whole[3:], whole[:0]]
    answers = [*run_columns(FAKE, batches, deadline=5)]
    assert [[answered(answer, row).status for row in range(len(answer))] for answer in answers] == [
        [],
        [Status.REFUSED, Status.CANONICAL],
        [],
        [],
        [Status.CANONICAL],
        [],
    ]
    assert [len(answer) for answer in run_columns(FAKE, [whole[:0]], deadline=5)] == [0]
    assert [*run_columns(FAKE, [], deadline=5)] == []


def test_a_batch_is_compared_in_one_go() -> None:
    (answers,) = run_columns(FAKE, [pa.array([b"a", b"?", b"b", b"!crash"], pa.binary())], deadline=5)
    assert bytes(status_bytes(answers)) == b"CRCX"
    assert bytes(status_bytes(answers[1:3])) == b"RC"
    assert answered(answers, 1) == Answered(Status.REFUSED, b"refused: ?")
    expected = canonical_frames(pa.array([b"a", None, b"c", b"!crash"], pa.binary()))
    assert pc.equal(answers, expected).to_pylist() == [True, None, False, False]


def test_batches_are_drawn_only_a_bounded_way_ahead() -> None:
    drawn = 0

    def endless() -> Iterator[object]:
        nonlocal drawn
        while True:
            drawn += 1
            yield pa.array([b"x"] * 1000, pa.binary())

    answers = run_columns(FAKE, endless(), deadline=5)
    for _ in range(20):
        next(answers)
    assert drawn <= 27
    answers.close()  # type: ignore[attr-defined]
