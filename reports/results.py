"""What other tools' formats need of a run: one result for each case, and one for the run as a whole.

JUnit and Allure use it. It is made from evidence (`holdfast.conformance.run.results`), so it has no further
information.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, unique

# The contract that the run itself stands under, beside the contracts that it is about.
RUN = "holdfast"


@unique
class Outcome(Enum):
    """How other tools have to show a result."""

    PASSED = "passed"
    FAILED = "failed"
    # No verdict could be formed: the implementation is neither sound nor broken by this result.
    ERROR = "error"
    # It does not bear on the exit status of the run.
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Result:
    """One case. `verdict` is holdfast's own word; `message` is one line and `text` the whole explanation, with what the
    clauses say, which is `about`.

    `cause` is the heading of the findings that it belongs to, with what usually mends them. `excused` is the issue
    under which the failure is expected. `severity` is that of the gravest clause: `critical` for a MUST, `minor` for a
    SHOULD. `transcript` is the conversation, a line for each exchange. `started` is None where nothing was exchanged;
    `seconds` is how long the case took.
    """

    case: str
    contract: str
    clauses: tuple[str, ...]
    title: str
    outcome: Outcome
    verdict: str
    severity: str
    about: str = ""
    message: str = ""
    text: str = ""
    cause: str = ""
    excused: str | None = None
    transcript: str = ""
    started: datetime | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Results:
    """A run. `exit` is its exit status; `problem` says why that is not 0, beside what the cases show.

    `properties` identify the run: kit, implementation, seed, digests. `contracts` are properties by contract.
    """

    cases: tuple[Result, ...]
    exit: int
    problem: str
    started: datetime
    seconds: float = 0.0
    properties: Mapping[str, str] = field(default_factory=dict)
    contracts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def whole(self) -> Result:
        """The run as a result of its own: it passes only if the exit status is 0."""
        return Result(
            case=f"{RUN}/run",
            contract=RUN,
            clauses=(),
            title="the run as a whole",
            outcome=Outcome.ERROR if self.exit else Outcome.PASSED,
            verdict=f"exit {self.exit}",
            severity="critical",
            message=self.problem,
            text="\n".join([self.problem, *(f"{name}: {value}" for name, value in self.properties.items())]),
            started=self.started,
            seconds=self.seconds,
        )
