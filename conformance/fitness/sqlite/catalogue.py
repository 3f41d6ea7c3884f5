"""A typed view over the rows of a SQLite snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from holdfast.conformance.fitness.model import RelationName, Row, Snapshot
from holdfast.conformance.fitness.sqlite.live import MAIN
from holdfast.conformance.fitness.sqlite.snapshot import AUDIT
from holdfast.conformance.fitness.sqlite.sqltext import (
    Check,
    Token,
    Trigger,
    checks,
    conflict_clauses,
    tokens,
    trigger,
    unique_constraints,
)

# The collation under which equality is equality of bytes.
BINARY = "BINARY"
_GENERATED = (2, 3)
_OF_A_RELATION = ("schema", "columns", "indexes", "foreign_keys")


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `default` is its text, None without one."""

    name: str
    type: str
    not_null: bool
    default: str | None
    primary_key: int
    generated: bool
    row: Row

    @property
    def affinity(self) -> str:
        """The affinity of the declared type: the rules of SQLite's documentation, section 3.1 of Datatypes."""
        said = self.type.upper()
        if "INT" in said:
            return "INTEGER"
        if any(part in said for part in ("CHAR", "CLOB", "TEXT")):
            return "TEXT"
        if "BLOB" in said or not said:
            return "BLOB"
        return "REAL" if any(part in said for part in ("REAL", "FLOA", "DOUB")) else "NUMERIC"

    @property
    def changes_texts(self) -> str:
        """What the type does to texts, in words behind the column's name; empty if it keeps them."""
        fine = self.affinity in ("TEXT", "BLOB")
        return "" if fine else f"is of the type {self.type}, which makes numbers of texts that look so"


@dataclass(frozen=True, slots=True)
class Index:
    """One index. `columns` holds None for an expression; `collations` has one for each."""

    name: str
    unique: bool
    partial: bool
    columns: tuple[str | None, ...]
    collations: tuple[str, ...]
    rows: tuple[Row, ...]
    # The constraint's name where it has one, else the index's.
    called: str
    # Its key and its condition as they were written; nothing for the index of a constraint.
    body: tuple[Token, ...] = ()

    def is_full_on(self, column: str) -> bool:
        """Whether it makes every row unique by exactly this column, byte by byte."""
        binary = all(collation.upper() == BINARY for collation in self.collations)
        return self.unique and not self.partial and self.columns == (column,) and binary

    def mentions(self, column: str) -> bool:
        """Whether its key, an expression of it or its condition can speak of this column."""
        return column in self.columns or any(token.names(column) for token in self.body)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """One foreign key. `to` holds None where the parent's primary key is meant."""

    relation: str
    parent: str
    columns: tuple[str, ...]
    to: tuple[str | None, ...]
    on_update: str
    on_delete: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """One relation of a file. `sql` is the statement that made it, empty for a shadow table."""

    name: str
    kind: str
    strict: bool
    without_rowid: bool
    sql: str
    columns: Mapping[str, Column]
    indexes: tuple[Index, ...]
    triggers: tuple[Trigger, ...]
    foreign_keys: tuple[ForeignKey, ...]
    row: Row

    @property
    def is_table(self) -> bool:
        """An ordinary table: no view, no virtual table, none of a virtual table's own."""
        return self.kind == "table"

    @property
    def checks(self) -> tuple[Check, ...]:
        """Its CHECK constraints."""
        return tuple(checks(self.sql)) if self.is_table else ()

    def conditions(self, column: str) -> tuple[tuple[Token, ...], ...]:
        """What its CHECKs ask of this column for all values of the others."""
        parts = (part for check in self.checks for part in check.conjuncts)
        others = [name for name in self.columns if name != column]
        return tuple(
            part
            for part in parts
            if any(token.names(column) for token in part)
            and not any(token.names(other) for token in part for other in others)
        )

    @property
    def conflict_clauses(self) -> tuple[str, ...]:
        """The reaction of its constraints to a conflict, unless the statement says otherwise."""
        return conflict_clauses(self.sql) if self.is_table else ()

    def refuses_null(self, column: Column) -> bool:
        """Whether NOT NULL is declared. A primary key alone refuses NULL only in STRICT and WITHOUT ROWID tables."""
        return column.not_null or (column.primary_key > 0 and (self.strict or self.without_rowid))

    def is_rowid(self, column: Column) -> bool:
        """Whether SQLite itself gives the column a number where a row has none."""
        return column.primary_key > 0 and column.type.upper() == "INTEGER" and not self.without_rowid

    def unique_on(self, column: str) -> tuple[Index, ...]:
        """Its full unique indexes on exactly this column."""
        return tuple(index for index in self.indexes if index.is_full_on(column))


