"""Every operation and every command on more than a page, a cache or a small counter is likely to hold."""

from __future__ import annotations

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.checked import checked
from holdfast.conformance.attacks.model import Kind, S


def volume(bench: Bench, kind: Kind[S]) -> None:
    """As many rows as the contract declares, brought by one call; then everything, and what was first once more."""
    with checked(bench, kind) as play:
        first = play.make(kind.writing[0])
        play.ask(first)
        play.ask(play.make(kind.growing[0], kind.volume))
        play.session.inspect()
        for row in (*kind.operations, *kind.commands):
            play.ask(play.make(row))
        play.ask(first)
        play.session.inspect()
