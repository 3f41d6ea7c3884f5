"""Where in a recording operations begin and are answered, which says what a crash at each place must leave."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.conformance.faults.naming import short
from holdfast.conformance.faults.recording import Event, Recording
from holdfast.conformance.faults.subject import History, Outcome


class UnplacedError(Exception):
    """A success that cannot be placed in the recording, which therefore proves nothing; the text says which."""


@dataclass(frozen=True, slots=True)
class Promises:
    """Where in a recording operations begin and are acknowledged: numbers of recorded operations, by operation.

    `answered` are the places of all answers, refusals and errors included.
    """

    sent: Mapping[int, int]
    acknowledged: Mapping[int, int]
    answered: Mapping[int, int] = field(default_factory=dict)

    def must(self, *points: int) -> frozenset[int]:
        """What must be there after a crash after this recorded operation (0: before the first), or any of these.

        What the same state of the disk must keep if a crash may leave it at several points.
        """
        return frozenset(op for op, number in self.acknowledged.items() if number <= max(points))

    def may(self, *points: int) -> frozenset[int]:
        """The operations that may be there after a crash after any of these: sent, and not refused later."""
        return frozenset(op for op, number in self.sent.items() if number <= min(points))

    @property
    def idle(self) -> frozenset[int]:
        """Where operations begin while no other is under way: the client may have waited before them."""
        spans = {op: range(number, self.acknowledged.get(op, sys.maxsize)) for op, number in self.sent.items()}
        return frozenset(
            number
            for op, number in self.sent.items()
            if not any(number in span for other, span in spans.items() if other != op)
        )


def acknowledgements(recording: Recording, history: History) -> Promises:
    """Each answer is the last thing that left before the client knew it. Its bytes are not read.

    An operation that nothing was recorded after has no place and can have left nothing. Raises UnplacedError.
    """
    sent: dict[int, int] = {}
    acknowledged: dict[int, int] = {}
    answered: dict[int, int] = {}
    # Read once, because they come from a file.
    times, left = array("q"), array("Q")
    for each in recording.operations:
        times.append(each.at)
        if isinstance(each.action, Event):
            left.append(each.number)
    for one in history.asked:
        number, answer = one.op.number, one.answer
        begun = next((place for place, at in enumerate(times, start=1) if at >= answer.sent_at), None)
        if begun is not None and answer.outcome is not Outcome.REFUSED:
            sent[number] = begun
        if answer.came_at is None:
            continue
        # In front of the sending there is the answer to something else.
        last = max((each for each in left if answer.sent_at <= times[each - 1] <= answer.came_at), default=None)
        if last is not None:
            answered[number] = last
        if answer.outcome is not Outcome.OK:
            continue
        if last is None:
            raise UnplacedError(
                f"operation {number} ({short(one.op.text)}) was acknowledged, and nothing that left between its "
                "sending and its success was recorded: the answer came by a way that cannot be seen"
            )
        acknowledged[number] = last
    return Promises(sent, acknowledged, answered)
