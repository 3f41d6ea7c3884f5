"""m5-log: every operation and every command under the same attacks, so that none is hardly attacked.

The steps stand here, one for each operation and attack; what is due follows from what was done before.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import from_base64url
from holdfast.conformance.suites.m5_log.log import (
    COMMAND,
    COMMANDS,
    OPERATIONS,
    WRITING,
    LogUnderTest,
    is_done,
    must_be_refused,
)
from holdfast.servers.pace import scaled
from holdfast.vectors.derive import derive

_FAMILIES = ("ops", "edges", "by_author", "meta", "vc_raw", "vc_verified", "policy_index", "checkpoints")
_DATABASE, _CURRENT, _ASIDE, _OLDER, _STORE = "m5/db", "m5/db/CURRENT", "aside", "older", "m5"
_CREATE, _APPEND = f"{COMMAND} checkpoint-create", f"{COMMAND} op-append"
RIVALS = (
    *((row, row) for row in (*WRITING, _APPEND, _CREATE)),
    ("put_op", "checkpoint_create"),
    ("put_op", _APPEND),
    ("persist_vc", "persist_verified_vc"),
    ("checkpoint_create", "checkpoint_delete"),
    ("checkpoint_create", _CREATE),
)
# Where nothing may be, of the ways to take a database away.
_GONE = {"moved away": _DATABASE, "lost": _CURRENT}
# How long after its start a command is killed, in seconds, and how many operations its file has.
_MOMENTS, _FILE = (0.1, 0.2, 0.3, 0.35, 0.4, 0.5), 40
# More than the thousand rows that are many: each operation has three.
_MANY = 340
_TOGETHER = 5


@clause("M5-PUT-5", "M5-AC1", "M5-CKP-1", "M5-CLI-1", whole=True, written=True)
def test_every_operation_is_known_when_it_is_asked_for_again(bench: Bench) -> None:
    """Here, after a restart, and through another process. A command is another process each time."""
    rows = (*OPERATIONS, *COMMANDS)
    for first in range(0, len(rows), _TOGETHER):
        with bench.session(workers=2) as session:
            world = LogUnderTest(bench, session, f"again {first}")
            for row in rows[first : first + _TOGETHER]:
                world.ask(world.asked("put_op"))
                asked = world.asked(row)
                world.ask(asked)
                if row in COMMANDS:
                    # Who had the lock and gave it back to the command may have kept what it knew.
                    world.ask(world.asked("put_op"), worker=1, lost=True)
                    session.restart(1)
                    world.compare()
                world.ask_again(asked)
                session.restart()
                world.ask_again(asked)
                # It gives back the lock.
                session.restart()
                world.ask(asked, worker=1)
                session.restart(1)
            world.compare()


@clause("M5-OPEN-4", "M5-PUT-5", "M5-CKP-1", "M5-CLI-3", whole=True, written=True)
def test_every_operation_beside_itself_and_its_rivals_is_explained_by_some_order(bench: Bench) -> None:
    """Two processes ask at once. Who finds the store in use is refused, and nothing of it is kept."""
    for first in range(0, len(RIVALS), _TOGETHER):
        with bench.session(workers=2) as session:
            world = LogUnderTest(bench, session, f"rivals {first}")
            for number, pair in enumerate(RIVALS[first : first + _TOGETHER]):
                asked = [world.asked(row) for row in (pair if number % 2 else pair[::-1])]
                for worker in range(2):
                    session.restart(worker)
                answers = session.race([(each.method, each.args) for each in asked])
                world.settle(list(zip(asked, answers, strict=True)), lost=True)
                for worker in range(2):
                    session.restart(worker)
                world.compare()


@clause("M5-CRS-1", "M5-AC1", "M5-PUT-3", "M5-OPT-3", provocations=("hold_at",), whole=True, written=True)
def test_every_operation_that_fails_or_is_killed_is_whole_or_not_at_all(bench: Bench) -> None:
    """Before its batch and behind its witness, in the session that made the store and in later ones."""
    for row in WRITING:
        with bench.session() as session:
            world = LogUnderTest(bench, session, f"ends {row}")
            for _ in range(2):
                asked = world.asked(row)
                session.provoke("hold_at", {"point": "before_batch", "fault": "abort"})
                answer = world.ask(asked, lost=True)
                if is_done(answer):
                    bench.fail("fail_open", f"{row} failed before its batch, and was accepted")
                world.compare()
                # What ends before the point has disarmed it.
                session.provoke("hold_at", {"point": "before_batch", "fault": "abort"})
                must_be_refused(bench, session.call("put_op", {"op": "AA"}), "OP_MALFORMED", "no operation")
                world.ask(world.asked("put_op"))
                for point in ("before_batch", "after_witness"):
                    session.hold_at(point)
                    session.start(asked.method, asked.args)
                    session.reached(point)
                    session.begin_again("kill")
                    # What was not acknowledged is there whole or not at all.
                    world.compare(asked)
                world.ask(asked)
            world.compare()


@clause("M5-CLI-1", "M5-CLI-3", "M5-CRS-1", provocations=(COMMAND,), whole=True, written=True)
def test_a_command_that_is_killed_at_any_moment_has_done_all_or_nothing(bench: Bench) -> None:
    """While it starts, while it works, and behind that. It is done when it is run again."""
    for row in (_APPEND, _CREATE):
        with bench.session() as session:
            world = LogUnderTest(bench, session, f"killed {row}")
            world.ask(world.asked("put_op"))
            for moment in _MOMENTS:
                asked = world.file([world.made() for _ in range(_FILE)]) if row == _APPEND else world.asked(row)
                session.start(asked.method, asked.args)
                time.sleep(scaled(moment))
                session.begin_again("kill")
                world.compare(asked)
                world.ask(asked)
            world.compare()


@clause("M5-OPEN-4", "M5-CLI-6", "M5-VER-7", whole=True, written=True)
def test_no_operation_and_no_command_takes_another_store_for_its_own(bench: Bench) -> None:
    """Its folder is moved away, CURRENT is lost or cut, or it is replaced, before a start and under who runs.

    Before a start everything is refused. Who runs may go on with what it has open: what it did is there once the
    database is back.
    """
    for way in ("moved away", "lost", "cut", "replaced"):
        for runs in (False, True):
            with bench.session() as session:
                world = LogUnderTest(bench, session, f"{way} {runs}")
                world.ask(world.asked("put_op"))
                session.kill()
                session.copy(_DATABASE, _OLDER)
                session.reopen()
                world.ask(world.asked("checkpoint_create"))
                everything = [world.asked(row) for row in (*OPERATIONS, *COMMANDS)]
                if not runs:
                    session.kill()
                back = _taken(session, way, runs=runs)
                if not runs:
                    session.reopen()
                before = session.inspect(damaged=True)
                for asked in everything:
                    answer = world.ask(asked, lost=True)
                    if is_done(answer) and not runs:
                        bench.fail("fail_open", f"{asked.row} was done on a store that is {way}")
                after = session.inspect(damaged=True)
                if not runs and after["rows"] != before["rows"]:
                    bench.fail("state_leak", f"a store that is {way} was changed", received=str(after["rows"])[:400])
                if way in _GONE and session.file(_GONE[way])["exists"]:
                    bench.fail("fail_open", f"a store that is {way} was made anew")
                session.kill()
                back()
                session.reopen()
                world.compare()


def _taken(session: SuiteSession, way: str, *, runs: bool) -> Callable[[], None]:
    """Take the database away; what is returned brings it back."""
    if way == "moved away" or (way == "replaced" and not runs):
        session.move(_DATABASE, _ASIDE)
        if way == "replaced":
            # From before the last acknowledged request.
            session.copy(_OLDER, _DATABASE)
        return lambda: session.move(_ASIDE, _DATABASE)
    session.copy(_CURRENT, _ASIDE)
    if way == "lost":
        session.remove(_CURRENT)
    elif way == "cut":
        session.cut(_CURRENT, 0)
    else:
        session.place(_CURRENT, b"MANIFEST-999999\n")
    return lambda: session.copy(_ASIDE, _CURRENT)


@clause("M5-OPEN-1", written=True)
def test_a_store_without_any_one_of_its_families_is_refused(bench: Bench) -> None:
    """With rows or without. The family is not made anew."""
    with bench.session() as session:
        world = LogUnderTest(bench, session, "families")
        for row in ("put_op", "persist_verified_vc", "checkpoint_create"):
            world.ask(world.asked(row))
        session.kill()
        session.copy(_STORE, _ASIDE)
        for family in _FAMILIES:
            session.drop(family)
            session.reopen()
            answer = session.call("put_op", {"op": world.made().raw})
            if answer.reason != "STORE_UNAVAILABLE":
                verdict = "fail_open" if is_done(answer) else "wrong_reason"
                bench.weigh(
                    verdict, f"the store has no {family}", expected="STORE_UNAVAILABLE", received=answer.outcome
                )
            session.kill()
            if family in session.inspect()["tables"]:
                bench.fail("fail_open", f"{family} was made anew")
            session.copy(_ASIDE, _STORE)
        session.reopen()
        world.compare()


@clause("M5-CLI-1", "M5-CKP-5", "M5-REP-1", "M5-AC2", whole=True, written=True)
def test_every_operation_is_done_on_many_operations(bench: Bench) -> None:
    """On more than a thousand rows, which one file brought."""
    with bench.session() as session:
        world = LogUnderTest(bench, session, "many")
        world.ask(world.file([world.made() for _ in range(_MANY)]))
        session.inspect()
        for row in (*OPERATIONS, *COMMANDS):
            world.ask(world.asked(row))
        session.inspect()
        world.compare()


@clause("M5-CLI-1", "M5-CLI-5", written=True)
def test_a_command_that_is_refused_leaves_everything_as_it_was(bench: Bench) -> None:
    """Files that are missing, cut or no array of operations, words that are unknown, and what is nearly an id."""
    with bench.session() as session:
        world = LogUnderTest(bench, session, "refused")
        world.ask(world.asked("put_op"))
        file = from_base64url(derive("m5.batch", [world.made().raw]))
        session.place("cut", file[:-1])
        session.place("forged", file[:-1] + bytes([file[-1] ^ 1]))
        world.ask(world.asked("checkpoint_create"))
        made = world.log.highest
        near = (
            f"{made + 1}",
            "x",
            "",
            f"{made}O",
            f"{made}.5",
            f"{made}x",
            f"{made}e0",
            f"{made},",
            f"-{made}",
            f"0x{made}",
        )
        wide = (str(made + 2**width) for width in (8, 16, 32, 53, 63, 64))
        before = session.inspect()["rows"]
        for words in (
            *(["checkpoint-load", each] for each in (*near, *wide)),
            ["op-append", "missing"],
            ["op-append", "cut"],
            ["op-append", "forged"],
            ["op-append"],
            ["replay-from-store", "--from", "nowhere"],
            ["checkpoint-create", "more"],
            ["checkpoint-list", "more"],
            ["verify-store", "more"],
            ["dump-state-json", "more"],
        ):
            if session.provoke(COMMAND, {"arguments": words})["status"] == 0:
                bench.fail("fail_open", f"{' '.join(words)} exits with 0")
        if session.inspect()["rows"] != before:
            bench.fail("state_leak", "a command that failed has changed the store")
