"""What a layer showed, and how it is counted while it runs.

Only `Report.clean` is a pass: a layer that could not see all, did not come to the states that matter in its time, or
tried nothing, is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum, unique
from pathlib import Path

from conformance.faults.oracle import Kind, Verdict
from conformance.faults.timeline import Marks


@unique
class Layer(StrEnum):
    """What is done to an implementation."""

    KILL = "kill"
    SIGNALS = "kill by signals"
    TORN_KILL = "kill within a write"
    POWER = "power loss"
    RECOVERY = "crash in recovery"
    ERRORS = "errors of calls"
    SHORT = "short writes"
    SYNC_ERRORS = "error of a sync, then power loss"
    MISSING = "store missing"
    TRUNCATED = "store truncated"
    CORRUPT = "store corrupt"
    FOREIGN = "store of a foreign format"
    LOCKED = "store locked"
    READ_ONLY = "store read-only"
    FULL = "disk full"
    DAMAGE = "damaged bytes"
    DOWN = "dependency killed"
    SLOW = "dependency stopped"
    CLOCK_BACK = "clock stepped back"
    CLOCK_FORWARD = "clock stepped forward"


@dataclass(frozen=True, slots=True)
class Finding:
    """A promise that a layer broke. `point` is the operation of the recording behind or before which it struck, or,
    where nothing is recorded, the number of what was tried; `what` says which of the two.

    `story` says what was pending and lost, or what was done, so that a person can follow it. `kept` is the state of the
    disk as a tar file, beside which lies the recording, if there is one; None if nothing is kept, or an earlier one of
    its class is. `marks` are for the picture of the recording, None where nothing is recorded.
    """

    point: int
    verdict: Verdict
    story: str
    kept: Path | None = None
    what: str = "operation"
    marks: Marks | None = None

    def __str__(self) -> str:
        """For a person."""
        return f"at {self.what} {self.point}: {self.verdict}. {self.story}"


@dataclass(frozen=True, slots=True)
class Report:
    """What a layer showed. `unproven` says in words why it is no pass although nothing was found; `tally` how much of
    what there is was tried, and from which seed.

    `beside` says in words why there is nothing to try: the layer does not apply. Empty wherever it does.
    """

    layer: Layer
    tried: int
    total: int
    tally: str
    findings: tuple[Finding, ...] = ()
    unproven: tuple[str, ...] = ()
    seconds: float = 0.0
    beside: str = ""

    @property
    def clean(self) -> bool:
        """Whether something was tried, all that matters, and nothing was found; or there is nothing to try."""
        return (self.tried > 0 or bool(self.beside)) and not self.findings and not self.unproven


class RunError(Exception):
    """A run that proves nothing; the text says why."""


class Tally:
    """What a layer has seen so far: it stops at `most` findings, and tries `least` points whatever time they take."""

    def __init__(self, layer: Layer, *, seed: int, least: int, most: int) -> None:
        self.layer, self.seed, self.least, self.most = layer, seed, least, most
        self.tried = 0
        self.total = 0
        self.words = ""
        self.beside = ""
        self.findings: list[Finding] = []
        self.unproven: list[str] = []

    def over(self, until: float) -> bool:
        """Whether a layer stops: at this time of the monotonic clock, but not before it has tried what it must."""
        return self.enough() or (time.monotonic() > until and self.tried >= self.least)

    def enough(self) -> bool:
        """Whether a layer can stop. What is lost before the first acknowledgement is no broken promise."""
        return sum(one.verdict.kind is not Kind.INIT for one in self.findings) >= self.most

    def cannot_tell(self, why: str) -> None:
        """Note why nothing is proven, once for all states that show it."""
        if not self.unproven:
            self.unproven.append(why)

    def reported(self, work: Callable[[Tally], None]) -> Report:
        """Do the work of the layer. What keeps it from proving anything ends in the report."""
        began = time.monotonic()
        try:
            work(self)
        except (RunError, OSError) as error:
            self.unproven.append(str(error))
        return Report(
            self.layer,
            self.tried,
            self.total,
            self.words or f"{self.tried} of {self.total}, seed {self.seed}",
            tuple(self.findings),
            tuple(self.unproven),
            time.monotonic() - began,
            self.beside,
        )
