"""The store is lost, damaged or replaced, before a mailbox starts on it or under the running one, and comes back.

It is also put into another journal mode by another tool: a mailbox refuses, or puts it back into WAL mode and goes on
(CALYX-HARD-2). And it is moved away from under a running mailbox and comes back under its name: the mailbox
goes on with it, and waits for the disk as before.

Meanwhile every operation and every command is asked. Before a start the contract demands a refusal (CALYX-HARD-6). A
mailbox that runs may go on with what it has open, so that what it answers has to be true of the store as it was. In
neither case a store is made anew or changed by a refusal, and what came before is there when the store is back.
"""

from __future__ import annotations

from functools import partial
from random import Random

from holdfast.conformance.attacks.histories import Deck
from holdfast.conformance.attacks.model import is_done, received
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.suites.calyx_replay.envelopes import FORGERIES
from holdfast.conformance.suites.calyx_replay.generate import WORKERS, Draw, Step, dice_of, leap
from holdfast.conformance.suites.calyx_replay.runner import (
    ASIDE,
    COMMAND,
    COMMANDS,
    HistoryRunner,
    verdict_of,
)

_ASKED = (
    "send",
    "again",
    "prune",
    "migrate",
    "forge",
    "too early",
    "prune too much",
    *(f"command {name}" for name in COMMANDS),
)
# What is refused before the store is asked.
_BEFORE_THE_STORE = frozenset({"TIMESTAMP_OUT_OF_WINDOW", "RETENTION_TOO_SHORT", *FORGERIES.values()})
_WAYS = ("lost", "cut", "replaced")
_FOLDER, _STORE = "runtime/mailbox", "runtime/mailbox/replay_state.db"
_BESIDE = ("-wal", "-shm", "-journal")
# The lengths to which a database is cut: nothing is left, or a part of the first page, which holds the schema.
_SIZES = (0, 1, 99, 512)
# How the file in its place begins: in another format, or with the mark of SQLite and something else behind it.
_OTHERS = (b"", b"SQLite format 3\0")
_LENGTH = 8192
# How many ways a history has, because a session has a deadline, and how many histories have all ways.
_TOGETHER = 2
_UNLOGGED = "unlogged"
_DEALT = (*(f"{way} {when}" for way in (*_WAYS, _UNLOGGED) for when in ("before", "under")), "away", "away")
HISTORIES = len(_DEALT) // _TOGETHER
# What is asked for while it is in another journal mode, beside a command that writes, and when the store is back.
_WRITES = ("send", "again", "prune", "migrate")


def losses() -> Draw:
    """Draws histories with the ways: before a start and while it runs. Each has something to do for every operation."""
    deck = Deck(_DEALT)

    def draw(dice: Random) -> list[Step]:
        ways = [deck.deal(dice) for _ in range(_TOGETHER)]
        steps = [leap(dice), Step("send"), Step("insert", which=2), Step("leave", lists=(1, 1, 1)), Step("send")]
        steps += [Step(way, dice.randrange(WORKERS), dice.randrange(2**16)) for way in ways]
        return [*steps, Step("prune"), Step("migrate", 1), *(Step("again", which=which) for which in range(2))]

    return draw


