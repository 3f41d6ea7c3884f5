"""The catalogue of SQLite files in the words that all databases share: rows as PostgreSQL's queries give them.

What SQLite has no word for is told as what it comes to: an AFTER trigger guards as a BEFORE trigger does, and a column
without an affinity keeps texts. What only files can be asked stands beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from msgspec import structs

from holdfast.conformance.fitness.model import Evidence, EvidenceClass, Part, Row, Snapshot, Surface
from holdfast.conformance.fitness.sqlite.live import AUDIT, MAIN
from holdfast.conformance.fitness.sqlite.sqltext import (
    Token,
    checks,
    conflict_clauses,
    generated,
    only_raises,
    takes_from,
    tokens,
    trigger,
    unique_constraints,
)

_KINDS = {"table": "r", "view": "v"}
_GENERATED = (2, 3)
_ACTIONS = {"CASCADE": "c", "SET NULL": "n", "SET DEFAULT": "d"}
# A default with 128 bits of chance, or more.
_MADE_UP = re.compile(r"\(?(?:(?:lower\()?hex\()?randomblob\((?:1[6-9]|[2-9]\d)\)\)*", re.IGNORECASE)
# What a CHECK may ask that is none of the row's: chance, the connection, and where the row lies.
_CHANGING = {"random", "randomblob", "changes", "total_changes", "last_insert_rowid", "rowid", "_rowid_", "oid"}
_NONE = ("domain_checks", "rules", "policies", "inheritance")
_PAIRS = ("<>", "!=", "==", "<=", ">=", "||")
_LISTED = re.compile(r"\bin \( ({0}(?: , {0})*) \)".format(r"(?:'(?:[^']|'')*'|\d+|true|false)"))


def structure_of(snapshot: Snapshot, surface: Surface) -> dict[str, tuple[Row, ...]]:
    """The rows of each query, for all relations of both files."""
    rows: dict[str, list[Row]] = {name: [] for name in ("relations", *_ROWS, *_NONE)}
    for place in (place for place in (MAIN, AUDIT) if f"{place}.relations" in snapshot.structure):
        schema = MAIN if place == MAIN else surface.parts[Part.AUDIT].schema
        raw = {query: snapshot.structure[f"{place}.{query}"] for query in _RAW}
        relations = [_Relation(raw, row) for row in raw["relations"]]
        for relation in relations:
            own: Row = {"schema": schema, "relation": relation.name, "to_schema": schema}
            rows["relations"].append({**own, **relation.described()})
            for query, of in _ROWS.items():
                rows[query] += ({**own, **row} for row in of(relation, relations))
    return {name: tuple(each) for name, each in rows.items()}


_RAW = ("schema", "relations", "columns", "indexes", "foreign_keys")


def _grouped(rows: Iterable[Row], by: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(str(row[by]), []).append(row)
    return found


def affinity_of(declared: str) -> str:
    """The affinity of a declared type: the rules of SQLite's documentation, section 3.1 of Datatypes."""
    said = declared.upper()
    if "INT" in said:
        return "INTEGER"
    if any(part in said for part in ("CHAR", "CLOB", "TEXT")):
        return "TEXT"
    if "BLOB" in said or not said:
        return "BLOB"
    return "REAL" if any(part in said for part in ("REAL", "FLOA", "DOUB")) else "NUMERIC"


class _Relation:
    """The rows that belong to one relation of a file."""

    def __init__(self, raw: Mapping[str, tuple[Row, ...]], row: Row) -> None:
        self.row, self.name = row, str(row["name"])
        # A trigger names its relation as it likes, where SQLite ignores case.
        self.objects = [each for each in raw["schema"] if each["relation"].casefold() == self.name.casefold()]
        self.columns, self.indexes, self.keys = (
            [each for each in raw[query] if each["relation"] == self.name]
            for query in ("columns", "indexes", "foreign_keys")
        )
        self.names = [str(each["name"]) for each in self.columns]

    @cached_property
    def sql(self) -> str:
        """The statement that made it; empty for what is no ordinary table, but for its view."""
        made = (each["sql"] for each in self.objects if each["type"] in ("table", "view") and each["name"] == self.name)
        return next(map(str, made), "") if self.row["kind"] == "table" else ""

    def described(self) -> Row:
        """The relation itself."""
        return {
            "kind": _KINDS.get(self.row["kind"], self.row["kind"]),
            "persistence": "p",
            **dict.fromkeys(("access_method", "partition_key", "partition_strategy", "owner")),
            **dict.fromkeys(("row_security", "is_partition"), False),
            "strict": bool(self.row["strict"]),
            "without_rowid": bool(self.row["without_rowid"]),
            "conflict_clauses": list(conflict_clauses(self.sql)),
        }

    @property
    def primary_key(self) -> list[str]:
        """Its columns in their order."""
        return [str(each["name"]) for each in sorted(self.columns, key=_place) if each["primary_key"]]


def _place(row: Row) -> int:
    return int(row["primary_key"])


