"""Every operation that writes fails or is killed at its failpoints, and a command at any moment."""

from __future__ import annotations

import time

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.checked import checked
from holdfast.conformance.attacks.model import Kind, S, is_done
from holdfast.servers.pace import scaled

# How long after its start a command is killed, in seconds, and how much it has to do.
_MOMENTS, _MUCH = (0.1, 0.2, 0.3, 0.35, 0.4, 0.5), 40


def interrupted(bench: Bench, kind: Kind[S]) -> None:
    """It is there whole or not at all, in the session that made the store and in later ones."""
    before = kind.points[0]
    for row in kind.writing:
        with checked(bench, kind) as play:
            session = play.session
            for _ in range(2):
                call = play.make(row)
                session.provoke("hold_at", {"point": before, "fault": "abort"})
                if is_done(play.ask(call, lost=True)):
                    bench.fail("fail_open", f"{row} failed before it wrote anything, and was accepted")
                play.compare()
                # What ends before the point has disarmed it.
                session.provoke("hold_at", {"point": before, "fault": "abort"})
                wrong, reason = play.model.refused()
                bench.must_be(session.call(wrong.method, wrong.args), f"refused {reason}", f"{wrong}")
                play.ask(play.make(kind.writing[0]))
                for point in kind.points:
                    session.hold_at(point)
                    play.start(call)
                    session.reached(point)
                    play.end("kill")
                    play.compare(call)
                play.ask(call)


def killed_commands(bench: Bench, kind: Kind[S]) -> None:
    """While it starts, while it works, and after that. It is done when it is run again."""
    for row in kind.growing:
        with checked(bench, kind) as play:
            play.ask(play.make(kind.writing[0]))
            for moment in _MOMENTS:
                call = play.make(row, _MUCH)
                play.start(call)
                time.sleep(scaled(moment))
                play.end("kill")
                play.compare(call)
                play.ask(call)
