"""Subjects within this process, each by what it does in another way than a right one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from holdfast.conformance.faults.subject import Facts, Op, Outcome, Subject, SubjectAnswer

# A folder for one that keeps its facts in memory alone.
NOWHERE = Path("/nowhere")


class Fake(Subject):
    """It keeps facts, in a file of its folder if there is one, and recognises an operation by them.

    What is given is called in the place of a method, with this and the arguments of that.
    """

    def __init__(self, facts: Facts | None = None, **instead: Callable[..., Any]) -> None:
        self.facts = dict(facts or {})
        self.starts = self.stops = 0
        self.file = NOWHERE / "facts"
        self._instead = instead

    def start(self, folder: Path, under: Sequence[str] = ()) -> None:
        """See `Subject`."""
        del under
        self.starts += 1
        self.file = folder / "facts"
        if self.file.exists():
            self.facts = json.loads(self.file.read_text())
        if "start" in self._instead:
            self._instead["start"](self)

    def submit(self, op: Op) -> SubjectAnswer:
        """See `Subject`."""
        return self._instead["submit"](self, op) if "submit" in self._instead else self.does(op)

    def does(self, op: Op, **more: Any) -> SubjectAnswer:
        """The right answer, or one that differs in this."""
        now, new = time.monotonic_ns(), not op.facts.items() <= self.facts.items()
        self.facts |= op.facts
        if self.file.parent.is_dir():
            self.file.write_text(json.dumps(self.facts))
        return SubjectAnswer(Outcome.OK, now, time.monotonic_ns(), **{"new": new, **more})

    def dump(self) -> Facts:
        """See `Subject`."""
        shown = dict(self.facts)
        return self._instead["dump"](self, shown) if "dump" in self._instead else shown

    def stop(self) -> None:
        """See `Subject`."""
        self.stops += 1
        if "stop" in self._instead:
            self._instead["stop"](self)


def fails(error: Exception) -> Callable[..., NoReturn]:
    """A method that raises this."""

    def failing(*_: object) -> NoReturn:
        raise error

    return failing


def says(outcome: Outcome, text: str = "", **more: Any) -> Callable[..., SubjectAnswer]:
    """A `submit` that does nothing and answers this."""

    def answering(*_: object) -> SubjectAnswer:
        now = time.monotonic_ns()
        return SubjectAnswer(outcome, now, now if outcome is Outcome.OK else None, text, **more)

    return answering
