"""The bench of a suite test: sessions with the adapter, with a record of every exchange."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any, NoReturn, Protocol

from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.match import declared
from holdfast.conformance.cases.record import Judgement, NonConformance, Record, gravest_of
from holdfast.conformance.cases.session import CONCURRENCY, START, Action, Answer, Session
from holdfast.conformance.cases.values import Scope
from holdfast.conformance.verdict import FailureMode, Verdict, worst
from holdfast.specs import Contract
from holdfast.specs.strictjson import canonical

# How many of a test's findings are described; the others are counted.
_SHOWN = 4
# How many characters of the judged call's arguments are shown; its exchange holds all of them.
_SHOWN_ARGS = 300


@dataclass(frozen=True, slots=True)
class Limits:
    """What this run cannot prove: more workers than the adapter allows, durability on a volatile file system."""

    max_workers: int
    volatile: str | None


class Carrier(Protocol):
    """What carries out the actions of a session: an adapter's driver, or the records of one that did (`Recorded`)."""

    @property
    def workdir(self) -> Path:
        """The folder of the session."""

    def execute(self, action: Action) -> Sequence[Record]:
        """The records of one action. Raises NonConformance."""

    def take_time(self) -> None:
        """Let the session last for as long as its requests do."""

    def finish(self, judgement: Judgement) -> None:
        """End the session."""


