"""A byte of any file of the store changes, or the file is cut or lost, before a process starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from random import Random

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.checked import CheckedSession, checked
from holdfast.conformance.attacks.model import Call, Kind, S
from holdfast.conformance.cases.values import from_base64url

_KEPT = "kept"
# How many bytes of the files of each kind are changed.
_PLACES = 6


def damaged_files(bench: Bench, kind: Kind[S]) -> None:
    """It is found, or everything is as it was acknowledged; and nothing that was acknowledged is new."""
    with checked(bench, kind) as play:
        session, calls, home = play.session, list[Call](), kind.home
        for _ in range(2):
            for row in (*kind.writing, *kind.writing):
                calls.append(play.make(row))
                play.ask(calls[-1])
            # What an opening finds in its log, a store may write elsewhere.
            session.restart()
        play.ask(play.make(kind.writing[0]))
        session.kill()
        session.copy(home, _KEPT)
        tried = 0
        for path, what, data in _damages(play, bench.dice("damage"), round(_PLACES * bench.thorough)):
            if data is None:
                session.remove(path)
            else:
                session.place(path, data)
            if session.starts_on_what_is_there():
                _must_notice(play, calls, f"{path} is {what}")
            tried += 1
            session.kill()
            session.copy(_KEPT, home)
        session.reopen()
        if not tried:
            bench.fail("not_reached", "the store has no file of a kind that is known, or all are too long")


def _damages(play: CheckedSession[S], dice: Random, places: int) -> Iterator[tuple[str, str, bytes | None]]:
    """A file, what becomes of it, and what it holds then; None if it is gone."""
    found = [each for each in play.session.tree(play.model.store[0]) if each["size"]]
    for kind in play.model.kinds_of_files:
        paths = [each["path"] for each in found if fnmatchcase(each["path"].rpartition("/")[2], kind)]
        read = {path: from_base64url(play.session.file(path)["bytes"] or "") for path in paths}
        files = [(path, data) for path, data in read.items() if data]
        for number in range(places if files else 0):
            path, data = dice.choice(files)
            at = dice.randrange(len(data))
            yield path, f"changed at {at}", data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]
            if number == 0:
                yield path, f"cut to {at}", data[:at]
                yield path, "lost", None


def _must_notice(play: CheckedSession[S], calls: Sequence[Call], what: str) -> None:
    method, member = play.model.whole
    report = play.session.sample(method)
    if report is not None and report[member]:
        must_be_shown(play, f"{method} passes the store; {what}")
    nothing_is_new(play, calls, what)


def must_be_shown(play: CheckedSession[S], what: str, but: Sequence[str] = ()) -> None:
    """Every observation but that of damage, and these, shows what is due, or nothing."""
    for due in play.model.observations(play.state):
        if due.read is None and due.method not in (play.model.whole[0], *but):
            shown = play.session.sample(due.method, due.args)
            if shown is not None and due.of(shown) != due.due:
                expected, received = f"{due.due} or a fault"[:400], str(shown)[:400]
                play.bench.fail("fail_open", f"{due} answers; {what}", expected=expected, received=received)


def nothing_is_new(play: CheckedSession[S], calls: Sequence[Call], what: str) -> None:
    """What was acknowledged is known, or refused."""
    for call in calls:
        known = all(each.said == "accepted prior" for each in play.model.outcomes(play.state, call, None))
        if known and play.session.call(call.method, call.args).effect == "new":
            play.bench.fail("fail_open", f"{call.row} was acknowledged and is new: {what}")
