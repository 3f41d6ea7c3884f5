"""The reports of the harness's own acts: RFC 8785 JSON in the detail of an event, and the steps that judge it. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import msgspec

from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.match import gravity, mismatches
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.record import Judgement, NonConformance, Record
from holdfast.conformance.cases.session import Action, SessionScript, local_event, must_be_done
from holdfast.conformance.cases.values import CaseError
from holdfast.conformance.inspection.files import parts_of
from holdfast.conformance.verdict import Verdict
from holdfast.reports.plain import cut
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.model import CaseKind
from holdfast.specs.schema import Validator, explain
from holdfast.specs.strictjson import canonical, parsed

Value = Mapping[str, Any]

# How many texts are known at most, and of how many characters.
_KNOWN, _SHORT = 512, 64 * 1024


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
    # The last texts that were values: evidence has most of them more than once, and the gate reads each of them again.
    _known: set[str] = field(default_factory=set, init=False, compare=False)

    def perform(self, driver: Any, action: Action) -> None:
        """See `Act`."""
        driver.locally(action, lambda: (None, written(self.do(self.about(driver), action.operand))))

    def unlike(self, record: Record, operand: Mapping[str, Any]) -> str | None:
        """See `Act`."""
        if record.event is not None and record.event.get("kind") == "done":
            try:
                self.read(record.event.get("detail"), operand)
            except ReportError as error:
                return str(error)
        return local_event(record, self.name)

    @cached_property
    def _validator(self) -> Validator:
        return Validator({"$defs": dict(self.definitions), **self.schema})

    def read(self, detail: object, operand: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The value of a detail, checked against the action's operand if that is given. Raises ReportError."""
        if isinstance(detail, str) and detail in self._known:
            value = msgspec.json.decode(detail, type=dict[str, Any])
        else:
            value = self._checked(detail)
        problem = self.difference(value, operand) if operand is not None else None
        if problem is not None:
            raise ReportError(f"its detail is no value of {self.name}: {problem}")
        return value

    def _checked(self, detail: object) -> dict[str, Any]:
        try:
            value, is_canonical = parsed(detail) if isinstance(detail, str) else (None, False)
        except StrictJsonError as error:
            raise ReportError(f"its detail is not JSON: {error}") from error
        if not isinstance(value, dict) or not isinstance(detail, str) or not is_canonical:
            raise ReportError("its detail is not the RFC 8785 form of an object")
        problem = explain(self._validator, value) or self.contradiction(value)
        if problem is not None:
            raise ReportError(f"its detail is no value of {self.name}: {problem}")
        if len(self._known) >= _KNOWN:
            self._known.clear()
        if len(detail) <= _SHORT:
            self._known.add(detail)
        return value

    def value_of(self, record: Record, operand: Mapping[str, Any]) -> dict[str, Any]:
        """The value of a record's report. Raises NonConformance: a missing observation proves nothing."""
        must_be_done(record)
        try:
            return self.read((record.event or {}).get("detail"), operand)
        except ReportError as error:
            raise NonConformance(Judgement(Verdict.KIT_FAULT, None, f"{record.action}: {error}", n=record.n)) from error


def written(value: Mapping[str, Any]) -> str:
    """The detail that reports `value`."""
    return canonical(value).decode("utf-8")


# Steps in which the harness itself observes or acts: they ask for the report and judge its value.

_SHOWN = 600
# For a report without a result, which holds an error; by default none is.
Blind = Callable[[Mapping[str, Any]], bool] | None
Operand = Callable[[CaseInterpreter, Mapping[str, Any]], dict[str, Any]]


def text_of(name: str, step: Mapping[str, Any], reading: CaseInterpreter) -> str:
    """The text after the name of a step. Raises CaseError."""
    target = reading.state.scope.resolve(step[name])
    if not isinstance(target, str):
        raise CaseError(f"{name} {target!r} is no text")
    return target


def path_of(name: str, step: Mapping[str, Any], reading: CaseInterpreter) -> str:
    """The path inside the workdir after the name of a step. Raises CaseError."""
    path = text_of(name, step, reading)
    with of_case(name):
        parts_of(path)
    return path


def folder_of(name: str, step: Mapping[str, Any], reading: CaseInterpreter) -> str:
    """The same, or `.` for the workdir itself. Raises CaseError."""
    return "." if text_of(name, step, reading) == "." else path_of(name, step, reading)


@contextlib.contextmanager
def of_case(name: str) -> Iterator[None]:
    """What no act could be given is an error of the case. Raises CaseError."""
    try:
        yield
    except ValueError as error:
        raise CaseError(f"{name}: {error}") from error


def has_error(value: Mapping[str, Any]) -> bool:
    """For a report whose only other member is its error."""
    return value["error"] is not None


def report_of(report: Report, operand: Mapping[str, Any], note: str) -> SessionScript[tuple[Record, dict[str, Any]]]:
    """Ask for a report: its record and its value. Raises NonConformance where there is none."""
    (record,) = yield Action(report, note, operand=operand)
    return record, report.value_of(record, operand)


def reading_of(
    report: Report, operand_of: Operand, *, is_blind: Blind = None
) -> Callable[[CaseInterpreter, Mapping[str, Any], str], SessionScript[None]]:
    """How to read a step whose report is compared with the step's expectation, and bound to names."""

    def read(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
        record, value = yield from report_of(report, operand_of(reading, step), note)
        reading.go_on(judge_value(reading, report, step, value, is_blind=is_blind), step)
        reading.bind(step, record, {"value": value})

    return read


def judge_value(
    reading: CaseInterpreter,
    report: Report,
    step: Mapping[str, Any],
    value: Mapping[str, Any],
    *,
    is_blind: Blind = None,
    otherwise: Mapping[str, Any] | None = None,
    rows: Mapping[str, str] = MappingProxyType({}),
) -> Judgement | None:
    """None if the value is as expected. `otherwise` is the default expectation of the step, `rows` adds to those
    of the report.

    A failed observation or trial proves nothing, NOT_REACHED, unless the step says what it expects of `error`.
    """
    expected = reading.state.scope.resolve(step.get("expect", {}).get("value", otherwise or {}))
    if is_blind is not None and is_blind(value) and "error" not in expected:
        detail = f"{report.name} came to nothing: {value['error']}"
        return Judgement(Verdict.NOT_REACHED, None, detail, repr(expected), shortened(value))
    problem = mismatches(expected, value, under="value")
    if problem is None:
        return None
    return wrong(
        reading.case.kind, step, problem, repr(expected), value, gravity(expected, value, rows={**report.rows, **rows})
    )


def wrong(
    kind: CaseKind,
    step: Mapping[str, Any],
    problem: str,
    expected: str,
    value: Mapping[str, Any],
    graver: Verdict | None = None,
) -> Judgement:
    """The judgement on a value that is not as expected, where `gravity` says `graver`."""
    return Judgement(ex.wrong_value(kind, step, graver), None, problem, expected, shortened(value))


def shortened(value: Mapping[str, Any]) -> str:
    """A value for a person."""
    return cut(written(value), _SHOWN)
