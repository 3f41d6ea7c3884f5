"""A session whose answers and observations are held against the model of its contract.

Calls that overlap, and calls that got no answer, are judged in one way: some order of the calls explains all answers
and what is stored after them; a call without an answer may or may not have happened.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Generic, TypeVar

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.histories import PossibleStates, in_some_order
from holdfast.conformance.attacks.model import (
    FAILED,
    SHOWN,
    Call,
    Kind,
    Model,
    Observation,
    Outcome,
    is_done,
    received,
    said,
)
from holdfast.conformance.attacks.session import Handle, SuiteSession
from holdfast.conformance.cases.record import NonConformance
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.servers.pace import scaled
from holdfast.specs.strictjson import canonical

S = TypeVar("S")
T = TypeVar("T")

# How many rows of the matrix share a session: a session has a deadline.
_TOGETHER = 5


class CheckedSession(Generic[S]):
    """One session, with the states that its store may be in."""

    def __init__(self, bench: Bench, session: SuiteSession, model: Model[S]) -> None:
        self.bench, self.session, self.model = bench, session, model
        self.states = PossibleStates(model.first)
        self._numbers = itertools.count(1)
        for path, data in model.files(model.first).items():
            session.place(path, data)

    @property
    def state(self) -> S:
        """A state that the store may be in."""
        return self.states.possible[0]

    # Calls

    def make(self, row: str, count: int = 5) -> Call:
        """A call of this row that is due to be done. What it needs is done first."""
        while need := self.model.needs(self.state, row):
            self.ask(self.make(need))
        return self.model.call(self.state, row, next(self._numbers), count)

    def place(self, call: Call) -> None:
        """Write the files of a call, and arrange what it needs."""
        for path, data in call.files.items():
            self.session.place(path, data)
        self.model.before(call)

    def change(self, call: Call) -> None:
        """Change what lies beside the store: a call of no method."""
        self.place(call)
        self.states.narrow(lambda state: (each.state for each in self.model.outcomes(state, call, None)))

    def ask(self, call: Call, worker: int | None = None, *, lost: bool = False) -> Answer:
        """Call the worker of the call, or another, and check the answer. `lost`: the store may not be available."""
        call = call if worker is None else replace(call, worker=worker)
        self.place(call)
        answer = self.session.call(call.method, call.args, call.worker)
        self.model.after(call, answer)
        self.check([(call, answer)], lost=lost)
        return answer

    def start(self, call: Call) -> None:
        """Call, and do not wait."""
        self.place(call)
        self.session.start(call.method, call.args, call.worker)

    def ask_again(self, call: Call) -> None:
        """Call once more, with an observation before and after, so that the process knows what is there."""
        self.must_show(next(iter(self.model.observations(self.state))), f"before {call.row} again")
        self.ask(call)
        self.must_show(next(iter(self.model.observations(self.state))), f"after {call.row} again")

    def race(self, calls: Sequence[Call]) -> list[Call]:
        """One call from each worker at once; those of which nothing may have been done."""
        calls = [replace(call, worker=worker) for worker, call in enumerate(calls)]
        for worker, call in enumerate(calls):
            self.place(call)
            self.leave(worker)
        answers = self.session.race([(call.method, call.args) for call in calls])
        for call, answer in zip(calls, answers, strict=True):
            self.model.after(call, answer)
        self.check(list(zip(calls, answers, strict=True)), lost=self.model.exclusive or self.model.busy)
        for worker in range(len(calls)):
            self.leave(worker)
        return [call for call, answer in zip(calls, answers, strict=True) if self._is_undone(answer)]

    def overlap(
        self, point: str, first: Call, second: Call, alone: float | None = None, later: str = ""
    ) -> tuple[bool, bool]:
        """Worker 0 is held at a point, while worker 1 gets another call. Whether each was done, and did not fail.

        The second has `alone` seconds for itself, as it may wait for the first, and both may fail. By default it must
        not wait, and none may fail. `later` is how much later it is for the second.
        """
        session, both = self.session, (first, replace(second, worker=1))
        self._hold(point, first)
        if later:
            session.clock(later, waiting=0)
        self.place(both[1])
        handles = [Handle(0, first.method), session.start(second.method, second.args, 1)]
        came: list[tuple[Call, Answer]] = []

        def finish(worker: int) -> None:
            answer = session.finish(handles[worker])
            self.model.after(both[worker], answer)
            came.append((both[worker], answer))

        if alone is None:
            finish(1)
            session.release(point)
            finish(0)
        else:
            time.sleep(scaled(alone))
            session.release(point)
            for worker in (0, 1):
                # What says that it failed has done nothing.
                session.unless_fault(partial(finish, worker))
        if later:
            session.clock("+0s")
        self.check(came, lost=True)
        done = [call for call, answer in came if not self._is_undone(answer)]
        return both[0] in done, both[1] in done

    def _hold(self, point: str, call: Call) -> None:
        """A call is made, and comes to a failpoint."""
        self.place(call)
        self.session.hold(*self.model.holding(point), call.worker)
        self.session.start(call.method, call.args, call.worker)
        self.session.reached(point)
        self.states.narrow(lambda state: [self.model.held(state, call)])

    def end(self, how: str, worker: int = 0) -> None:
        """A worker ends and comes back to the same store: `how` is `restart` or `kill`."""
        self.session.begin_again(how, worker)
        self.states.narrow(lambda state: [self.model.ended(state, worker)])

    def kill_at(self, point: str, call: Call) -> None:
        """The process is killed at a failpoint, if the call comes to it: at the last one everything is done."""
        if not self.model.passes(self.state, call, point):
            self.ask(call)
            return
        self._hold(point, call)
        self.end("kill", call.worker)
        self.model.after(call, None)
        self.compare(call, worker=call.worker, sure=point == self.model.points[-1])

    def leave(self, worker: int = 0) -> None:
        """Let other processes have the store, if it is one process that has it."""
        if self.model.exclusive:
            self.end("restart", worker)

    # Answers

    def check(self, answered: Sequence[tuple[Call, Answer]], *, lost: bool) -> None:
        """Some order of calls that overlapped has to explain all answers.

        After a wrong answer that ends no test, what was done counts as done: one error is not reported as two.
        """
        calls = [partial(self._after, call, answer, lost=lost) for call, answer in answered]
        if not self.states.narrow(lambda state: in_some_order(state, calls)):
            self._differ(answered, lost=lost)
            calls = [partial(self._after, call, answer, lost=lost, wrong=True) for call, answer in answered]
            self.states.narrow(lambda state: in_some_order(state, calls))

    def _after(self, call: Call, answer: Answer, state: S, *, lost: bool, wrong: bool = False) -> Iterator[S]:
        for each in self._due(state, call, answer):
            if each.fits(answer) or (wrong and each.is_done == is_done(answer)):
                yield each.state
        if lost and self._is_undone(answer):
            yield state

    def _is_undone(self, answer: Answer) -> bool:
        return answer.said in self.model.unavailable or said(answer) == FAILED

    def _due(self, state: S, call: Call, answer: Answer) -> list[Outcome[S]]:
        return list(self.model.outcomes(state, call, answer.value))

    def _differ(self, answered: Sequence[tuple[Call, Answer]], *, lost: bool) -> None:
        """Report answers that nothing explains."""
        orders = [self._verdict(order, lost=lost) for order in itertools.permutations(answered)]
        verdict, due = max(orders, key=lambda found: Verdict(found[0]).rank)
        told = "; ".join(f"{call}: {answer.outcome}" for call, answer in answered)[:SHOWN]
        came = "; ".join(received(answer) for _, answer in answered)
        self.bench.weigh(verdict, told, expected=due[:SHOWN], received=came[:SHOWN], at=answered[-1][1].n)

    def _verdict(self, order: Iterable[tuple[Call, Answer]], *, lost: bool) -> tuple[str, str]:
        """How wrong the first answer is that an order does not explain, and what is due."""
        state = self.state
        for call, answer in order:
            due = self._due(state, call, answer)
            fits = [each for each in due if each.fits(answer)]
            if fits:
                state = fits[0].state
            elif not (lost and self._is_undone(answer)):
                verdict = self._how_wrong(call, answer, due)
                return verdict, " or ".join(f"{each.said} {_shown(each.value)}" for each in due)
        return "over_refusal", "that it is done"

    def _how_wrong(self, call: Call, answer: Answer, due: Sequence[Outcome[S]]) -> str:
        done = [each for each in due if each.is_done]
        if not is_done(answer):
            return "wrong_reason" if answer.outcome == "refused" and not done else answer.judged("over_refusal")
        if not done:
            # None is due at all where what it says cannot be so.
            return "fail_open" if due else "wrong_reason"
        same = [each for each in done if each.said == said(answer)]
        if not same:
            return "fail_open" if answer.effect == "new" else self.model.untold
        value = same[0].value
        if not isinstance(value, dict) or not isinstance(answer.value, dict):
            return same[0].otherwise
        found = {name: answer.value.get(name) for name in value}
        return self.bench.verdict_on(call.method, value, found, same[0].otherwise)

    # What is stored

    def compare(self, *unanswered: Call, worker: int = 0, sure: bool = False) -> None:
        """What the store shows is what is known, with any of `unanswered` or with none; if `sure`, with all."""
        seen = [self.session.observe(self.model.chosen, self.model.choosing(call), worker) for call in unanswered]
        maybe = [partial(self._maybe, call, shows, sure=sure) for call, shows in zip(unanswered, seen, strict=True)]
        shown: dict[bytes, Any] = {}
        faults: list[NonConformance] = []
        wrong: list[tuple[Observation, Any]] = []

        def kept(state: S) -> Iterator[S]:
            for end in in_some_order(state, maybe):
                found = self._wrong(end, worker, shown, faults)
                wrong.extend([found] if found is not None else [])
                if found is None:
                    yield end

        if not self.states.narrow(kept):
            self._must_be(*wrong[0], "what is stored")
        self.states.narrow(lambda state: [self.model.learned(state)])
        if faults:
            raise faults[0]

    def _maybe(self, call: Call, seen: Any, state: S, *, sure: bool) -> Iterator[S]:
        if not sure:
            yield state
        yield from (each.state for each in self.model.outcomes(state, call, seen))

    def _wrong(
        self, state: S, worker: int, shown: dict[bytes, Any], faults: list[NonConformance]
    ) -> tuple[Observation, Any] | None:
        """What is shown otherwise than is due in this state. An observation that fails hides no other one."""
        # What the harness reads itself comes first: a worker may fail at what it finds.
        for due in sorted(self.model.observations(state), key=lambda each: each.read is None):
            key = canonical([due.method, dict(due.args), due.worker])
            if key not in shown:
                try:
                    shown[key] = self._look(due, worker)
                except NonConformance as finding:
                    if finding.judgement.silence is not FailureMode.FAULT:
                        raise
                    shown[key] = None
                    faults.append(finding)
            if shown[key] is not None and due.of(shown[key]) != due.due:
                return due, shown[key]
        return None

    def must_show(self, due: Observation, when: str, worker: int = 0) -> None:
        """An observation shows what is due in the state that is possible. Of several, everything says which it is."""
        if len(self.states.possible) > 1:
            self.compare(worker=worker)
        else:
            self._must_be(due, self._look(due, worker), when)

    def _look(self, due: Observation, worker: int) -> Any:
        worker = worker if due.worker is None else due.worker
        return self.session.observe(due.method, due.args, worker) if due.read is None else due.read(self.session)

    def _must_be(self, due: Observation, shown: Any, when: str) -> None:
        if (found := due.of(shown)) == due.due:
            return
        verdict = due.otherwise(found) if callable(due.otherwise) else due.otherwise
        if due.read is None:
            verdict = self.bench.verdict_on(due.method, due.due, found, verdict)
        names = [name for name in due.due if due.due[name] != found.get(name)]
        expected = {name: _only(due.due[name], found.get(name)) for name in names}
        shows = {name: _only(found.get(name), due.due[name]) for name in names}
        told = f"{due} shows another {', '.join(names)}: {when}"
        self.bench.weigh(verdict, told, expected=str(expected)[:SHOWN], received=str(shows)[:SHOWN])


def _only(these: Any, others: Any) -> Any:
    """Of rows those that the others have not."""
    rows = isinstance(these, list) and isinstance(others, list)
    return [each for each in these if each not in others] if rows else these


def _shown(value: Any) -> str:
    return "" if value is None or callable(value) else str(value)


def in_sessions(every: Sequence[T]) -> Iterator[Sequence[T]]:
    """All of them, those of one session at a time."""
    return (every[first : first + _TOGETHER] for first in range(0, len(every), _TOGETHER))


@contextlib.contextmanager
def checked(
    bench: Bench, kind: Kind[S], workers: int = 1, config: Mapping[str, str] | None = None
) -> Iterator[CheckedSession[S]]:
    """A fresh session of a contract; what its store shows at the end is checked."""
    with bench.session(workers, config or kind.config, hurried=kind.hurried) as session:
        play = CheckedSession(bench, session, kind(session))
        yield play
        play.compare()
