"""Plays the steps of a history against a session, and holds each answer and each inspection against the model."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any, NoReturn

from msgspec import structs

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.explore import Candidate
from holdfast.conformance.attacks.histories import PossibleStates, in_some_order
from holdfast.conformance.attacks.model import is_done, received
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import START, Answer
from holdfast.conformance.suites.calyx_replay import model
from holdfast.conformance.suites.calyx_replay.candidates import MACHINE, Snapshot, TraceLog, offered
from holdfast.conformance.suites.calyx_replay.data_at_rest import Remaining
from holdfast.conformance.suites.calyx_replay.envelopes import Envelopes, LeftBehind
from holdfast.conformance.suites.calyx_replay.generate import LEAPS, WORKERS, Step, dice_of
from holdfast.conformance.suites.calyx_replay.model import (
    BEGINNING,
    EFFECTS,
    NEVER,
    Due,
    Inserted,
    Letter,
    Outcome,
    State,
)
from holdfast.conformance.suites.calyx_replay.older import Inserting
from holdfast.conformance.suites.calyx_replay.settings import Settings

COMMAND = "command_line"
COMMANDS = ("prune", "migrate", "inspect")
# A commit returns when the disk has it: FULL and EXTRA, as SQLite numbers them.
_WAITING = (2, 3)
_DIFFERS = "the mailbox differs from the model"
# Where the harness puts a copy of the mailbox.
ASIDE = "set-aside"
# Of more rows than these a worker is not asked: the evidence holds them once already.
_MANY = 100


@dataclass(frozen=True, slots=True)
class Call:
    """One call: how it is sent, what the model says of it in a state, and the letter that it brings."""

    method: str
    args: Mapping[str, Any]
    outcomes: Callable[[State], Iterable[Outcome]]
    letter: Letter | None = None

    def after(self, answer: Answer, state: State, *, fails: bool) -> Iterator[State]:
        """What may be after an answer. What `fails` may also have done nothing, or leave open whether it did."""
        outcomes = list(self.outcomes(state))
        yield from (end for due, end in outcomes if due.fits(answer))
        is_open, is_failed = answer.outcome == "indeterminate", answer.outcome == "ok" and not is_done(answer)
        if fails and (is_open or is_failed or answer.reason == "STORE_UNAVAILABLE"):
            yield state
        if fails and is_open:
            yield from (end for _, end in outcomes)


def unready(connections: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """What is wrong with connections of each purpose: the verdict, what is due, and what they answered."""
    for purpose, pragmas in connections.items():
        if purpose != "observe" and pragmas["synchronous"] not in _WAITING:
            yield "lost_durability", f"{purpose} waits for the disk", f"synchronous {pragmas}"
        if (pragmas["foreign_keys"], pragmas["journal_mode"]) != (1, "wal"):
            yield "state_leak", f"{purpose} with foreign keys and in WAL mode", f"{pragmas}"


def verdict_of(answers: Sequence[Answer], due: Sequence[Sequence[Due]]) -> str:
    """What it means that these answers are not due."""
    accepted = [answer for answer in answers if is_done(answer)]
    keys = [answer.value["replay_key"] for answer in accepted if "replay_key" in answer.value]
    open_to = sum(any(each.said in EFFECTS or each.said == "NOTHING_TO_MIGRATE" for each in one) for one in due)
    if len(accepted) > open_to or len(set(keys)) < len(keys):
        return "fail_open"
    if any(answer.outcome == "indeterminate" for answer in answers):
        return "indeterminate"
    if not accepted and answers[0].outcome != "ok" and all({each.said for each in one} <= EFFECTS for one in due):
        return "over_refusal"
    return "wrong_reason"


def in_order(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows as text, in an order that no store decides."""
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


