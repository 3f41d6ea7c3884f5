"""An assessment as text, the same for the console and for the page: one HTML file without network and scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from holdfast.conformance.fitness.assessment import Assessment
from holdfast.conformance.fitness.model import (
    Criterion,
    EvidenceClass,
    Probe,
    ProbeAnswer,
    Reason,
    Row,
    Statement,
)
from holdfast.reports.plain import cut

# Source section 6, each in one line.
TITLES = {
    Criterion.SINGLE_USE: "single use: logical_request_key and replay_key unique, no attempt in either",
    Criterion.NONCE: "a consume record of its own for authorization_nonce",
    Criterion.BINDING: "columns that bind operation, target, run, artifact and approval",
    Criterion.DOMAIN: "the registration domain and no other",
    Criterion.ATOMIC: "atomic, durable consume with ON CONFLICT",
    Criterion.APPEND_ONLY: "a proven writer, and append-only for everybody",
    Criterion.AUDIT: "a failure audit that outlives the rollback",
    Criterion.PRIOR_DECISION: "an exact retry reads the prior decision back",
    Criterion.RETENTION: "kept for the replay horizon",
}
# Of the probe on the live tables: what a rollback does not take back, before it is made and afterwards.
TO_COME = (
    "it will be rolled back, and until then holds locks on rows of its own and fires triggers; sequences will move, "
    "and what functions send outside the database stays sent"
)
SIDE_EFFECTS = (
    "it was rolled back, and until then held locks on rows of its own and fired triggers; sequences may have moved, "
    "and what functions sent outside the database stays sent"
)
# A row of a catalogue, or a value in it, longer than this is shown by its beginning; the proof has all of it.
_LONGEST_VALUE = 300
# A reason longer than a line is written once; the proof has it with each criterion.
_LONG_REASON = 120
# Enough rows to understand what is meant.
_ROWS_SHOWN = 6


def reasons(assessment: Assessment) -> dict[Criterion, tuple[tuple[Reason, str], ...]]:
    """The reasons of each criterion with their text: what stops a whole class stops many criteria, and is said once."""
    said: dict[tuple[str, str], str] = {}

    def text_of(reason: Reason) -> str:
        letter = said.setdefault((reason.code, reason.text), reason.criterion.value)
        again = letter != reason.criterion.value and len(reason.text) > _LONG_REASON
        return f"the same as for ({letter})" if again else reason.text

    findings = assessment.judgement.findings
    return {each.criterion: tuple((reason, text_of(reason)) for reason in each.reasons) for each in findings}


def notes(assessment: Assessment) -> tuple[str, ...]:
    """What a reader must know besides; it proves nothing."""
    return tuple(_notes(assessment))


def _notes(assessment: Assessment) -> Iterator[str]:
    yield from assessment.policy.departures()
    evidence = assessment.evidence
    if evidence is not None:
        for each, why in evidence.lost.items():
            yield f"evidence of the class {each.value} is not there: {why}"
        if any(probe.evidence is EvidenceClass.LIVE for probe in evidence.probes):
            yield f"the live tables were probed: {SIDE_EFFECTS}"
    yield from assessment.judgement.notes


def candidates(assessment: Assessment) -> tuple[tuple[str, str, str], ...]:
    """Each relation that was inspected: its name, for what, and why it is not one."""
    return tuple(
        (str(each.relation), each.part.value, "; ".join(reason.text for reason in each.reasons) or "it is one")
        for each in assessment.candidates
    )


def rows(found: Sequence[Row]) -> tuple[str, ...]:
    """Rows of a catalogue, each on one line."""
    shown = [", ".join(f"{name}={_value(value)}" for name, value in row.items()) for row in found[:_ROWS_SHOWN]]
    if len(found) > _ROWS_SHOWN:
        shown.append(f"and {len(found) - _ROWS_SHOWN} more")
    return tuple(shown)


def _value(value: Any) -> str:
    return cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)


def probes(assessment: Assessment, names: Sequence[str]) -> tuple[Probe, ...]:
    """The probes of these names that are there."""
    evidence = assessment.evidence
    found = [] if evidence is None else [evidence.probe(name) for name in dict.fromkeys(names)]
    return tuple(each for each in found if each is not None)


def tried(probe: Probe) -> Iterator[tuple[str, str, str]]:
    """Each statement of a probe: by whom, what, and what came back."""
    for statement, answer in zip_longest(probe.statements, probe.answers):
        if statement is not None:
            yield f"{statement.role} in session {statement.session}", _sql(statement), _answer(answer)


def _sql(statement: Statement) -> str:
    if not statement.parameters:
        return statement.sql
    return f"{statement.sql}  -- with {_value(json.dumps(list(statement.parameters), ensure_ascii=False))}"


def _answer(answer: ProbeAnswer | None) -> str:
    if answer is None:
        return "no answer"
    if answer.sqlstate is not None:
        by = f" by {answer.constraint}" if answer.constraint else ""
        return f"refused{by}: {answer.sqlstate} {answer.message}"
    counted = "" if answer.affected is None else f"{answer.affected} row{'' if answer.affected == 1 else 's'}"
    rows: list[Mapping[str, Any]] = list(answer.rows[:_ROWS_SHOWN])
    returned = f"returned {_value(json.dumps(rows, ensure_ascii=False, default=str))}" if rows else ""
    return ", ".join(part for part in (counted, returned) if part) or answer.message or "done"


def page(assessment: Assessment, document: Mapping[str, Any]) -> str:
    """The page; `document` is the proof of the same assessment."""
    environment = Environment(
        loader=PackageLoader("holdfast.conformance.fitness"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    return environment.get_template("fitness.html.j2").render(
        assessed=assessment,
        surface=assessment.surface,
        document=document,
        findings=assessment.judgement.findings,
        titles=TITLES,
        reasons=reasons(assessment),
        notes=notes(assessment),
        candidates=candidates(assessment),
        rows=rows,
        probes=probes,
        tried=tried,
    )