def _columns(relation: _Relation, _: Sequence[_Relation]) -> Iterator[Row]:
    expressions, row = generated(relation.sql), relation.row
    for column in relation.columns:
        name, declared, default = str(column["name"]), str(column["type"]), column["default_text"]
        # SQLite itself gives the column a number where a row has none.
        rowid = (
            (column["primary_key"] > 0 and declared.upper() == "INTEGER" and not row["without_rowid"])
            # A key that has an index of its own, as one of several columns or in falling order has, is no rowid.
            and not any(each["origin"] == "pk" for each in relation.indexes)
        )
        # A primary key alone refuses NULL only in STRICT and WITHOUT ROWID tables.
        refuses = column["not_null"] or (column["primary_key"] > 0 and (row["strict"] or row["without_rowid"]))
        made = column["hidden"] in _GENERATED
        if made:
            # One that is not found in the text is inconclusive.
            body = expressions.get(name.casefold())
            default = "until()" if body is None else " ".join(map(_plainly, body))
        strict, affinity = bool(row["strict"]), affinity_of(declared)
        if strict and declared.upper() == "ANY":
            affinity = "BLOB"
        keeps = affinity in ("TEXT", "BLOB")
        only_bytes = strict and declared.upper() == "BLOB"
        yield {
            "name": name,
            "type": declared,
            "base_type": f"pg_catalog.{'bytea' if only_bytes else 'text' if keeps else 'numeric'}",
            "changes_texts": "" if keeps else f"is of the type {declared}, which makes numbers of texts that look so",
            "affinity": affinity,
            "not_null": bool(refuses) or rowid,
            "default": None if rowid or default is None or str(default).upper() == "NULL" else str(default),
            **dict.fromkeys(("domain_default", "labels", "collation")),
            "generated": "s" if made else "",
            "identity": "d" if rowid else "",
            "numbered": rowid or _MADE_UP.fullmatch("".join(str(default).split())) is not None,
            # What has fewer bits is another in most rows, not in all.
            "random": "randomblob" in str(default).lower(),
            **dict.fromkeys(("deterministic", "byte_order"), True),
            "calls": [],
        }


def _indexes(relation: _Relation, _: Sequence[_Relation]) -> Iterator[Row]:
    named = list(unique_constraints(relation.sql))
    made = {each["name"]: str(each["sql"] or "") for each in relation.objects if each["type"] == "index"}
    for name, parts in _grouped(relation.indexes, "name").items():
        first, columns = parts[0], [part["column_name"] for part in parts]
        # No pragma gives the name of a constraint; of a CREATE INDEX the part behind the names is read.
        called = (constraint for constraint, key in named if first["origin"] != "c" and list(key) == columns)
        found = tokens(made.get(name, ""))
        begin = next((place for place, token in enumerate(found) if token.says("(")), len(found))
        body = _text(found[begin:], relation.names)
        yield {
            "name": next(called, name),
            "index": name,
            "unique": bool(first["is_unique"]),
            "primary": first["origin"] == "pk",
            **dict.fromkeys(("exclusion", "period"), False),
            **dict.fromkeys(("valid", "ready", "live", "immediate"), True),
            "predicate": body if first["partial"] else None,
            "expressions": body if None in columns else None,
            "columns": columns,
            "collations": [None for _ in columns],
            "deterministic": all(str(part["collation"]).upper() == "BINARY" for part in parts),
            "opclasses": [],
            "calls": [],
            "definition": f"UNIQUE ({', '.join(str(each or 'an expression') for each in columns)})",
        }


def _constraints(relation: _Relation, _: Sequence[_Relation]) -> Iterator[Row]:
    changing = _CHANGING - {name.casefold() for name in relation.names}
    for name, body in checks(relation.sql):
        definition = check_text(body, relation.names)
        said = {token.text.casefold() for token in body if token.kind in ("word", "quoted")}
        yield {
            "name": name or definition,
            "kind": "c",
            "columns": [each for each in relation.names if any(token.names(each) for token in body)],
            **dict.fromkeys(("validated", "enforced"), True),
            "volatile": sorted(said & changing),
            "calls": [],
            "definition": definition,
        }


def _triggers(relation: _Relation, relations: Sequence[_Relation]) -> Iterator[Row]:
    for row in relation.objects:
        if row["type"] == "trigger":
            head, body = trigger(str(row["sql"]))
            yield {
                "name": str(row["name"]),
                "level": "row",
                "enabled": "O",
                **head,
                "constraint": False,
                "function": "its body",
                "raises": only_raises(body),
                "takes": [other.name for other in relations if takes_from(body, other.name)],
            }


def _references(relation: _Relation, relations: Sequence[_Relation]) -> Iterator[Row]:
    for parts in _grouped(relation.keys, "number").values():
        first = parts[0]
        parent = next((each for each in relations if each.name.casefold() == first["parent"].casefold()), None)
        own = [] if parent is None else parent.primary_key
        columns = [str(part["column_name"]) for part in parts]
        # Where none are named the primary key of the parent is meant.
        targets = [str(part["parent_column"]) for part in parts if part["parent_column"] is not None]
        yield {
            "name": f"({', '.join(columns)})",
            "to_relation": first["parent"] if parent is None else parent.name,
            "columns": columns,
            "to_columns": targets or own,
            "on_delete": _ACTIONS.get(str(first["on_delete"]).upper(), "a"),
            "on_update": _ACTIONS.get(str(first["on_update"]).upper(), "a"),
        }


_ROWS: Mapping[str, Callable[[_Relation, Sequence[_Relation]], Iterator[Row]]] = {
    "columns": _columns,
    "indexes": _indexes,
    "constraints": _constraints,
    "triggers": _triggers,
    "references": _references,
}


def check_text(body: Sequence[Token], columns: Iterable[str]) -> str:
    """A CHECK as PostgreSQL would write it, as far as its words go."""
    return f"CHECK ({_text(body, columns)})"


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
