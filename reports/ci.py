"""What a CI server shows of a run and the gate's decision: SARIF 2.1.0, a summary in Markdown, annotations of GitHub.

All of it is made from the results of a run (`holdfast.reports.results`) and the decision's own words.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast import __version__
from holdfast.reports.plain import plain
from holdfast.reports.results import Outcome, Result, Results
from holdfast.specs import Contract
from holdfast.specs.typed import instant_text

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"MUST": "error", "SHOULD": "warning"}
# A server cuts what is longer; the evidence has all of it.
_MOST_TEXT, _MOST_GROUPS = 1000, 50
# GitHub shows ten annotations of a step at most.
_MOST_ANNOTATIONS = 10


@dataclass(frozen=True, slots=True)
class Decided:
    """The gate's answer: YES or NO, its reasons and what was not asked, each a line of text."""

    can_proceed: str
    reasons: tuple[str, ...]
    not_asked: tuple[str, ...]


def sarif(results: Results, contracts: Sequence[Contract], decided: Decided, *, file: str) -> bytes:
    """The run as SARIF: a rule for each clause, a result for each case that does not conform.

    `file` is where a server shows a result: a path in the repository, such as that of the adapter. The reasons of the
    gate are notifications, so that a run that proves too little is no clean one.
    """
    clauses = [(contract, clause) for contract in contracts for clause in contract.clauses.values()]
    rules = [
        {
            "id": clause.id,
            "shortDescription": {"text": clause.text.partition(". ")[0]},
            "fullDescription": {"text": clause.text},
            "help": {"text": f"{clause.harm}\n`holdfast explain {clause.id}` shows its cases."},
            "defaultConfiguration": {"level": _LEVELS.get(clause.level.value, "note")},
            "properties": {"tags": [contract.name, clause.level.value]},
        }
        for contract, clause in clauses
    ]
    places = {clause.id: number for number, (_, clause) in enumerate(clauses)}
    bad = [each for each in results.cases if _is_bad(each)]
    run = {
        "tool": {"driver": {"name": "holdfast", "version": __version__, "rules": rules}},
        "automationDetails": {"id": f"holdfast/{'+'.join(contract.name for contract in contracts)}/"},
        "invocations": [
            {
                "executionSuccessful": decided.can_proceed == "YES",
                "exitCode": results.exit,
                "startTimeUtc": instant_text(results.started),
                "toolExecutionNotifications": [
                    {"level": "error", "message": {"text": plain(text)[:_MOST_TEXT]}} for text in decided.reasons
                ],
            }
        ],
        "results": [_sarif_result(each, places, file) for each in bad],
        "properties": dict(results.properties),
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1).encode() + b"\n"


def _is_bad(case: Result) -> bool:
    return case.outcome in (Outcome.FAILED, Outcome.ERROR) or case.excused is not None


def _sarif_result(case: Result, places: Mapping[str, int], file: str) -> dict[str, Any]:
    rule = case.clauses[0]
    found = {
        "ruleId": rule,
        "ruleIndex": places[rule],
        "level": "error" if case.severity == "critical" else "warning",
        "message": {"text": plain(f"{case.verdict}: {case.title}. {case.message}")[:_MOST_TEXT]},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": file}, "region": {"startLine": 1}}}],
        "partialFingerprints": {"holdfastCase/v1": hashlib.sha256(case.case.encode()).hexdigest()},
        "properties": {"case": case.case, "clauses": list(case.clauses), "verdict": case.verdict, "cause": case.cause},
    }
    if case.excused is not None:
        found["suppressions"] = [{"kind": "external", "justification": plain(case.excused)}]
    return found


def _by_cause(results: Results) -> list[list[Result]]:
    """What does not conform, those of one cause together, in the order of the cases."""
    groups: dict[str, list[Result]] = {}
    for case in filter(_is_bad, results.cases):
        groups.setdefault(case.cause or case.case, []).append(case)
    return [*groups.values()]


def summary(results: Results, decided: Decided) -> str:
    """The decision, findings grouped by their cause, and what was not asked, in Markdown."""
    kit, whose = (results.properties.get(name, "") for name in ("kit", "implementation"))
    count = sum(case.outcome is Outcome.PASSED for case in results.cases)
    lines = [
        f"## holdfast: CAN_PROCEED = {decided.can_proceed}",
        "",
        f"{_cell(whose or 'no hello')}, {_cell(kit)}: {count} of {len(results.cases)} cases conform.",
    ]
    if decided.reasons:
        lines += ["", *(f"- {_cell(text)}" for text in decided.reasons)]
    if groups := _by_cause(results):
        lines += ["", "| verdict | cases | cause | clauses | first case |", "|---|---|---|---|---|"]
        for group in groups[:_MOST_GROUPS]:
            clauses = ", ".join(dict.fromkeys(name for case in group for name in case.clauses))
            first = group[0]
            cells = (first.verdict, str(len(group)), first.cause or first.message, clauses, first.case)
            lines.append(f"| {' | '.join(map(_cell, cells))} |")
        if len(groups) > _MOST_GROUPS:
            lines += ["", f"{len(groups) - _MOST_GROUPS} more causes stand in the evidence."]
    asked_no_more = [*decided.not_asked, *_not_claimed(results)]
    if asked_no_more:
        lines += ["", "Not asked:", "", *(f"- {_cell(text)}" for text in asked_no_more)]
    return "\n".join(lines) + "\n\n"


def _not_claimed(results: Results) -> Iterable[str]:
    """How many cases were not asked because the adapter lacks what they need, by its own words."""
    skipped = (case for case in results.cases if case.outcome is Outcome.SKIPPED and case.excused is None)
    counted = Counter(case.message for case in skipped)
    return (f"{count} cases: {why}" for why, count in counted.items())


def _cell(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    shown = plain(text)[:_MOST_TEXT]
    return "".join(f"&#{ord(sign)};" if sign in "|`*[]<>&#~\\" else sign for sign in shown)


def annotated(results: Results, decided: Decided, *, file: str) -> str:
    """Commands with which a step of GitHub Actions annotates its run: the decision, and a line for each cause."""
    lines = [] if decided.can_proceed == "YES" else [_command("CAN_PROCEED = NO", "; ".join(decided.reasons), file)]
    for group in _by_cause(results):
        first = group[0]
        more = f" ({len(group)} cases)" if len(group) > 1 else ""
        lines.append(_command(f"{first.clauses[0]} {first.verdict}{more}", f"{first.title}: {first.message}", file))
    return "".join(lines[:_MOST_ANNOTATIONS])


def _command(title: str, text: str, file: str) -> str:
    parts = {"file": file, "title": title}
    named = ",".join(f"{name}={_escaped(value, more=':,')}" for name, value in parts.items() if value)
    return f"::error {named}::{_escaped(plain(text)[:_MOST_TEXT])}\n"


def _escaped(text: str, *, more: str = "") -> str:
    """A value of a command of GitHub: what could end it is written by its code."""
    return "".join(f"%{ord(sign):02X}" if sign in f"%\r\n{more}" else sign for sign in text)
