"""The tasks of the workers of `selfcheck`, and their results, as JSON lines."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique

import msgspec

from holdfast.specs.automatic import Site


class Sites(msgspec.Struct, frozen=True):
    """The first line of that list: the files of a reference, each with the number of its lines.

    `bugs` are the planted bugs of which it is known which lines each replaces, by file.
    """

    contract: str
    files: Mapping[str, int]
    bugs: Mapping[str, Mapping[str, tuple[int, ...]]] = {}


class Trial(msgspec.Struct, frozen=True):
    """One case of the plan, run with one store."""

    store: str
    case: str


class Traced(msgspec.Struct, frozen=True):
    """What a test of the unchanged reference executed, and how long it took in seconds.

    A case "" stands for the launcher, which runs before every test.
    """

    test: Trial
    conforms: bool
    seconds: float
    lines: Mapping[str, tuple[int, ...]]
    detail: str = ""


@unique
class End(Enum):
    """How a mutant ended. The first four are kills; all others count as survived."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    CRASHED = "crashed"
    KIT_FAULT = "kit fault"
    SURVIVED = "survived"
    NO_TEST = "no test"
    NOT_TRIED = "not tried"

    @property
    def is_kill(self) -> bool:
        """Whether a test did not conform."""
        return self in (End.KILLED, End.TIMED_OUT, End.CRASHED, End.KIT_FAULT)


class Outcome(msgspec.Struct, frozen=True):
    """What came of one mutant: after how many tests, by which one, and what that showed. `launched` as in `Attack`."""

    id: str
    end: End
    tried: int
    seconds: float = 0.0
    by: Trial | None = None
    verdict: str = ""
    detail: str = ""
    launched: bool = False

    def after(self, before: Outcome) -> Outcome:
        """This outcome, of tests that ran after others. What was not tried before stays so, unless it is killed."""
        if self.end.is_kill or before.end is not End.NOT_TRIED:
            return msgspec.structs.replace(
                self, tried=before.tried + self.tried, seconds=round(before.seconds + self.seconds, 3)
            )
        return before


class Trace(msgspec.Struct, frozen=True, tag=True):
    """The task of a worker: run these tests of the unchanged reference, each in fresh processes."""

    tests: tuple[Trial, ...]


class Attack(msgspec.Struct, frozen=True, tag=True):
    """The task of a worker: run these tests of one mutant in this order, until one does not conform.

    `launched`: the launcher runs one of its lines, so it gets one of its own. `faults` come last.
    """

    site: Site
    tests: tuple[Trial, ...]
    launched: bool
    faults: tuple[Trial, ...] = ()


class Planting(msgspec.Struct, frozen=True, tag=True):
    """The task of a worker: run these cases of one planted bug. `faults` are the last cases.

    `enough`: end after so many that do not conform; 0: run all of them.
    """

    mutant: str
    store: str
    cases: tuple[str, ...]
    faults: tuple[str, ...] = ()
    enough: int = 0


class Shown(msgspec.Struct, frozen=True):
    """The verdict of one case, and how many seconds it took."""

    case: str
    clauses: tuple[str, ...]
    verdict: str
    detail: str = ""
    seconds: float = 0.0


class Harvest(msgspec.Struct, frozen=True):
    """What the cases showed of one planted bug. `problem`: why the launcher did not start; empty if it did."""

    mutant: str
    shown: tuple[Shown, ...]
    problem: str = ""


Task = Trace | Attack | Planting


class Beginning(msgspec.Struct, frozen=True):
    """What a worker is given first. `files` are those of `Sites`, if lines are to be traced."""

    contract: str
    seed: str
    files: Mapping[str, int] = {}
