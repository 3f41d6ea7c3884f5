"""A surface in SQLite files in the words that all databases share: rows of a catalogue, and what trials came to.

The judges read what PostgreSQL's queries say and its SQLSTATEs. What SQLite has no word for is told as what it comes
to: an AFTER trigger guards as a BEFORE trigger does, and a column without an affinity keeps texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import structs

from holdfast.conformance.fitness.model import Evidence, Part, Probe, ProbeAnswer, Row, Snapshot
from holdfast.conformance.fitness.sqlite.catalogue import Database, ForeignKey, Relation, database
from holdfast.conformance.fitness.sqlite.live import MAIN
from holdfast.conformance.fitness.sqlite.snapshot import AUDIT
from holdfast.conformance.fitness.sqlite.sqltext import Check, Token, generated, tokens

# Under this name a row of the surface says how the files lie.
FILES = "files"
TRIED, FIRST = "tried", "first"
_KINDS = {"table": "r", "view": "v"}
_ACTIONS = {"CASCADE": "c", "SET NULL": "n", "SET DEFAULT": "d"}
_MADE_UP = re.compile(r"\brandomblob\s*\(", re.IGNORECASE)
_NONE = ("domain_checks", "rules", "policies", "inheritance", "functions", "mentions")
_PAIRS = ("<>", "!=", "==", "<=", ">=", "||")
_LISTED = re.compile(r"\bin \( ('(?:[^']|'')*'(?: , '(?:[^']|'')*')*) \)")
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


def files_of(snapshot: Snapshot) -> dict[str, Database]:
    """The catalogue of each file by its place."""
    there = (name for name in (MAIN, AUDIT) if f"{name}.relations" in snapshot.structure)
    return {name: database(snapshot, name) for name in there}


def translated(evidence: Evidence) -> Evidence:
    """The same evidence as all judges read it."""
    files = files_of(evidence.snapshot)
    rows: dict[str, list[Row]] = {name: [] for name in ("relations", *_ROWS, *_NONE)}
    for place, found in files.items():
        schema = MAIN if place == MAIN else evidence.surface.parts[Part.AUDIT].schema
        for relation in found.relations.values():
            own: Row = {"schema": schema, "relation": relation.name}
            rows["relations"].append({**own, **_relation(relation)})
            for query, of in _ROWS.items():
                rows[query] += ({**own, "to_schema": schema, **row} for row in of(relation, found))
    structure = {name: tuple(each) for name, each in rows.items()}
    snapshot = structs.replace(evidence.snapshot, structure={**evidence.snapshot.structure, **structure})
    probes = tuple(_answered(probe, structure["indexes"]) for probe in evidence.probes)
    return replace(evidence, snapshot=snapshot, probes=probes)


def _relation(relation: Relation) -> Row:
    return {
        "kind": _KINDS.get(relation.kind, relation.kind),
        "persistence": "p",
        "access_method": None,
        "row_security": False,
        "is_partition": False,
        "partition_key": None,
        "partition_strategy": None,
        "strict": relation.strict,
        "without_rowid": relation.without_rowid,
        "conflict_clauses": list(relation.conflict_clauses),
    }


def _columns(relation: Relation, _: Database) -> Iterator[Row]:
    expressions = generated(relation.sql)
    for column in relation.columns.values():
        rowid = relation.is_rowid(column)
        body = expressions.get(column.name.casefold())
        made = " ".join(map(_plainly, body)) if body is not None else "until()"
        default = made if column.generated else column.default
        numbered = rowid or _MADE_UP.search(column.default or "") is not None
        yield {
            "name": column.name,
            "type": column.type,
            "base_type": "pg_catalog.numeric" if column.changes_texts else "pg_catalog.text",
            "changes_texts": column.changes_texts,
            "affinity": column.affinity,
            "not_null": relation.refuses_null(column) or rowid,
            "default": None if rowid or (default or "").upper() == "NULL" else default,
            "domain_default": None,
            "generated": "s" if column.generated else "",
            "identity": "d" if rowid else "",
            "numbered": numbered,
            "labels": None,
            "collation": None,
            "deterministic": True,
            "byte_order": True,
            "calls": [],
        }


def _indexes(relation: Relation, _: Database) -> Iterator[Row]:
    for index in relation.indexes:
        body = _text(index.body, relation.columns)
        yield {
            "name": index.called,
            "index": index.name,
            "unique": index.unique,
            "primary": index.rows[0]["origin"] == "pk",
            "exclusion": False,
            "period": False,
            **dict.fromkeys(("valid", "ready", "live", "immediate"), True),
            "predicate": body if index.partial else None,
            "expressions": body if None in index.columns else None,
            "columns": list(index.columns),
            "collations": [None for _ in index.columns],
            "deterministic": all(each.upper() == "BINARY" for each in index.collations),
            "opclasses": [],
            "calls": [],
            "definition": f"UNIQUE ({', '.join(str(each or 'an expression') for each in index.columns)})",
        }


def _constraints(relation: Relation, _: Database) -> Iterator[Row]:
    for check in relation.checks:
        definition = check_text(check, relation.columns)
        yield {
            "name": check.name or definition,
            "kind": "c",
            "columns": [name for name in relation.columns if check.mentions(name)],
            "validated": True,
            "enforced": True,
            "volatile": [],
            "calls": [],
            "definition": definition,
        }


def _triggers(relation: Relation, found: Database) -> Iterator[Row]:
    for each in relation.triggers:
        yield {
            "name": each.name,
            "timing": "instead" if each.timing == "INSTEAD" else "before",
            "level": "row",
            "events": [each.event.lower()],
            "enabled": "O",
            "conditional": each.conditional,
            "columns": ["some columns"] if each.only else [],
            "constraint": False,
            "function": "its body",
            "raises": each.only_raises,
            "takes": [name for name in found.relations if each.takes_from(name)],
        }


def _references(relation: Relation, found: Database) -> Iterator[Row]:
    for key in relation.foreign_keys:
        parent = found.relation(key.parent)
        yield {
            "name": f"({', '.join(key.columns)})",
            "to_relation": key.parent if parent is None else parent.name,
            "columns": list(key.columns),
            "to_columns": _targets(key, parent),
            "on_delete": _ACTIONS.get(key.on_delete.upper(), "a"),
            "on_update": _ACTIONS.get(key.on_update.upper(), "a"),
        }


def _targets(key: ForeignKey, parent: Relation | None) -> list[str]:
    """The columns of the parent; its primary key where none are named."""
    columns = () if parent is None else sorted(parent.columns.values(), key=lambda column: column.primary_key)
    own = [column.name for column in columns if column.primary_key]
    return [name if name is not None else own[place] for place, name in enumerate(key.to) if name or place < len(own)]


_ROWS = {
    "columns": _columns,
    "indexes": _indexes,
    "constraints": _constraints,
    "triggers": _triggers,
    "references": _references,
}


def check_text(check: Check, columns: Iterable[str]) -> str:
    """A CHECK as PostgreSQL would write it, as far as its words go."""
    return f"CHECK ({_text(check.body, columns)})"


def expression(text: str, columns: Iterable[str]) -> str:
    """The same of an expression alone."""
    return _text(tokens(text), columns)


def _text(body: Sequence[Token], columns: Iterable[str]) -> str:
    """An expression in one spelling: columns by their names, lists as PostgreSQL writes them, AND and OR as it does.

    Those within a CASE part no conditions, and stay small.
    """
    names = {name.casefold(): name for name in columns}
    apart = not any(token.says("CASE") for token in body)
    words: list[str] = []
    for token in body:
        said = _plainly(token, names)
        if apart and token.kind == "word" and said in ("and", "or", "between"):
            said = said.upper()
        if words and token.kind == "sign" and words[-1] + said in _PAIRS:
            words[-1] = {"==": "=", "!=": "<>"}.get(words[-1] + said, words[-1] + said)
        else:
            words.append(said)
    return _LISTED.sub(lambda found: f"= ANY (ARRAY[{found[1].replace(' , ', ', ')}])", " ".join(words))


def _plainly(token: Token, names: Mapping[str, str] | None = None) -> str:
    if token.kind == "string":
        return "'" + token.text.replace("'", "''") + "'"
    if token.kind in ("word", "quoted") and (known := (names or {}).get(token.text.casefold())) is not None:
        return known if re.fullmatch(r"[^\W\d]\w*", known) else '"' + known.replace('"', '""') + '"'
    # A name in quotes is no function and no keyword.
    return f'"{token.text}"' if token.kind == "quoted" else token.text.lower()


# Probes


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
