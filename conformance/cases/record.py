"""The records of a case from its run, and the judgement that follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum, unique
from typing import Any

from msgspec import convert

from holdfast.conformance.verdict import Exit, FailureMode, Verdict, exit_of
from holdfast.reports.evidence import Event, Exchange, VerdictLine
from holdfast.specs.typed import written

# The ends of a case that a limit of holdfast made.
_LIMITS = frozenset({FailureMode.BUDGET, FailureMode.BUSY, FailureMode.HANG})


@unique
class Side(Enum):
    """A case runs as itself and as its twin."""

    MAIN = "main"
    TWIN = "twin"


@dataclass(frozen=True, slots=True)
class Record:
    """One exchange or local action of one side, numbered from 0. Times are microseconds since the run began.

    `event` has `kind` (crash, hang, garbage, eof: no answer came; done, failed: a local action) and `detail`.
    """

    n: int
    action: str
    worker: int
    request: Mapping[str, Any] | None
    answer: Mapping[str, Any] | None
    event: Mapping[str, Any] | None
    sent_us: int | None
    received_us: int | None

    @classmethod
    def of(cls, line: Exchange) -> Record:
        """The record that a line of evidence holds."""
        members = {name: getattr(line, name) for name in cls.__slots__}
        return cls(**{**members, "event": None if line.event is None else written(line.event)})

    @property
    def is_fresh(self) -> bool:
        """Whether a session begins with it, on a fresh store."""
        asked = self.request or {}
        return asked.get("op") == "open" and asked.get("state") == "fresh"

    def line(self, case: str, side: Side) -> Exchange:
        """The record as a line of evidence."""
        members = {name: getattr(self, name) for name in self.__slots__}
        event = None if self.event is None else Event(**self.event)
        return Exchange(**{**members, "case": case, "side": side.value, "event": event})


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict of a case with its basis: what was expected, what came, and what to do next.

    `side` is its side. `n` is the number of the record there that was judged, the observation where there was one. Both
    are None where no record was judged, as for a case that conforms.
    """

    verdict: Verdict
    silence: FailureMode | None = None
    detail: str = ""
    expected: str = ""
    received: str = ""
    advice: str = ""
    side: Side | None = None
    n: int | None = None

    @classmethod
    def of(cls, line: VerdictLine) -> Judgement:
        """The judgement that a line of evidence holds."""
        return convert({each.name: getattr(line, each.name) for each in fields(cls)}, cls)

    @property
    def place(self) -> str:
        """Its place in the evidence, for a person; empty without a record."""
        if self.side is None:
            return ""
        return f"{self.side.value} side" + ("" if self.n is None else f", exchange {self.n}")

    def placed(self, side: Side, n: int | None) -> Judgement:
        """The same with its place, if it has none yet. A judgement that conforms gets no place."""
        if self.verdict is Verdict.CONFORMS or self.side is not None:
            return self
        return replace(self, side=side, n=n if self.n is None else self.n)


def gravest_of(judgements: Sequence[Judgement]) -> Judgement:
    """The gravest of several; of equals the first. What was found weighs more than what could not be proven.

    Among wrong answers the first one counts, because a later one may follow from it.
    """
    order = (Exit.KIT, Exit.FAIL_OPEN, Exit.NON_CONFORMING, Exit.INCOMPLETE, Exit.OK)
    return min(
        judgements,
        key=lambda each: (order.index(exit_of(each.verdict)), 0 if each.verdict.is_mild else each.verdict.rank),
    )


class NonConformance(Exception):  # noqa: N818 - a result that ends a side early, not an error of the kit
    """Raised inside the interpretation of a case to end it with a verdict."""

    def __init__(self, judgement: Judgement) -> None:
        super().__init__(judgement.detail)
        self.judgement = judgement


def exhausted() -> Judgement:
    """The judgement on a case for which no worker is left."""
    return Judgement(
        Verdict.NOT_REACHED,
        detail="three workers in a row had died before, so the case was not started",
    )


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A case that ran: its judgement and all that it adds to the evidence."""

    case: str
    clauses: tuple[str, ...]
    judgement: Judgement
    main: tuple[Record, ...]
    twin: tuple[Record, ...]
    seconds: float
    restarts: tuple[tuple[int, str], ...] = ()
    logs: tuple[tuple[int, str], ...] = ()
    # How it ended the first time, where a limit of holdfast ended it and it was run again, alone.
    first: CaseResult | None = None

    @property
    def is_limited(self) -> bool:
        """Whether a limit of holdfast ended it: on a quieter machine, or with more time, it may have a verdict."""
        judged = self.judgement
        return judged.verdict is Verdict.NO_VERDICT and judged.silence in _LIMITS

    @property
    def was_not_started(self) -> bool:
        """Whether no worker was left for it."""
        return self.judgement == exhausted()

    @property
    def judged_side(self) -> tuple[Record, ...]:
        """The records of the side that was judged."""
        return self.twin if self.judgement.side is Side.TWIN else self.main
