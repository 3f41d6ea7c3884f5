"""The store is moved away, is no store any more, or is another one, before a process starts and while it runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.checked import checked
from holdfast.conformance.attacks.model import Kind, S, is_done
from holdfast.conformance.attacks.session import SuiteSession

_ASIDE, _OLDER = "aside", "older"
_WAYS = ("moved away", "lost", "cut", "replaced")


def lost_store(bench: Bench, kind: Kind[S]) -> None:
    """Before a start everything is refused. Who runs may go on with what it has open: that is there at the end."""
    folder, file = kind.store
    for way in _WAYS:
        for runs in (False, True):
            with checked(bench, kind) as play:
                session = play.session
                play.ask(play.make(kind.writing[0]))
                session.kill()
                session.copy(folder, _OLDER)
                session.reopen()
                # What was acknowledged last is not in the older one.
                play.ask(play.make(kind.writing[-2]))
                calls = [play.make(row) for row in (*kind.operations, *kind.commands)]
                if not runs:
                    session.kill()
                put_back = _taken(session, way, folder, file, runs=runs)
                if not runs:
                    session.reopen()
                before = session.inspect(damaged=True)
                for call in calls:
                    if is_done(play.ask(call, lost=True)) and not runs:
                        bench.fail("fail_open", f"{call.row} was done on a store that is {way}")
                after = session.inspect(damaged=True)
                if not runs and after["rows"] != before["rows"]:
                    bench.fail("state_leak", f"a store that is {way} was changed", received=str(after["rows"])[:400])
                gone = {"moved away": folder, "lost": file}.get(way)
                if gone is not None and session.file(gone)["exists"]:
                    bench.fail("fail_open", f"a store that is {way} was made anew")
                session.kill()
                put_back()
                session.reopen()


def _taken(session: SuiteSession, way: str, folder: str, file: str, *, runs: bool) -> Callable[[], None]:
    """Take the store away; what is returned brings it back."""
    if way == "moved away" or (way == "replaced" and not runs):
        session.move(folder, _ASIDE)
        if way == "replaced":
            # From before the last acknowledged request.
            session.copy(_OLDER, folder)
        return lambda: session.move(_ASIDE, folder)
    session.copy(file, _ASIDE)
    if way == "lost":
        session.remove(file)
    elif way == "cut":
        session.cut(file, 0)
    else:
        session.place(file, f"no {PurePosixPath(file).name}\n".encode())
    return lambda: session.copy(_ASIDE, file)
