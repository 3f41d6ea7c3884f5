"""Actions: what the reading of a case, a suite or a fault workload asks the driver of a session to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from holdfast.conformance.cases.record import Record
from holdfast.conformance.verdict import EVENT_KINDS
from holdfast.specs.schema import explain, published_validator

_LOCAL_KINDS = frozenset({"done", "failed"})


class Act(Protocol):
    """One way to act on a live session. A kind of step declares its own acts in its file below `steps/`."""

    @property
    def name(self) -> str:
        """The name of the act in the event of a failure and for the judge."""

    def perform(self, driver: Any, action: Action) -> None:
        """Carry the action out and record it. `driver` is a `holdfast.conformance.cases.drive.Driver`."""

    def unlike(self, record: Record, operand: Mapping[str, Any]) -> str | None:
        """Why the answer or event of a record cannot come from this act; None if it can."""


@dataclass(frozen=True, slots=True)
class Asking:
    """An act that speaks with the adapter: its records hold the answer, or the failure mode in its place.

    An act that is not `awaited` only sends a request. Its record holds no answer yet, or why nothing could be sent.
    """

    name: str
    do: Callable[[Any, Action], None]
    awaited: bool = True

    def perform(self, driver: Any, action: Action) -> None:
        """See `Act`."""
        self.do(driver, action)

    def unlike(self, record: Record, operand: Mapping[str, Any]) -> str | None:
        """See `Act`."""
        del operand
        kind = None if record.event is None else record.event.get("kind")
        if record.answer is not None:
            if not self.awaited:
                return "the case awaits no answer there"
            problem = explain(published_validator("protocol-answer"), {**record.answer, "id": "0"})
            return None if problem is None else f"its answer does not fit the protocol: {problem}"
        if kind is None:
            return "it has neither an answer nor an event" if self.awaited else None
        return None if kind in EVENT_KINDS else of_another_kind(kind, self.name)


@dataclass(frozen=True, slots=True)
class Local:
    """An act of the harness itself that reports nothing: its event is `done`, or `failed` with the reason."""

    name: str
    do: Callable[[Any, Action], str | None]

    def perform(self, driver: Any, action: Action) -> None:
        """See `Act`."""
        driver.locally(action, lambda: (self.do(driver, action), ""))

    def unlike(self, record: Record, operand: Mapping[str, Any]) -> str | None:
        """See `Act`."""
        del operand
        return local_event(record, self.name) or (
            f"{self.name} reports nothing, and this record does"
            if record.event and record.event["kind"] == "done" and record.event.get("detail")
            else None
        )


def local_event(record: Record, name: str) -> str | None:
    """Why a record does not hold the event of an act of the harness; None if it does."""
    if record.answer is not None:
        return "the case awaits no answer there"
    if record.event is None or record.event.get("kind") is None:
        return "it has neither an answer nor an event"
    kind = record.event["kind"]
    return None if kind in _LOCAL_KINDS else of_another_kind(kind, name)


def of_another_kind(kind: object, name: str) -> str:
    """An error if the event of a record does not belong to this act."""
    return f"an event of kind {kind!r} cannot come of {name}"


@dataclass(frozen=True, slots=True)
class Action:
    """One action. `requests` are pairs of worker and request (without id); each yields one record.

    An action without requests yields one record too. `starting` says that the deadline for a start holds.
    """

    act: Act
    note: str
    requests: tuple[tuple[int, Mapping[str, Any]], ...] = ()
    worker: int = 0
    operand: Mapping[str, Any] = field(default_factory=dict)
    starting: bool = False

    @property
    def record_count(self) -> int:
        """The number of records that the action yields."""
        return len(self.requests) or 1
