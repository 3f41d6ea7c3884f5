"""What a case showed, what a run amounts to, and the exit status that says so (docs/verdicts.md)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum, unique
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.specs import Clause


@unique
class Verdict(Enum):
    """What one case showed. Ordered from worst to best; `REPORTED` is the order of reports."""

    KIT_FAULT = "kit_fault"
    FAIL_OPEN = "fail_open"
    LOST_DURABILITY = "lost_durability"
    STATE_LEAK = "state_leak"
    NO_VERDICT = "no_verdict"
    NOT_REACHED = "not_reached"
    INDETERMINATE = "indeterminate"
    UNSUPPORTED = "unsupported"
    WRONG_REASON = "wrong_reason"
    OVER_REFUSAL = "over_refusal"
    CONFORMS = "conforms"

    @property
    def rank(self) -> int:
        """Its place from worst to best."""
        return _RANK[self]

    @property
    def is_open(self) -> bool:
        """Whether it belongs to the fail-open class: something got through, stayed behind, or was lost."""
        return self in OPEN_CLASS

    @property
    def is_mild(self) -> bool:
        """Whether the answer alone was wrong: what a test finds after it may be graver, and is looked for."""
        return self in {Verdict.WRONG_REASON, Verdict.OVER_REFUSAL}

    @property
    def is_incomplete(self) -> bool:
        """Whether nothing was proven either way."""
        return self in INCOMPLETE_CLASS


# What a finding does to a user where its clause has no harm of its own for such a verdict.
_HARM = {
    Verdict.KIT_FAULT: "None is known: the kit failed.",
    Verdict.FAIL_OPEN: "What must be stopped gets through: an effect or an answer nobody allowed, or a second effect.",
    Verdict.LOST_DURABILITY: "What was acknowledged is gone: it may never happen, or may happen once more.",
    Verdict.STATE_LEAK: "A call leaves something behind that it must not, and later calls rest on it.",
    Verdict.WRONG_REASON: "The caller gets a wrong answer, and may do what does not fit what happened.",
    Verdict.OVER_REFUSAL: "What is right is refused: it may never happen, or its caller may not learn that it did.",
}
OPEN_CLASS = frozenset({Verdict.FAIL_OPEN, Verdict.STATE_LEAK, Verdict.LOST_DURABILITY})
INCOMPLETE_CLASS = frozenset({Verdict.NO_VERDICT, Verdict.NOT_REACHED, Verdict.INDETERMINATE, Verdict.UNSUPPORTED})
_RANK = {verdict: rank for rank, verdict in enumerate(Verdict)}
# What reports begin with: a finding goes before what was not proven, and what was declared absent stands last.
REPORTED = tuple(sorted(Verdict, key=lambda verdict: (verdict is Verdict.CONFORMS, verdict.is_incomplete)))


@unique
class FailureMode(Enum):
    """The failure mode: why there is no verdict.

    The adapter crashed, hung, answered garbage or closed its output; it said itself that it failed (`fault`); the
    session's time was used up by answers that came (`budget`); the machine was too busy to tell (`busy`); a record is
    missing.
    """

    CRASH = "crash"
    HANG = "hang"
    GARBAGE = "garbage"
    EOF = "eof"
    MISSING = "missing"
    FAULT = "fault"
    BUDGET = "budget"
    BUSY = "busy"


# How an answer fails to come, as the event of an exchange says it. A `fault` is an answer that came.
EVENT_KINDS = frozenset(silence.value for silence in FailureMode if silence is not FailureMode.FAULT)


@unique
class Exit(IntEnum):
    """Exit status of the command line, the same for every command."""

    OK = 0
    FAIL_OPEN = 10
    NON_CONFORMING = 11
    INCOMPLETE = 12
    ADAPTER = 13
    EXPECTATION = 14
    KIT = 20
    USAGE = 64


# When several apply, the first of these is the exit status.
PRECEDENCE = (
    Exit.USAGE,
    Exit.KIT,
    Exit.ADAPTER,
    Exit.FAIL_OPEN,
    Exit.EXPECTATION,
    Exit.INCOMPLETE,
    Exit.NON_CONFORMING,
)


def harm_of(clause: Clause, verdict: Verdict) -> str:
    """What a user has to fear where a test of `clause` ends with `verdict`: one sentence or two, for every report.

    The clause's own harm only where it is of this verdict: a refusal of what is right makes no second effect. Where
    nothing was proven, the harm of the clause is what may happen. Empty where the test conforms.
    """
    if verdict is Verdict.CONFORMS:
        return ""
    if verdict.is_incomplete:
        return f"Not known. If the clause does not hold: {clause.harm}"
    own = clause.harm if verdict.value in clause.harm_of else None
    return clause.harm_if.get(verdict.value, own) or _HARM[verdict]


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of what one test showed; of none it is NOT_REACHED, because nothing was shown."""
    found = list(verdicts)
    return min(found, key=lambda each: each.rank) if found else Verdict.NOT_REACHED


def gravest_finding(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a run, or of several tests: the gravest finding, and what was not proven only where there is none.

    The exit status does not follow from it: see `gravest`. Of no verdict it is NOT_REACHED.
    """
    found = {*verdicts}
    return next((verdict for verdict in REPORTED if verdict in found), Verdict.NOT_REACHED)


def exit_of(verdict: Verdict) -> Exit:
    """The exit status that a single verdict calls for."""
    if verdict is Verdict.CONFORMS:
        return Exit.OK
    if verdict is Verdict.KIT_FAULT:
        return Exit.KIT
    if verdict.is_open:
        return Exit.FAIL_OPEN
    return Exit.INCOMPLETE if verdict.is_incomplete else Exit.NON_CONFORMING


def can_be_excused(verdict: Verdict) -> bool:
    """Whether an expected failure may leave the exit status alone: what got through or was not proven never does."""
    return exit_of(verdict) is Exit.NON_CONFORMING


def gravest(exits: Iterable[Exit]) -> Exit:
    """The exit status that goes first among several; OK only if all are OK."""
    present = set(exits)
    return next((code for code in PRECEDENCE if code in present), Exit.OK)
