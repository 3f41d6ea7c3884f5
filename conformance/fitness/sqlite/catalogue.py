"""A typed view over the rows of a SQLite snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.conformance.fitness.model import Part, RelationName, Row, Snapshot, Surface
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


@dataclass(frozen=True, slots=True)
class Index:
    """One index. `columns` holds None for an expression; `collations` has one for each."""

    name: str
    unique: bool
    origin: str
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
        return checks(self.sql) if self.is_table else ()

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
    foreign_keys: tuple[ForeignKey, ...]
    wal: bool
    file: Row
    folders: tuple[Row, ...]

    def relation(self, name: str) -> Relation | None:
        """A relation by its name, which SQLite compares without regard to case."""
        return next((each for each in self.relations.values() if each.name.casefold() == name.casefold()), None)


def database(snapshot: Snapshot, name: str = MAIN) -> Database:
    """The view of one file: the live one, or "audit"."""
    rows = {
        query.removeprefix(f"{name}."): found
        for query, found in snapshot.structure.items()
        if query.startswith(f"{name}.")
    }
    keys = tuple(_foreign_keys(rows["foreign_keys"]))
    pieces = _pieces(rows, keys)
    relations = {str(row["name"]): _relation(row, pieces) for row in rows["relations"]}
    return Database(relations, keys, rows["journal"][0]["mode"] == "wal", rows["file"][0], rows["folders"])


def part(snapshot: Snapshot, surface: Surface, which: Part) -> Relation | None:
    """The relation of a part, None if the surface names none or the file has none of that name."""
    name = surface.parts.get(which)
    return None if name is None else database(snapshot, place_of(name)).relation(name.name)


def place_of(relation: RelationName) -> str:
    """The name of a relation's file in a structure."""
    return MAIN if relation.schema == MAIN else AUDIT


@dataclass(frozen=True, slots=True)
class _Pieces:
    """The rows of a file by the name of the relation that they belong to; names are folded where SQLite does."""

    sql: Mapping[str, str]
    # The texts of indexes, by their own names.
    indexes: Mapping[str, str]
    columns: Mapping[str, list[Row]]
    index_columns: Mapping[str, list[Row]]
    triggers: Mapping[str, list[Row]]
    foreign_keys: Mapping[str, list[ForeignKey]]


def _pieces(rows: Mapping[str, tuple[Row, ...]], keys: tuple[ForeignKey, ...]) -> _Pieces:
    objects = rows["schema"]
    keyed: dict[str, list[ForeignKey]] = {}
    for key in keys:
        keyed.setdefault(key.relation, []).append(key)
    return _Pieces(
        {str(each["name"]): str(each["sql"]) for each in reversed(objects) if each["type"] in ("table", "view")},
        {str(each["name"]): str(each["sql"] or "") for each in objects if each["type"] == "index"},
        _grouped(rows["columns"]),
        _grouped(rows["indexes"]),
        _grouped([each for each in objects if each["type"] == "trigger"], fold=True),
        keyed,
    )


def _grouped(rows: Iterable[Row], *, fold: bool = False) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        name = str(row["relation"])
        found.setdefault(name.casefold() if fold else name, []).append(row)
    return found


def _relation(row: Row, pieces: _Pieces) -> Relation:
    name = str(row["name"])
    sql = pieces.sql.get(name, "")
    return Relation(
        name,
        str(row["kind"]),
        bool(row["strict"]),
        bool(row["without_rowid"]),
        sql,
        {str(each["name"]): _column(each) for each in pieces.columns.get(name, ())},
        tuple(_indexes(pieces.index_columns.get(name, []), unique_constraints(sql), pieces.indexes)),
        tuple(trigger(str(each["name"]), name, str(each["sql"])) for each in pieces.triggers.get(name.casefold(), ())),
        tuple(pieces.foreign_keys.get(name, ())),
        row,
    )


def _column(row: Row) -> Column:
    default: Any = row["default_text"]
    return Column(
        str(row["name"]),
        str(row["type"]),
        bool(row["not_null"]),
        None if default is None else str(default),
        int(row["primary_key"]),
        row["hidden"] in _GENERATED,
        row,
    )


def _indexes(
    rows: list[Row], named: tuple[tuple[str, tuple[str, ...]], ...], made: Mapping[str, str]
) -> Iterator[Index]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(str(row["name"]), []).append(row)
    for name, parts in found.items():
        columns = tuple(None if part["column_name"] is None else str(part["column_name"]) for part in parts)
        written = parts[0]["origin"] != "c"
        yield Index(
            name,
            bool(parts[0]["is_unique"]),
            str(parts[0]["origin"]),
            bool(parts[0]["partial"]),
            columns,
            tuple(str(part["collation"]) for part in parts),
            tuple(parts),
            next((constraint for constraint, key in named if written and key == columns), name),
            _key_of(made.get(name, "")),
        )


def _key_of(sql: str) -> tuple[Token, ...]:
    """The part of a CREATE INDEX after the names of the index and its table."""
    found = tokens(sql)
    return found[next((place for place, token in enumerate(found) if token.says("(")), len(found)) :]


def _foreign_keys(rows: tuple[Row, ...]) -> Iterator[ForeignKey]:
    found: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        found.setdefault((str(row["relation"]), int(row["number"])), []).append(row)
    for (relation, _), parts in found.items():
        yield ForeignKey(
            relation,
            str(parts[0]["parent"]),
            tuple(str(part["column_name"]) for part in parts),
            tuple(None if part["parent_column"] is None else str(part["parent_column"]) for part in parts),
            str(parts[0]["on_update"]),
            str(parts[0]["on_delete"]),
            tuple(parts),
        )
