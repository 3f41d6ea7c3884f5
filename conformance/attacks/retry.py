"""Every operation and every command once more: here, after a restart, after a kill, and through another process."""

from __future__ import annotations

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.checked import checked, in_sessions
from holdfast.conformance.attacks.model import Kind, S


def retry(bench: Bench, kind: Kind[S]) -> None:
    """What was answered is answered again, and has no second effect. A command is another process each time."""
    first = kind.writing[0]
    for rows in in_sessions((*kind.operations, *kind.commands)):
        with checked(bench, kind, workers=2) as play:
            for row in rows:
                play.ask(play.make(first))
                call = play.make(row)
                play.ask(call)
                if row in kind.commands:
                    # Who had the store and gave it to the command may have kept what it knew.
                    play.ask(play.make(first), worker=1, lost=True)
                    play.leave(1)
                    play.compare()
                play.ask_again(call)
                for how in ("restart", "kill"):
                    play.end(how)
                    play.ask_again(call)
                play.leave()
                play.ask(call, worker=1)
                play.leave(1)
