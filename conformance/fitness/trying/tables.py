"""What has to be known of a table to make rows for it: a view of a catalogue."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.conformance.fitness.model import RelationName, Row
from holdfast.conformance.fitness.postgres.catalogue import MADE_UP, Catalogue, longest

# The queries of a catalogue that say all of it.
NEEDED = ("relations", "columns", "constraints", "domain_checks", "indexes", "references", "inheritance")
# pg_type.typcategory of PostgreSQL's own types, as far as values for them differ.
_CATEGORIES = {
    **dict.fromkeys(("text", "varchar", "bpchar", "char", "name", "citext"), "S"),
    **dict.fromkeys(("int2", "int4", "int8", "numeric", "float4", "float8", "money", "oid"), "N"),
    **dict.fromkeys(("date", "time", "timetz", "timestamp", "timestamptz"), "D"),
}
# What takes bytes as well, and what makes numbers of texts that look so; "bytes" takes nothing else.
_AFFINITIES = {"BLOB": "blob", **dict.fromkeys(("INTEGER", "REAL", "NUMERIC"), "affine")}


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `type` is the name of the base type, `category` that of pg_type.typcategory.

    `needed` has to be said, `generated` is made of other columns, `numbered` an identity that is GENERATED ALWAYS,
    `made_up` has a value by default that no other row has: an identity, a sequence, a UUID; `checks` are texts.
    """

    name: str
    type: str
    category: str
    length: int | None
    needed: bool
    generated: bool
    numbered: bool
    made_up: bool
    labels: Sequence[str]
    checks: Sequence[str]

    @property
    def made_by_server(self) -> bool:
        """Whether ordinary statements cannot give it a value."""
        return self.generated or self.numbered


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`columns` refer to `targets` of another relation, position by position."""

    target: RelationName
    columns: Sequence[str]
    targets: Sequence[str]


@dataclass(frozen=True, slots=True)
class Unique:
    """A valid and immediate unique index over plain columns; `total` if it has no condition."""

    name: str
    total: bool
    primary: bool
    columns: Sequence[str]


@dataclass(frozen=True, slots=True)
class Table:
    """A relation that rows are made for."""

    relation: RelationName
    owner: str
    columns: Mapping[str, Column]
    foreign_keys: Sequence[ForeignKey]
    uniques: Sequence[Unique]
    # Of SQLite: whether rows have a rowid, and the column that is the rowid by another name.
    has_rowid: bool = False
    rowid: str = ""


def table_of(catalogue: Catalogue, relation: RelationName, *, refers: bool = True) -> Table | None:
    """What a catalogue says of a relation; None if it is not there. `refers`: foreign keys are enforced."""
    row = catalogue.relation(relation)
    if row is None:
        return None
    found, domains = catalogue.of("columns", relation), catalogue.of("domain_checks", relation)
    checks = [(each["columns"], each) for each in catalogue.of("constraints", relation) if each["kind"] == "c"]
    checks += [([each["column"]], each) for each in domains]
    return Table(
        relation,
        str(row.get("owner")),
        {
            str(each["name"]): _column(each, [str(check["definition"]) for of, check in checks if each["name"] in of])
            for each in found
        },
        tuple(
            ForeignKey(RelationName(key["to_schema"], key["to_relation"]), key["columns"], key["to_columns"])
            for key in sorted(catalogue.of("references", relation) if refers else (), key=lambda key: str(key["name"]))
        ),
        tuple(
            Unique(each.get("index", each["name"]), each["predicate"] is None, each["primary"], each["columns"])
            for each in catalogue.of("indexes", relation)
            if each["unique"] and each["valid"] and each["immediate"] and None not in each["columns"]
        ),
        has_rowid=row["kind"] == "r" and row.get("without_rowid") is False,
        rowid=next((str(each["name"]) for each in found if each["identity"] and "affinity" in each), ""),
    )


def _column(row: Row, checks: Sequence[str]) -> Column:
    kind, default = str(row["base_type"]).rpartition(".")[2], row["default"]
    if "affinity" in row:
        kind = "bytes" if kind == "bytea" else _AFFINITIES.get(row["affinity"], kind)
    category = "A" if kind.startswith("_") else "R" if kind.endswith("range") else _CATEGORIES.get(kind, "U")
    return Column(
        name=str(row["name"]),
        type=kind,
        category=category,
        length=longest(row),
        needed=bool(row["not_null"]) and default is None and not row["identity"],
        generated=bool(row["generated"]),
        numbered=row["identity"] == "a",
        made_up=bool(row["identity"] or row.get("random") or re.match(MADE_UP, str(default or ""))),
        labels=row["labels"] or (),
        checks=checks,
    )
