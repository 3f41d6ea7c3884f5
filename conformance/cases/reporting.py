"""Steps in which the harness itself observes or acts: they ask for the report and judge its value. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.match import gravity, mismatches
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.record import Judgement, Record
from holdfast.conformance.cases.report import Report, written
from holdfast.conformance.cases.session import Action, SessionScript
from holdfast.conformance.cases.values import CaseError
from holdfast.conformance.inspection.files import parts_of
from holdfast.conformance.verdict import Verdict
from holdfast.reports.plain import cut
from holdfast.specs.model import CaseKind

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
