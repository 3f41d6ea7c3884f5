"""What the model says of the commands of operators, which may go by the clock of the session or of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.conformance.suites.calyx_replay import model
from holdfast.conformance.suites.calyx_replay.judging import printed
from holdfast.conformance.suites.calyx_replay.model import Due, Left, Outcome, State, Terms
from holdfast.conformance.suites.calyx_replay.offers import MACHINE


@dataclass(frozen=True, slots=True)
class Command:
    """One command: its name, the values of its session, the session's time, and what version 0 has left."""

    name: str
    terms: Terms
    now: datetime
    left: Left | None

    def outcomes(self, state: State) -> Iterator[Outcome]:
        """What the model says of it in a state."""
        if self.name == "prune":
            for clock in (self.now, MACHINE[0]):
                yield from model.prune(self.terms, state, None, clock)
        elif self.name == "migrate":
            yield from model.migrate(self.terms, state, self.left, self.now)
            yield from model.migrate(self.terms, state, self.left, self.now, seen=MACHINE)
        else:
            yield Due("prior"), state

    def after(self, told: Mapping[str, Any], state: State, *, fails: bool = False) -> list[State]:
        """What may be after it has printed this. What `fails` may also have done nothing, where its status says so."""
        ends = [end for due, end in self.outcomes(state) if printed(due, told, counted=self.name == "prune")]
        return [*ends, state] if fails and told["status"] else ends
