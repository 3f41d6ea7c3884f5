"""The evidence of SQLite files as all judges read it: SQLSTATEs, and what older trials came to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import structs

from holdfast.conformance.fitness.model import Evidence, Probe, ProbeAnswer, Row
from holdfast.conformance.fitness.sqlite.catalogue import structure_of

# In older trials the last answer counts the rows that were tried, and that of the first request.
TRIED, FIRST = "tried", "first"
_STATES = {
    "SQLITE_CONSTRAINT_UNIQUE": "23505",
    "SQLITE_CONSTRAINT_PRIMARYKEY": "23505",
    "SQLITE_CONSTRAINT_ROWID": "23505",
    "SQLITE_CONSTRAINT_CHECK": "23514",
    "SQLITE_CONSTRAINT_NOTNULL": "23502",
    "SQLITE_CONSTRAINT_FOREIGNKEY": "23503",
    "SQLITE_CONSTRAINT_TRIGGER": "P0001",
    "SQLITE_CONSTRAINT_DATATYPE": "22P02",
    "SQLITE_MISMATCH": "22P02",
    "IntegrityError": "23000",
    "SQLITE_BUSY": "55P03",
    "SQLITE_INTERRUPT": "57014",
}


def translated(evidence: Evidence) -> Evidence:
    """The same evidence in the words that all databases share."""
    structure = structure_of(evidence.snapshot, evidence.surface)
    snapshot = structs.replace(evidence.snapshot, structure={**evidence.snapshot.structure, **structure})
    return replace(
        evidence, snapshot=snapshot, probes=tuple(_answered(each, structure["indexes"]) for each in evidence.probes)
    )


def _answered(probe: Probe, indexes: Sequence[Row]) -> Probe:
    """A probe whose last answer is what came of the attempt, and whose errors are SQLSTATEs."""
    answers, statements = [_error(each, indexes) for each in probe.answers], probe.statements
    if probe.answer is None or len(answers) < 2 or not answers[-1].rows:
        return structs.replace(probe, answers=tuple(answers))
    row, before = answers[-1].rows[0], answers[-2]
    if probe.name == "audit-survives" and before.rows:
        answers[-1] = structs.replace(answers[-1], rows=({**before.rows[0], **row},))
    elif probe.name == "audit-again":
        went = before.sqlstate is None and row["records"] == answers[-3].rows[0]["records"] + 1
        answers[-2:] = [before if before.sqlstate else structs.replace(before, affected=int(went))]
        statements = statements[:-1]
    elif FIRST in row:
        adds = "upsert" in probe.name or "replace" in probe.name
        answers[-2:] = [_attempt(before, row, race=probe.name == "race", adds=adds)]
        statements = statements[:-1]
    if probe.name == "race":
        # The second session was kept waiting by the lock of the first.
        busy = [place for place, each in enumerate(answers[:-1]) if each.sqlstate == "55P03"]
        for place in busy:
            answers[place] = ProbeAnswer(rows=({"waits": True},))
        if not busy:
            answers[0] = ProbeAnswer(rows=({"waits": False},))
    return structs.replace(probe, statements=statements, answers=tuple(answers))


def _attempt(answer: ProbeAnswer, row: Mapping[str, Any], *, race: bool, adds: bool) -> ProbeAnswer:
    """What an inspection found after an attempt: SQLite's own count of rows is not enough."""
    if row[FIRST] != 1 or row.get(TRIED):
        return ProbeAnswer(affected=1, message="the stored row is gone or changed" if row[FIRST] != 1 else "")
    if answer.sqlstate is not None:
        return answer
    if adds and answer.affected:
        return ProbeAnswer("P0001", "a row was added, and the stored one is as it was")
    changed = TRIED not in row and bool(answer.affected)
    return structs.replace(answer, affected=int(changed or race))


def _error(answer: ProbeAnswer, indexes: Sequence[Row]) -> ProbeAnswer:
    if (name := answer.sqlstate) is None:
        return answer
    if not name.startswith("SQLITE_") and name[:1].isdigit() | name.startswith(("P0", "XX")):
        return answer
    state = state_of(name)
    constraint = violated(answer.message, indexes) if state == "23505" else answer.constraint
    return ProbeAnswer(state, f"{name} {answer.message}", constraint=constraint)


def state_of(name: str) -> str:
    """The SQLSTATE of what SQLite, or Python, calls an error."""
    return _STATES.get(name, _STATES.get("_".join(name.split("_")[:2]), "23000" if "CONSTRAINT" in name else "XX000"))


def violated(message: str, indexes: Sequence[Row]) -> str | None:
    """The unique index that refused, by what SQLite says of it: its name, or its relation and columns."""
    said = message.partition(": ")[2]
    if named := re.fullmatch(r"index '(.*)'", said):
        return named[1]
    for row in indexes:
        listed = ", ".join(f"{row['relation']}.{name}" for name in row["columns"])
        if row["unique"] and listed.casefold() == said.casefold():
            return str(row["name"])
    return None
