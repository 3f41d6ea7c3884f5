"""The evidence of SQLite files as all judges read it: the rows of PostgreSQL's catalogue, and SQLSTATEs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from holdfast.conformance.fitness.model import Evidence, EvidenceClass, Row
from holdfast.conformance.fitness.sqlite.catalogue import structure_of

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
    """The same evidence, with the catalogue of the files in the rows that all databases share.

    Trials of another release, whose errors are no SQLSTATEs, ended otherwise: they show nothing.
    """
    if any(len(answer.sqlstate or "00000") != 5 for probe in evidence.probes for answer in probe.answers):
        why = "its trials are those of another release; look again"
        evidence = replace(
            evidence, probes=(), lost=dict.fromkeys((EvidenceClass.CLONE, EvidenceClass.CONCURRENCY), why)
        )
    structure = structure_of(evidence.snapshot, evidence.surface)
    snapshot = structs.replace(evidence.snapshot, structure={**evidence.snapshot.structure, **structure})
    return replace(evidence, snapshot=snapshot)


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
