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


# How long what comes beside a held call has for itself, in seconds.
_ALONE = 0.03


def beside(bench: Bench, kind: Kind[S]) -> None:
    """A call is held at each of its failpoints, and each other one comes meanwhile: some order explains both.

    Each of them was done once at least while another overlapped it, or the test has shown nothing.
    """
    left = {*kind.beside, *(point for points in kind.stops.values() for point in points)}
    with checked(bench, kind, workers=2) as play:
        for other in kind.beside:
            for row, points in kind.stops.items():
                for point in points:
                    done = play.overlap(point, play.make(row), play.make(other), _ALONE)
                    play.compare()
                    left -= {each for each, is_done in zip((point, other), done, strict=True) if is_done}
    if left:
        bench.fail("not_reached", f"{', '.join(sorted(left))}: never done while something overlapped it")
