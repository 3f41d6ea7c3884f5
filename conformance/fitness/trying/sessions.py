"""The record of what was sent and what came back, word for word, and what a session of probes is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from holdfast.conformance.fitness.model import EvidenceClass, Probe, ProbeAnswer, Statement


class Session(Protocol):
    """One connection of one role."""

    def send(self, text: str, parameters: Sequence[Any] = ()) -> tuple[Statement, ProbeAnswer]:
        """Send one statement and wait for what it says. An error is an answer; never raises."""

    def begin(self) -> None:
        """Begin what `rollback` undoes. Never raises: the next statement reports the error."""

    def rollback(self) -> None:
        """Undo what was not committed. Never raises."""


class Copy(Protocol):
    """A copy of a surface, on which everything can be tried."""

    def opened(self, *sessions: tuple[str, str]) -> AbstractContextManager[tuple[Session, ...]]:
        """Sessions by (label, role), closed at the end. Raises LostError or the driver's error."""


class Attempt:
    """The record of one probe while it is made."""

    def __init__(self, name: str, evidence: EvidenceClass) -> None:
        self.name = name
        self.evidence = evidence
        self._sent: list[tuple[Statement, ProbeAnswer]] = []

    def send(self, session: Session, text: str, parameters: Sequence[Any] = ()) -> ProbeAnswer:
        """Send a statement, and keep it with its answer."""
        statement, answer = session.send(text, parameters)
        self.keep(statement, answer)
        return answer

    def keep(self, statement: Statement, answer: ProbeAnswer) -> None:
        """Keep what was sent elsewhere."""
        self._sent.append((statement, answer))

    def done(self, failed: str = "") -> Probe:
        """What came of it; if it could not be tried, what was tried on the way stays visible, and shows nothing."""
        statements, answers = zip(*self._sent, strict=True) if self._sent else ((), ())
        return Probe(self.name, self.evidence, statements, answers, failed)


def gone(answer: ProbeAnswer) -> bool:
    """Whether it only says that the connection, or the whole server, went away."""
    return (answer.sqlstate or "").startswith(("08", "57P"))