class Bench:
    """What a suite test receives: sessions, and the way to report a non-conformance."""

    def __init__(
        self,
        *,
        contract: Contract,
        case: str,
        seed: str,
        make_driver: Callable[[Mapping[str, str]], Carrier],
        not_claimed: Mapping[str, str],
        limits: Limits,
        thorough: float = 1.0,
    ) -> None:
        self._limits = limits
        self.contract = contract
        self.seed = seed
        self.thorough = thorough
        self.not_claimed = not_claimed
        self.scope = Scope(seed=seed, case=case, side="main", defined={}, opened=START, now=START)
        self.records: list[Record] = []
        self._make_driver = make_driver
        self._open_drivers: list[Carrier] = []
        self._sessions = 0
        self._notes: list[str] = []
        self._findings: list[Judgement] = []

    def execute(self, driver: Carrier, action: Action) -> list[Record]:
        """Carry out an action and number its records through the whole test."""
        made = driver.execute(action)
        start = len(self.records)
        # Those of evidence have their numbers.
        self.records += [each if each.n == n else replace(each, n=n) for n, each in enumerate(made, start)]
        return self.records[start:]

    @contextlib.contextmanager
    def session(
        self,
        workers: int = 1,
        config: Mapping[str, str] | None = None,
        surface: str = "ready",
        *,
        now: str = START,
        hurried: bool = True,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> Generator[SuiteSession, None, None]:
        """A session on a fresh store, which is made at the time `now`; closed in order if the test went well.

        Not `hurried`: it has no deadline beside those of its requests, for a number of them that is fixed. `variables`
        are in the environment of its workers, which are started for it; the empty ones are taken out of it.
        """
        if workers > self._limits.max_workers:
            detail = f"the test needs {workers} workers, the adapter allows {self._limits.max_workers}"
            raise NonConformance(Judgement(Verdict.UNSUPPORTED, detail=detail))
        if workers > 1 and CONCURRENCY in self.not_claimed:
            detail = f"the test needs {workers} workers, and the adapter does not claim {CONCURRENCY}"
            raise NonConformance(Judgement(Verdict.UNSUPPORTED, detail=detail))
        driver = self._make_driver(variables)
        if not hurried:
            driver.take_time()
        self._open_drivers.append(driver)
        session = Session(
            self.contract,
            digits=self.scope.digits("adapter", "", 16),
            not_claimed=self.not_claimed,
            config=config,
            surface=surface,
            now=now,
        )
        opened = SuiteSession(
            session,
            self.scope,
            lambda action: self.execute(driver, action),
            workdir=lambda: driver.workdir,
            workers=workers,
            must_be_durable=self.must_be_durable,
        )
        judgement = Judgement(Verdict.NOT_REACHED, detail="the session was left early")
        try:
            yield opened
            opened.end()
            judgement = Judgement(Verdict.CONFORMS)
            self._sessions += 1
        except NonConformance as finding:
            judgement = finding.judgement
            raise
        finally:
            # Hypothesis goes on after a failure; its next session needs workers without an open one.
            driver.finish(judgement)
            self._open_drivers.remove(driver)

    def fail(
        self, verdict: str, message: str, *, expected: str = "", received: str = "", at: int | None = None
    ) -> NoReturn:
        """Report a finding; `verdict` is a name such as `fail_open`.

        `at` is the record that shows it (`Answer.n`), by default the last one. Its call is named, so that a generated
        test identifies its input.
        """
        raise NonConformance(self._judged(verdict, message, expected, received, at))

    def report(
        self,
        verdict: str,
        message: str,
        *,
        expected: str = "",
        received: str = "",
        at: int | None = None,
        silence: FailureMode | None = None,
    ) -> None:
        """Report a finding that ends nothing, as a graver one may come behind it: see `gravest` and `fail`."""
        judged = self._judged(verdict, message, expected, received, at)
        self._findings.append(replace(judged, silence=silence))

    def weigh(
        self, verdict: str, message: str, *, expected: str = "", received: str = "", at: int | None = None
    ) -> None:
        """Report a wrong answer, as what comes later may be graver, and end the test at any other finding.

        For an answer whose effect was as due, or that had to have none.
        """
        if verdict != Verdict.WRONG_REASON.value:
            self.fail(verdict, message, expected=expected, received=received, at=at)
        self.report(verdict, message, expected=expected, received=received, at=at)

    def must_be(self, answer: Answer | str, due: str, what: str) -> Any:
        """The value of an answer. `due` is its outcome, or its outcome with its effect or reason.

        Another answer ends the test. A refusal for another reason is reported, and the test goes on.
        """
        words, value = (answer, None) if isinstance(answer, str) else (answer.words, answer.value)
        if due not in (words, words.partition(" ")[0]):
            otherwise = "over_refusal" if due.startswith("accepted") else "wrong_reason"
            named = {"accepted": "fail_open", "ok": "fail_open", "indeterminate": "indeterminate"}
            verdict = named.get(words.partition(" ")[0], otherwise)
            self.weigh(verdict, what, expected=due, received=words)
        return value

    def same(self, found: object, due: object, verdict: str, what: str) -> None:
        """Weigh what is found if it is not what is due."""
        if found != due:
            self.weigh(verdict, what, expected=f"{due}", received=f"{found}")

    def dice(self, *label: str) -> Random:
        """Dice of this test, fixed by the seed of the run."""
        return Random("\x1f".join((self.seed, self.scope.case, *label)))  # noqa: S311 - nothing is kept secret with it

    def reported(self, first: int = 0, *, take: bool = False) -> list[Judgement]:
        """What was reported behind the `first` findings; `take` them away to report them in another form."""
        found = self._findings[first:]
        if take:
            del self._findings[first:]
        return found

    def gravest(self, last: Judgement) -> Judgement:
        """The judgement of the test: the gravest of what was reported and of `last`, with which it ended."""
        return gravest_of((*self._findings, last))

    def _judged(self, verdict: str, message: str, expected: str, received: str, at: int | None) -> Judgement:
        record = self.records[-1 if at is None else at] if self.records else None
        request = {} if record is None else record.request or {}
        if request.get("op") == "call":
            asked = canonical(request["args"]).decode()
            asked = asked if len(asked) <= _SHOWN_ARGS else f"{asked[:_SHOWN_ARGS]}… ({len(asked)} characters)"
            message = f"{message}; the call was {request['method']} {asked}"
        n = None if record is None else record.n
        return Judgement(Verdict(verdict), None, message, expected, received, n=n)

    def verdict_on(self, method: str, due: Any, got: Any, otherwise: str = "wrong_reason") -> str:
        """The verdict on a value of `method`, or on some of its members, that is not the one that is due.

        `otherwise`, or what the method declares of permissions, rows and refusals if that is graver.
        """
        return worst(filter(None, (declared(self.contract.methods[method], {"": due}, got), Verdict(otherwise)))).value

    def must_be_durable(self) -> None:
        """End the test as not reached if nothing in the workdir could survive."""
        if self._limits.volatile is not None:
            raise NonConformance(judge_volatile(self._limits.volatile))

    def conclude(self) -> Judgement:
        """The judgement of a test that ran to its end: it must have had a session that succeeded."""
        if self._sessions == 0:
            return Judgement(Verdict.NOT_REACHED, detail="the test ended without a single session")
        return Judgement(Verdict.CONFORMS, detail="; ".join(self._notes))

    def note(self, text: str) -> None:
        """Say what the verdict of a test that conforms rests on."""
        self._notes.append(text)

    def tidy(self, judgement: Judgement) -> None:
        """End the sessions that a failed test left open."""
        for driver in self._open_drivers:
            driver.finish(judgement)
        self._open_drivers.clear()


def judge_volatile(kind: str) -> Judgement:
    """The judgement on durability where the workdir lies on a file system of this kind."""
    return Judgement(
        Verdict.NOT_REACHED,
        detail=f"the workdir lies on {kind}, which keeps nothing; durability cannot be judged there",
        advice="Give --workdir a folder on a disk.",
    )


def listed(findings: Sequence[str]) -> str:
    """A text with the first of a test's findings, and how many more there are."""
    more = f"; and {len(findings) - _SHOWN} more" if len(findings) > _SHOWN else ""
    return "; ".join(findings[:_SHOWN]) + more
