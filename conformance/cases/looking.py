"""Steps by which the harness looks or acts itself: what they ask for, and what their values mean. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.action import Verb
from holdfast.conformance.cases.match import mismatches
from holdfast.conformance.cases.record import Finding, Judgement, Record
from holdfast.conformance.cases.seen import SeenError, content_of, read, written
from holdfast.conformance.cases.values import CaseError, Scope
from holdfast.conformance.inspection.changing import apart, target_of
from holdfast.conformance.inspection.files import parts_of
from holdfast.conformance.verdict import Verdict
from holdfast.specs.model import Contract, Kind
from holdfast.vectors.jcs.canaries import spellings

_STORED = frozenset({"blob", "text", "integer", "real"})
_INSERTED: Mapping[str, Any] = {"inserted": True}
_SHOWN = 600
_OF_FILES = frozenset({Verb.FILE, Verb.TREE, Verb.SEARCH, Verb.PLACE, Verb.LINK, Verb.COPY})
_OF_FOLDERS = frozenset({Verb.TREE, Verb.SEARCH})


def store_path(contract: Contract) -> str:
    """Where the store lies in the workdir. Raises CaseError."""
    if contract.inspection is None:
        raise CaseError("the contract has no `inspection`, so nobody knows where its store lies")
    return contract.inspection.path


def operand_of(verb: Verb, step: Mapping[str, Any], contract: Contract, scope: Scope) -> dict[str, Any]:
    """What the driver is to do. Raises CaseError."""
    if verb is Verb.INSPECT:
        return {"path": store_path(contract)}
    target = scope.resolve(step[verb.value])
    if not isinstance(target, str):
        raise CaseError(f"{verb.value} {target!r} is no text")
    if verb in _OF_FILES:
        return _of_file(verb, step, target, scope)
    rows = [scope.resolve(row) for row in ([step["row"]] if "row" in step else step["rows"])]
    for row in rows:
        if not isinstance(row, Mapping) or not row:
            raise CaseError(f"{verb.value}: expected a row, an object of columns, got {row!r}")
        for column, value in row.items():
            form = isinstance(value, Mapping) and len(value) == 1 and value.keys() <= _STORED
            if isinstance(value, bool) or not (value is None or form or isinstance(value, str | int | float)):
                raise CaseError(f"{verb.value}: column {column} cannot hold {value!r}")
    operand = {"path": store_path(contract), "table": target, "rows": rows}
    return {**operand, "or_replace": step.get("or_replace", False)} if verb is Verb.PROBE else operand


def _of_file(verb: Verb, step: Mapping[str, Any], target: str, scope: Scope) -> dict[str, Any]:
    operand: dict[str, Any] = {"path": target}
    try:
        if verb not in _OF_FOLDERS or target != ".":
            parts_of(target)
        if verb is Verb.PLACE:
            operand["content"] = scope.resolve(step["content"])
            content_of(operand)
        if verb is Verb.SEARCH:
            operand["for"] = scope.resolve(step["for"])
            if not operand["for"] or not isinstance(operand["for"], list):
                raise ValueError(f"expected a list of what is searched for, got {operand['for']!r}")
            for canary in operand["for"]:
                spellings(canary)
        if verb is Verb.LINK:
            operand["to"] = target_of(target, str(scope.resolve(step["to"])))
        if verb is Verb.COPY:
            operand["to"] = str(scope.resolve(step["to"]))
            apart(target, operand["to"])
    except ValueError as error:
        raise CaseError(f"{verb.value}: {error}") from error
    return operand


def value_of(verb: Verb, record: Record, operand: Mapping[str, Any]) -> dict[str, Any]:
    """The value that a record tells. Raises Finding: nothing is proven where nothing was seen."""
    event = record.event or {"kind": "missing", "detail": "no record"}
    if event["kind"] != "done":
        why = str(event["detail"])
        raise Finding(Judgement(Verdict.NOT_REACHED, None, why, record.action, why, n=record.n))
    try:
        return read(verb, event["detail"], operand)
    except SeenError as error:
        raise Finding(Judgement(Verdict.KIT_FAULT, None, f"{record.action}: {error}", n=record.n)) from error


def judge_seen(
    verb: Verb, step: Mapping[str, Any], value: Mapping[str, Any], scope: Scope, *, kind: Kind
) -> Judgement | None:
    """None if the value is as expected.

    What could not be looked at or tried proves nothing, NOT_REACHED, unless the step says what it expects of `error`.
    """
    told = step.get("expect", {}).get("value")
    expected = scope.resolve(told if told is not None else _INSERTED if verb is Verb.INSERT else {})
    received = written(value)
    received = received if len(received) <= _SHOWN else received[:_SHOWN] + "…"
    if _is_blind(verb, value) and "error" not in expected:
        detail = f"{verb.value} came to nothing: {value['error']}"
        return Judgement(Verdict.NOT_REACHED, None, detail, repr(expected), received)
    wrong = ex.wrong_value(kind, step)
    if verb is Verb.INSPECT and not value["exists"] and "exists" not in expected:
        return Judgement(wrong, None, "there is no database where the contract has it", repr(expected), received)
    problem = mismatches(expected, value, under="value")
    if problem is None:
        return None
    if verb is Verb.INSERT and told is None:
        detail = f"the store refused the row that the case needs: {value['error']}"
        return Judgement(Verdict.NOT_REACHED, None, detail, repr(expected), received)
    return Judgement(wrong, None, problem, repr(expected), received)


def _is_blind(verb: Verb, value: Mapping[str, Any]) -> bool:
    if verb in {Verb.INSERT, Verb.PROBE}:
        return value["inserted"] is None
    return verb in {Verb.INSPECT, *_OF_FOLDERS} and value["error"] is not None


def state_of(value: Mapping[str, Any], note: str, *, damaged: bool) -> Mapping[str, Any]:
    """The state that a look shows, to be compared with another's: the rows of every table.

    A store that the case itself damaged or never provided is compared by its bytes, or by its absence. Any other that
    cannot be read shows nothing. Raises Finding.
    """
    if value["exists"] and value["error"] is None:
        rows: Mapping[str, Any] = value["rows"]
        return rows
    if damaged and (value["digest"] is not None or not value["exists"]):
        return {"unreadable": value["digest"] or "not there"}
    why = value["error"] or "it is not there"
    detail = f"the store cannot be looked into {note}, so nothing shows that a refusal is inert: {why}"
    raise Finding(Judgement(Verdict.NOT_REACHED, None, detail, "a database that can be read", str(why)))


def files_of(value: Mapping[str, Any], note: str) -> list[Any]:
    """What a listing shows, to be compared with another's; nothing for a folder that is not there.

    Folders are left out: an empty one holds nothing, and who failed to write a file may have made its folder.
    Raises Finding where it cannot be listed.
    """
    if value["error"] is None:
        return [entry for entry in value["files"] if entry["kind"] != "folder"]
    detail = f"the store cannot be listed {note}, so nothing shows that a refusal is inert: {value['error']}"
    raise Finding(Judgement(Verdict.NOT_REACHED, None, detail, "a folder that can be listed", str(value["error"])))
