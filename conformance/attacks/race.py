"""Every operation beside itself and beside each of its rivals, in two processes that ask at once."""

from __future__ import annotations

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.checked import checked, in_sessions
from holdfast.conformance.attacks.model import Kind, S


def race(bench: Bench, kind: Kind[S]) -> None:
    """Some order explains both answers. Who finds the store in use is refused, and nothing of it is kept."""
    for pairs in in_sessions(kind.rivals):
        with checked(bench, kind, workers=2) as play:
            for number, pair in enumerate(pairs):
                calls = [play.make(row) for row in (pair if number % 2 else pair[::-1])]
                play.race(calls)
                play.compare()
                # The same by both, as a caller does that got no answer.
                play.race([play.make(pair[0])] * 2)
                play.compare()
