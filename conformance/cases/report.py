"""The reports of the harness's own acts: RFC 8785 JSON in the detail of an event. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any

from holdfast.conformance.cases.record import Judgement, NonConformance, Record
from holdfast.conformance.cases.session import Action, local_event, must_be_done
from holdfast.conformance.verdict import Verdict
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.schema import Validator, explain
from holdfast.specs.strictjson import canonical, loads

Value = Mapping[str, Any]


class ReportError(Exception):
    """A detail that the harness does not write in this form."""


@dataclass(frozen=True)
class Report:
    """An act of the harness itself whose event reports a value.

    `do` is given what it is about, the workdir unless `about` says something else of the driver.
    `schema` describes the value, with `definitions` for its references. `contradiction` finds errors that a schema
    cannot express. `difference` finds parts of the value that contradict the action's operand. `rows` are its lists of
    what was done or is kept, with the verdict on one too many (`holdfast.conformance.cases.match.gravity`).
    """

    name: str
    do: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]]
    schema: Mapping[str, Any]
    definitions: Mapping[str, Any] = field(default_factory=dict)
    contradiction: Callable[[Value], str | None] = lambda _: None
    difference: Callable[[Value, Mapping[str, Any]], str | None] = lambda _, __: None
    about: Callable[[Any], Any] = attrgetter("workdir")
    rows: Mapping[str, str] = field(default_factory=dict)
    # What was read last: its detail, the operand and the value. Evidence is compared with the action, and then read.
    _latest: list[tuple[object, object, dict[str, Any]]] = field(default_factory=list, init=False, compare=False)

    def perform(self, driver: Any, action: Action) -> None:
        """See `Act`."""
        driver.locally(action, lambda: (None, written(self.do(self.about(driver), action.operand))))

    def unlike(self, record: Record, operand: Mapping[str, Any]) -> str | None:
        """See `Act`."""
        if record.event is not None and record.event.get("kind") == "done":
            detail = record.event.get("detail")
            try:
                self._latest[:] = [(detail, operand, self.read(detail, operand))]
            except ReportError as error:
                return str(error)
        return local_event(record, self.name)

    @cached_property
    def _validator(self) -> Validator:
        return Validator({"$defs": dict(self.definitions), **self.schema})

    def read(self, detail: object, operand: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The value of a detail, checked against the action's operand if that is given. Raises ReportError."""
        try:
            value = loads(detail) if isinstance(detail, str) else None
            if not isinstance(value, dict) or written(value) != detail:
                raise ReportError("its detail is not the RFC 8785 form of an object")
        except StrictJsonError as error:
            raise ReportError(f"its detail is not JSON: {error}") from error
        problem = explain(self._validator, value) or self.contradiction(value)
        if problem is None and operand is not None:
            problem = self.difference(value, operand)
        if problem is not None:
            raise ReportError(f"its detail is no value of {self.name}: {problem}")
        return value

    def value_of(self, record: Record, operand: Mapping[str, Any]) -> dict[str, Any]:
        """The value of a record's report. Raises NonConformance: a missing observation proves nothing."""
        must_be_done(record)
        reported = (record.event or {}).get("detail")
        if self._latest:
            detail, same, value = self._latest.pop()
            if detail is reported and same is operand:
                return value
        try:
            return self.read(reported, operand)
        except ReportError as error:
            raise NonConformance(Judgement(Verdict.KIT_FAULT, None, f"{record.action}: {error}", n=record.n)) from error


def written(value: Mapping[str, Any]) -> str:
    """The detail that reports `value`."""
    return canonical(value).decode("utf-8")
