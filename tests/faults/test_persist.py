"""A workload of which what is refused is sent again to the same process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from holdfast.conformance.faults.lines import puts
from holdfast.conformance.faults.subject import Facts, Op, Outcome, Subject, SubjectAnswer, perform


class Answering(Subject):
    """A subject that gives these answers, one after the other."""

    def __init__(self, *outcomes: Outcome) -> None:
        self._outcomes: Iterator[Outcome] = iter(outcomes)

    def start(self, folder: Path, under: Sequence[str] = ()) -> None:
        """See `Subject`."""

    def submit(self, op: Op) -> SubjectAnswer:
        """See `Subject`."""
        del op
        outcome = next(self._outcomes)
        return SubjectAnswer(outcome, 0, 1 if outcome is Outcome.OK else None)

    def dump(self) -> Facts:
        """See `Subject`."""
        return {}

    def stop(self) -> None:
        """See `Subject`."""


def sent(*outcomes: Outcome) -> list[int]:
    """The numbers of the operations that are sent where these answers come."""
    return [one.op.number for one in perform(Answering(*outcomes), puts(2), again=True).asked]


def test_what_is_refused_is_sent_once_more_and_the_next_one_follows() -> None:
    assert sent(Outcome.REFUSED, Outcome.OK, Outcome.OK) == [1, 1, 2]


def test_what_is_refused_twice_is_left() -> None:
    assert sent(Outcome.REFUSED, Outcome.REFUSED, Outcome.OK) == [1, 1, 2]


def test_nothing_follows_an_operation_whose_effect_is_open() -> None:
    assert sent(Outcome.ERROR) == [1]
    assert sent(Outcome.REFUSED, Outcome.SILENT) == [1, 1]