class HistoryRunner:
    """One history under way. It skips what the adapter does not claim, and what does not apply now."""

    def __init__(self, bench: Bench, session: SuiteSession, settings: Settings, *, remembers: bool) -> None:
        self._bench, self._session, self._settings = bench, session, settings
        self._terms = settings.terms(bench.contract, remembers=remembers)
        self._worlds, self._letters = PossibleStates(State()), Envelopes(session, self._terms.most)
        listed, envelopes = (settings.value(bench.contract, name) for name in ("seen_cache_path", "envelopes_path"))
        self._left = LeftBehind(session, self._letters, listed=listed, envelopes=envelopes, factor=settings.factor)
        self._inserting = Inserting(session, self._letters)
        self._traces = TraceLog()
        self._remaining = Remaining(bench, session, listed, f"{envelopes}/", f"{ASIDE}/")
        self._moved, self._steady_until, self._counted = timedelta(), NEVER, (0, timedelta())
        self._judged: int | None = None
        # Calls by their names, some about the letter with a number.
        self._calls: Mapping[str, Callable[[int], Call]] = {
            "send": lambda _: self._accepting(self._letters.make(0)),
            "again": lambda which: self._accepting(self._letters.of(which)),
            "same id": lambda which: self._accepting(self._letters.twin(which)),
            "forge": lambda which: self._accepting(self._letters.forged(self._letters.of(which), "signature")),
            "too early": lambda _: self._accepting(self._letters.make(3600)),
            # To the shortest retention, and to a shorter one.
            "prune": lambda _: self._pruning(self._terms.least.total_seconds()),
            "prune too much": lambda _: self._pruning(self._terms.least.total_seconds() / 2),
            "migrate": lambda _: self._migrating(),
            **{f"command {name}": partial(self._commanding, name) for name in COMMANDS},
        }
        self._steps: Mapping[str, Callable[[Step], None]] = {
            "send": lambda step: self._call(step, self._accepting(self._letters.make(step.seconds))),
            "send dated": lambda step: self._call(step, self._accepting(self._letters.make(step.seconds))),
            "prune": lambda step: self._call(step, self._pruning(step.seconds)),
            "prune near": self._prune_near,
            "leave": lambda step: self._left.leave(*step.lists),
            "leave unsound": lambda step: self._left.leave(*step.lists, unsound=step.which),
            "leave one": lambda step: self._leave_one(step, found=True),
            "leave an id": lambda step: self._leave_one(step, found=False),
            "clock": self._clock,
            "clock to": self._clock,
            "leap": lambda step: self._move(step.to or LEAPS[step.which]) if self._now < MACHINE[1] else None,
            "look": lambda step: self._look(step.worker),
            "send long": lambda step: self._call(step, self._accepting(self._longest(step.which))),
            "leave long": lambda step: self._left.leave_one(self._longest(step.which), found=True, more=True),
            "insert": lambda step: self._inserted(self._inserting.recent(step, len(self._worlds.possible[0].known))),
            "insert old": lambda step: self._inserted(self._inserting.of_older_versions(step, dice_of(step))),
            "count": lambda _: self._count_prunes(),
            "restart": self._restart,
            "kill": lambda step: self._kill(step.worker),
            "crash": lambda _: self._kill(*range(WORKERS)),
        }

    @property
    def _now(self) -> datetime:
        return datetime.fromisoformat(self._session.now)

    def step(self, step: Step) -> None:
        """See `histories.HistoryRunner`."""
        verb, _, rest = step.what.partition(" ")
        verbs = {"kill": self._interrupt, "forge": self._forge}
        before = self._worlds.possible[0]
        if step.what in self._steps:
            self._steps[step.what](step)
        elif verb in verbs:
            verbs[verb](step, rest)
        elif self._is_possible(step.what):
            self._call(step, self._calls[step.what](step.which))
        self._left_letters()
        self._traces.note(step, self._letters.made, self._left.now, before, self._worlds.possible[0])

    def _left_letters(self) -> None:
        """What lies there for version 0 may come in."""
        for letter in self._left.now.letters.values() if self._left.now is not None else ():
            self._remaining.made(letter)

    def offers(self, dice: Random) -> Sequence[Candidate[Step]]:
        """See `explore.Explorable`."""
        state = model.aged(self._terms, self._worlds.possible[0], self._now)
        at = Snapshot(self._terms, state, self._now, self._letters.made, self._left, self._traces)
        offers = offered(dice, at, self._bench.not_claimed)
        stretched = [self._settings.stretched(offer.step) for offer in offers]
        return [
            offer if step is offer.step else structs.replace(offer, step=step)
            for offer, step in zip(offers, stretched, strict=True)
        ]

    def compare(self) -> None:
        """See `histories.HistoryRunner`."""
        self._look(*range(WORKERS))
        for worker in range(WORKERS):
            self._look_at_connections(worker)
        self._count_prunes()
        if not self._left.is_kept:
            self._differs("lost_durability", "the list as version 0 left it", "something else")
        self._remaining.inspect()

    def _count_prunes(self) -> None:
        """Since the last count it has pruned by itself once, and once for each interval that the clock has moved."""
        before, moved = self._counted
        most = before + 1 + (self._moved - moved) // self._terms.interval
        count = self._session.observe("pruned")["automatic"] if self._can("pruned") else 0
        if count > most:
            self._differs("state_leak", f"at most {most} automatic prunes", f"{count}")
        self._counted = count, self._moved

    # Operations

    def _accepting(self, letter: Letter) -> Call:
        args = {"envelope": letter.data}
        return Call("accept", args, lambda state: model.accept(self._terms, state, letter, self._now), letter)

    def _forge(self, step: Step, rest: str) -> None:
        """Send a forgery of a letter that never came, or of one that was made before."""
        *new, way = rest.split()
        letter = self._letters.make(0) if new else self._letters.of(step.which)
        self._call(step, self._accepting(self._letters.forged(letter, way)))

    def _pruning(self, seconds: float) -> Call:
        hours = seconds / 3600 if seconds else None
        args = {} if hours is None else {"retention_hours": hours}
        return Call("prune", args, lambda state: model.prune(self._terms, state, hours, self._now))

    def _longest(self, more: int) -> Letter:
        """A letter that has as many bytes as one may have, and some more."""
        return self._letters.long(self._terms.most + more)

    def _migrating(self, seen: tuple[datetime, datetime] | None = None) -> Call:
        return Call("migrate", {}, lambda state: model.migrate(self._terms, state, self._left.now, self._now, seen))

    def _commanding(self, command: str, _: int) -> Call:
        """The command line, which may go by the clock of the session or of the machine."""

        def outcomes(state: State) -> Iterator[Outcome]:
            if command == "prune":
                for clock in (self._now, MACHINE[0]):
                    yield from model.prune(self._terms, state, None, clock)
            elif command == "migrate":
                for seen in (None, MACHINE):
                    yield from self._migrating(seen).outcomes(state)
            else:
                yield Due("prior"), state

        return Call(COMMAND, {"arguments": [command]}, outcomes)

    def _prune_near(self, step: Step) -> None:
        """Keep a little more or less than the age of one record."""
        record = self._worlds.possible[0].records.get(self._letters.of(step.which).key)
        if record is None:
            return
        seconds = (self._now - record.latest).total_seconds() + step.seconds
        if seconds > self._terms.least.total_seconds() + 1:
            self._call(step, self._pruning(seconds))

    def _is_possible(self, *names: str) -> bool:
        """Whether calls can be made. An envelope from ahead of the window is not migrated: it outlives its record."""
        commands = any(name.startswith("command") for name in names)
        if commands and (not self._can(COMMAND) or self._now <= MACHINE[1]):
            return False
        return self._left.latest <= self._now + self._terms.window or not any("migrate" in name for name in names)

    def _due(self, call: Call) -> set[str]:
        """What may be said of a call."""
        return {due.said for state in self._worlds.possible for due, _ in call.outcomes(state)}

    def _made(self, *calls: Call) -> None:
        """The letters of these calls may come in without an answer that says so."""
        for letter in (call.letter for call in calls if call.letter is not None):
            self._remaining.made(letter)

    def _ask(self, call: Call, worker: int, *, aborted: bool = False) -> Answer:
        answer = self._session.call(call.method, call.args, worker)
        if call.letter is not None:
            self._remaining.answered(call.letter, answer, aborted=aborted)
        return answer

    def _call(self, step: Step, call: Call) -> None:
        """Call it, and let it fail at a failpoint if the step says so, and if it is sure to come as far."""
        is_command, other = call.method == COMMAND, (step.worker + 1) % WORKERS
        if is_command:
            self._settle()
        aborted = bool(step.point) and self._due(call) == {"new"} and self._can("hold_at")
        if aborted:
            self._session.provoke("hold_at", {"point": step.point, "fault": "abort"}, step.worker)

        def called() -> State:
            answer = self._ask(call, step.worker, aborted=aborted)
            if is_command:
                self._remaining.inspect()
            self._judge([answer], [call], aborted=aborted)
            if not is_command and (aborted or call.method != "accept"):
                self._look_at_connections(step.worker)
            if aborted or call.method != "accept" or not self._is_sure:
                self._look(other)
            return self._worlds.possible[0]

        if call.method in ("accept", "migrate"):
            called()
        else:
            self._remaining.pruning(self._worlds.possible[0], called)

    def _judge(
        self,
        answers: Sequence[Answer],
        calls: Sequence[Call],
        *,
        aborted: bool = False,
        orders: Iterable[Sequence[int]] | None = None,
    ) -> None:
        """Hold answers of calls at one time against the model: some order of them has to explain all."""
        # A command that finds others at work waits for them. It may fail beside one that is held (CALYX-OPS-1).
        together = len(answers) > 1
        self._judged = answers[-1].n
        after = [
            partial(call.after, answer, fails=aborted or (together and call.method != COMMAND))
            for call, answer in zip(calls, answers, strict=True)
        ]
        possible = self._worlds.possible

        def ends(state: State) -> Iterator[State]:
            found = in_some_order(state, after, orders)
            # Of many orders, those that leave the same rows are one.
            return found if orders is None else (model.at_once(each, state.count) for each in found)

        if self._worlds.narrow(ends):
            return
        due = [{str(due): due for state in possible for due, _ in call.outcomes(state)} for call in calls]
        effects = [each for each in due[0].values() if each.said in EFFECTS]
        known = all(answer.outcome == "refused" for answer in answers)
        if len(answers) == 1 and effects and is_done(answers[0]):
            # It counts otherwise than the model. What is stored says what that means.
            self._worlds.narrow(lambda state: [end for each, end in calls[0].outcomes(state) if each in effects])
            self._look(0)
            known = True
        expected = ", and ".join(" or ".join(each) for each in due)
        verdict = verdict_of(answers, [list(each.values()) for each in due])
        # Where the state is known all the same, the history goes on: what it finds later may be graver.
        say = self._bench.weigh if known else self._bench.fail
        told = ", and ".join(map(received, answers))
        say(verdict, _DIFFERS, expected=expected, received=told, at=self._judged)

    # What version 0 left

    def _leave_one(self, step: Step, *, found: bool) -> None:
        letter = self._letters.of(step.which)
        if found or not self._left.has(letter.msg_id):
            self._left.leave_one(letter, found=found, more=bool(step.seconds))

    def _inserted(self, rows: Sequence[Inserted]) -> None:
        """Another program has put records into the store."""
        self._worlds.narrow(lambda state: [model.inserted(state, rows, self._now)])

    # Time and processes

    def _clock(self, step: Step) -> None:
        self._move(f"{'-' if step.seconds < 0 else '+'}{abs(step.seconds):.6f}s")

    def _move(self, to: str) -> None:
        before = self._now
        self._session.clock(to)
        self._moved += abs(self._now - before)
        if self._now < before:
            # It may have pruned at any time up to then: no prune is due within a day of it.
            is_empty = not any(state.count for state in self._worlds.possible)
            self._steady_until = min(self._steady_until, before - self._terms.interval) if is_empty else BEGINNING
        self._worlds.narrow(lambda state: [model.aged(self._terms, state, self._now)])

    def _restart(self, step: Step) -> None:
        self._session.restart(step.worker)
        self._settle()

    def _kill(self, *workers: int) -> None:
        self._settle()
        self._session.kill(*workers)
        self._session.reopen(*workers)

    def _interrupt(self, step: Step, what: str) -> None:
        """Kill a worker within an operation: at a failpoint, or a number of seconds after the call."""
        self._settle()
        call = self._calls[what](step.which)
        held = bool(step.point) and self._can("hold_at")
        # One that is to be held may come to an end before its failpoint.
        if not self._is_possible(what) or (held and self._due(call) != {"new"}):
            return
        self._made(call)
        if held:
            self._session.hold_at(step.point, step.worker)
        self._session.start(call.method, call.args, step.worker)
        if held:
            self._session.reached(step.point)
        else:
            time.sleep(step.seconds)
        # A commit may be in the log and not yet in its index: which of the two counts is open until all have ended.
        ended = (step.worker,) if held else tuple(range(WORKERS))
        self._session.kill(*ended)
        self._session.reopen(*ended)

        def after(state: State) -> Iterator[State]:
            if not held or step.point != "after_commit":
                yield model.aged(self._terms, state, self._now)
            if not held or step.point == "after_commit":
                yield from (end for _, end in call.outcomes(state))

        self._worlds.narrow(after)
        self._look((step.worker + 1) % WORKERS)

    def _can(self, capability: str) -> bool:
        return capability not in self._bench.not_claimed

    # What is stored

    def _settle(self) -> None:
        """Look if it is open what is stored, so that what comes next has few answers. No worker is asked."""
        if not self._is_sure:
            self._look()

    @property
    def _is_sure(self) -> bool:
        """Whether the answers leave nothing open of what is stored."""
        state = model.aged(self._terms, self._worlds.possible[0], self._now)
        return len(self._worlds.possible) == 1 and all(record.sure for record in state.records.values())

    def _look(self, *workers: int) -> None:
        """Inspect the store, ask workers what it holds, and go on with what is there."""
        found = self._session.inspect()
        rows = found["rows"].get("replay_state", [])
        self._remaining.keeps_its_log(found["journal_mode"])
        self._worlds.narrow(lambda state: [model.aged(self._terms, state, self._now)])
        for worker in workers:
            told = self._session.observe("deliveries", worker=worker)["delivered"]
            self._compare(rows, [each["replay_key"] for each in told])
            if len(rows) <= _MANY:
                told = self._session.observe("state", worker=worker)["replay_state"]
                if in_order(told) != in_order(rows):
                    due = f"{len(rows)} rows, as worker {worker} is to show them"
                    self._differs("state_leak", due, f"{told!r}"[:500])
        self._worlds.narrow(lambda state: [model.seen(state, rows)])
        self._remaining.looked(found["rows"])
        late = model.overdue(self._terms, self._worlds.possible[0]) if self._now < self._steady_until else None
        if late is not None:
            self._differs("state_leak", "no record that is older than two days", f"the row of {late}")

    def _look_at_connections(self, worker: int) -> None:
        """A worker's connections wait for the disk after every operation, and after every failure."""
        if not self._can("connections"):
            return
        for wrong in unready(self._session.observe("connections", worker=worker)):
            self._differs(*wrong)

    def _compare(self, rows: Sequence[Mapping[str, Any]], delivered: Sequence[str]) -> None:
        lacks = [model.lacking(state, rows, delivered) for state in self._worlds.possible]
        if self._worlds.narrow(lambda state: [] if model.lacking(state, rows, delivered) else [state]):
            return
        verdict, expected, found = lacks[0] or ("", "", "")
        # Neither what was before nor what is after: half of something was done.
        same = all(lack and lack[0] == verdict for lack in lacks)
        self._differs(verdict if same else "state_leak", expected, found)

    def _differs(self, verdict: str, expected: str, received: str) -> NoReturn:
        self._bench.fail(verdict, _DIFFERS, expected=expected, received=received, at=self._judged)


_USUAL = Settings()


def playing(
    bench: Bench,
    kind: type[HistoryRunner] = HistoryRunner,
    *,
    remembers: bool = False,
    made: str = START,
    settings: Callable[[], Settings] = lambda: _USUAL,
) -> Callable[[], AbstractContextManager[HistoryRunner]]:
    """Begins histories, each in a session of its own.

    `remembers` holds the mailbox to the SHOULD of CALYX-ALG-12. It is `made` at this time, and configured with what
    `settings` are then.
    """

    @contextmanager
    def begin() -> Iterator[HistoryRunner]:
        chosen = settings()
        # On a machine that is busy a history takes longer than a session may; each of its requests has a deadline.
        with bench.session(workers=WORKERS, now=made, config=chosen.config, hurried=False) as session:
            yield kind(bench, session, chosen, remembers=remembers)

    return begin