@dataclass(frozen=True, slots=True)
class Database:
    """The content of one file's catalogue, and the file's place in the system."""

    relations: Mapping[str, Relation]
    wal: bool
    file: Row
    folders: tuple[Row, ...]

    def relation(self, name: str) -> Relation | None:
        """A relation by its name, which SQLite compares without regard to case."""
        return next((each for each in self.relations.values() if each.name.casefold() == name.casefold()), None)


def place_of(relation: RelationName) -> str:
    """The name of a relation's file in a structure."""
    return MAIN if relation.schema == MAIN else AUDIT


def database(snapshot: Snapshot, name: str = MAIN) -> Database:
    """The view of one file: the live one, or "audit"."""
    rows = {
        key.removeprefix(f"{name}."): rows for key, rows in snapshot.structure.items() if key.startswith(f"{name}.")
    }
    # A trigger names its relation as it likes, where SQLite ignores case.
    objects = _grouped(rows["schema"], lambda row: str(row["relation"]).casefold())
    others = [
        _grouped(rows[query], lambda row: str(row["relation"])) for query in ("columns", "indexes", "foreign_keys")
    ]
    relations = {
        name: _relation(row, objects.get(name.casefold(), []), *(each.get(name, []) for each in others))
        for name, row in ((str(row["name"]), row) for row in rows["relations"])
    }
    return Database(relations, rows["journal"][0]["mode"] == "wal", rows["file"][0], rows["folders"])


def _grouped(rows: Iterable[Row], by: Callable[[Row], str]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(by(row), []).append(row)
    return found


def _relation(row: Row, objects: list[Row], columns: list[Row], indexes: list[Row], keys: list[Row]) -> Relation:
    name = str(row["name"])
    sql = next((str(each["sql"]) for each in objects if each["type"] in ("table", "view") and each["name"] == name), "")
    made = {each["name"]: str(each["sql"] or "") for each in objects if each["type"] == "index"}
    return Relation(
        name,
        str(row["kind"]),
        bool(row["strict"]),
        bool(row["without_rowid"]),
        sql,
        {str(each["name"]): _column(each) for each in columns},
        tuple(
            _index(parts, tuple(unique_constraints(sql)), made)
            for parts in _grouped(indexes, lambda row: str(row["name"])).values()
        ),
        tuple(trigger(str(each["name"]), name, str(each["sql"])) for each in objects if each["type"] == "trigger"),
        tuple(_foreign_key(parts) for parts in _grouped(keys, lambda row: str(row["number"])).values()),
        row,
    )


def _column(row: Row) -> Column:
    default = None if row["default_text"] is None else str(row["default_text"])
    generated = row["hidden"] in _GENERATED
    name, kind, key = str(row["name"]), str(row["type"]), int(row["primary_key"])
    return Column(name, kind, bool(row["not_null"]), default, key, generated, row)


def _index(parts: list[Row], named: tuple[tuple[str, tuple[str, ...]], ...], made: Mapping[str, str]) -> Index:
    first, name = parts[0], str(parts[0]["name"])
    columns = _texts(parts, "column_name")
    called = (constraint for constraint, key in named if first["origin"] != "c" and key == columns)
    # Of a CREATE INDEX the part after the names of the index and its table.
    found = tokens(made.get(name, ""))
    return Index(
        name,
        bool(first["is_unique"]),
        bool(first["partial"]),
        columns,
        tuple(str(part["collation"]) for part in parts),
        tuple(parts),
        next(called, name),
        found[next((place for place, token in enumerate(found) if token.says("(")), len(found)) :],
    )


def _foreign_key(parts: list[Row]) -> ForeignKey:
    relation, parent, on_update, on_delete = (
        str(parts[0][name]) for name in ("relation", "parent", "on_update", "on_delete")
    )
    columns, to = tuple(str(part["column_name"]) for part in parts), _texts(parts, "parent_column")
    return ForeignKey(relation, parent, columns, to, on_update, on_delete, tuple(parts))


def _texts(parts: list[Row], name: str) -> tuple[str | None, ...]:
    return tuple(None if part[name] is None else str(part[name]) for part in parts)