class LossRunner(HistoryRunner):
    """A history in which the store is lost for a while."""

    def step(self, step: Step) -> None:
        """See `histories.HistoryRunner`."""
        way, _, when = step.what.partition(" ")
        if way in _WAYS:
            self._rob(step, way, runs=when == "under")
        elif way == _UNLOGGED:
            self._unlog(step, runs=when == "under")
        elif way == "away":
            self._move_away(step)
        else:
            super().step(step)

    def _rob(self, step: Step, way: str, *, runs: bool) -> None:
        self._settle()
        session, dice, before = self._session, dice_of(step), self._worlds.possible
        workers = range(WORKERS) if runs else (step.worker,)
        if runs:
            # Each has its store open, if it ever has. What it knows lies in the database itself, not in a log.
            for worker in workers:
                session.restart(worker)
                session.observe("state", worker=worker)
        else:
            for worker in range(WORKERS):
                session.restart(worker)
                session.kill(worker)
        session.copy(_FOLDER, ASIDE)
        self._take(way, dice, log=not runs)
        if not runs:
            session.reopen(*workers)
        digest = session.file(_STORE)["sha256"]
        session.inspect(damaged=True)
        for what in dice.sample(_ASKED, len(_ASKED)):
            self._offered(what, step.worker, strict=not runs, gone=way == "lost")
        session.inspect(damaged=True)
        if (not runs or way == "lost") and session.file(_STORE)["sha256"] != digest:
            self._differs("fail_open", "a store that is left as it is", "one that was made anew, or changed")
        self._remaining.inspect()
        session.kill(*workers)
        for found in session.tree(_FOLDER):
            if found["path"].startswith(_STORE):
                session.remove(found["path"])
        session.copy(ASIDE, _FOLDER)
        session.reopen(*range(WORKERS))
        self._worlds.possible = before
        self._look(*range(WORKERS))

    def _move_away(self, step: Step) -> None:
        """What is answered meanwhile counts: the files are the same."""
        self._settle()
        session, dice = self._session, dice_of(step)
        for worker in range(WORKERS):
            session.restart(worker)
            session.observe("state", worker=worker)
        session.move(_FOLDER, ASIDE)
        for what in dice.sample(_ASKED, len(_ASKED)):
            self._offered(what, step.worker, strict=False, gone=True)
        if session.file(_STORE)["exists"]:
            self._differs(
                "fail_open", "no store where the folder of the store was moved away", "one that was made anew"
            )
        session.move(ASIDE, _FOLDER)
        for what in dice.sample(_WRITES, len(_WRITES)):
            self._offered(what, step.worker, strict=False, gone=False)
        for worker in range(WORKERS):
            shown = "connections" if self._can("connections") else "state"
            if session.sample(shown, worker=worker) is None:
                # It fails until it is started again.
                session.restart(worker)
            self._look_at_connections(worker)
        self._look(*range(WORKERS))

    def _unlog(self, step: Step, *, runs: bool) -> None:
        """Another tool puts the store into another journal mode. It cannot where the running mailbox has it open."""
        self._settle()
        session, dice = self._session, dice_of(step)
        for worker in range(WORKERS):
            session.restart(worker)
            if runs:
                # Each has met its store, and may have asked for its mode.
                self._offered("send", worker, strict=False, gone=False)
            else:
                session.kill(worker)
        is_other = session.switch(_STORE, "delete")
        if not (is_other or runs):
            self._bench.fail("not_reached", "no process has the store open, and its journal mode cannot be changed")
        if not runs:
            session.reopen(*range(WORKERS))
        if is_other:
            for what in dice.sample((*_WRITES, f"command {dice.choice(COMMANDS[:2])}"), len(_WRITES) + 1):
                done = self._offered(what, step.worker, strict=False, gone=False)
                mode = session.inspect()["journal_mode"] if done else None
                if mode not in (None, "wal"):
                    self._differs("fail_open", "STORE_UNAVAILABLE, or WAL mode", f"{what} is done in mode {mode}")
            session.kill(*range(WORKERS))
            session.switch(_STORE, "wal")
            session.reopen(*range(WORKERS))
        self._look(*range(WORKERS))

    # The store

    def _take(self, way: str, dice: Random, *, log: bool) -> None:
        """Take it away. A `log` beside it goes as well."""
        session = self._session
        for suffix in _BESIDE if log or way == "lost" else ():
            if session.file(f"{_STORE}{suffix}")["exists"]:
                session.remove(f"{_STORE}{suffix}")
        if way == "lost":
            session.remove(_STORE)
        elif way == "cut":
            session.cut(_STORE, dice.choice(_SIZES))
        else:
            session.place(_STORE, dice.choice(_OTHERS) + dice.randbytes(_LENGTH))

    # What is asked meanwhile

    def _offered(self, what: str, worker: int, *, strict: bool, gone: bool) -> bool:
        """Ask for one operation or command; whether it was done. `strict`: it must not be. `gone`: there is no file."""
        if not self._is_possible(what):
            return False
        call = self._calls[what](0)
        answer, due = self._ask(call, worker), self._due(call)
        if due <= _BEFORE_THE_STORE:
            # The refusal is decided before the store is asked, so what became of the store does not matter.
            if answer.said not in due:
                self._untrue(answer, " or ".join(sorted(due)))
            return False
        # The list may be looked for before the store. What `inspect` says of a store that is lost is open.
        is_unlisted = answer.reason == "NOTHING_TO_MIGRATE" and not self._left.is_there
        is_failed = answer.outcome == "ok" and (not is_done(answer) or what == "command inspect")
        if answer.reason == "STORE_UNAVAILABLE" or is_unlisted or is_failed:
            return False
        strict = strict or (gone and call.method == COMMAND)
        if strict or not self._worlds.narrow(partial(call.after, answer, fails=False)):
            self._untrue(answer, "STORE_UNAVAILABLE" if strict else "STORE_UNAVAILABLE, or what was true of it")
        return is_done(answer)

    def _untrue(self, answer: Answer, expected: str) -> None:
        verdict = "fail_open" if is_done(answer) else verdict_of([answer], [[]])
        self._differs(verdict, expected, received(answer))
