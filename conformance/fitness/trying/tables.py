"""What has to be known of a table to make rows for it: a view of a catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.conformance.fitness.model import RelationName, Row
from holdfast.conformance.fitness.postgres.catalogue import MADE_UP, Catalogue, longest

# The queries of a catalogue that say all of it.
NEEDED = ("relations", "columns", "constraints", "domain_checks", "indexes", "references", "inheritance")
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_NUMBER = re.compile(r"(?<![\w.'])\d+(?![\w.'])")
# pg_type.typcategory of PostgreSQL's own types, as far as values for them differ.
_CATEGORIES = {
    **dict.fromkeys(("text", "varchar", "bpchar", "char", "name", "citext"), "S"),
    **dict.fromkeys(("int2", "int4", "int8", "numeric", "float4", "float8", "money", "oid"), "N"),
    **dict.fromkeys(("date", "time", "timetz", "timestamp", "timestamptz"), "D"),
}
# What takes bytes as well, and what makes numbers of texts that look so.
_AFFINITIES = {"BLOB": "blob", **dict.fromkeys(("INTEGER", "REAL", "NUMERIC"), "affine")}


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `type` is the name of the base type, `category` that of pg_type.typcategory.

    `generated` is made of other columns, `numbered` an identity that is GENERATED ALWAYS,
    `made_up` has a value by default that no other row has: an identity, a sequence, a UUID.
    """

    name: str
    type: str
    category: str
    length: int | None
    not_null: bool
    has_default: bool
    generated: bool
    numbered: bool
    made_up: bool
    labels: Sequence[str]

    @property
    def made_by_server(self) -> bool:
        """Whether ordinary statements cannot give it a value."""
        return self.generated or self.numbered


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on rows: a CHECK of the table, one of a domain, or that there is a partition (without a name)."""

    name: str
    of_domain: bool
    columns: Sequence[str]
    text: str

    @property
    def literals(self) -> tuple[str, ...]:
        """The texts that it names."""
        return tuple(dict.fromkeys(found.replace("''", "'") for found in _QUOTED.findall(self.text)))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers that it names."""
        return tuple(dict.fromkeys(int(found) for found in _NUMBER.findall(_QUOTED.sub("", self.text))))


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
    checks: Sequence[Check]
    foreign_keys: Sequence[ForeignKey]
    uniques: Sequence[Unique]
    # Of SQLite: whether rows have a rowid, and the column that is the rowid by another name.
    has_rowid: bool = False
    rowid: str = ""

    def checks_on(self, column: str) -> tuple[Check, ...]:
        """Those that read a column."""
        return tuple(check for check in self.checks if column in check.columns)


def table_of(catalogue: Catalogue, relation: RelationName, *, refers: bool = True) -> Table | None:
    """What a catalogue says of a relation; None if it is not there. `refers`: foreign keys are enforced."""
    row = catalogue.relation(relation)
    if row is None:
        return None
    found = catalogue.of("columns", relation)
    columns = {str(each["name"]): _column(each) for each in found}
    return Table(
        relation,
        str(row.get("owner")),
        columns,
        tuple(_checks(catalogue, relation, row, columns)),
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


def _column(row: Row) -> Column:
    kind, default = _AFFINITIES.get(row.get("affinity", ""), str(row["base_type"]).rpartition(".")[2]), row["default"]
    category = "A" if kind.startswith("_") else "R" if kind.endswith("range") else _CATEGORIES.get(kind, "U")
    return Column(
        name=str(row["name"]),
        type=kind,
        category=category,
        length=longest(row),
        not_null=bool(row["not_null"]),
        has_default=default is not None or bool(row["identity"]),
        generated=bool(row["generated"]),
        numbered=row["identity"] == "a",
        made_up=bool(row["identity"] or row.get("random") or re.match(MADE_UP, str(default or ""))),
        labels=row["labels"] or (),
    )


def _checks(catalogue: Catalogue, relation: RelationName, row: Row, columns: Mapping[str, Column]) -> Iterator[Check]:
    for each in catalogue.of("constraints", relation):
        if each["kind"] == "c":
            yield Check(each["name"], False, each["columns"], each["definition"])
    domains: dict[str, list[Row]] = {}
    for each in catalogue.of("domain_checks", relation):
        domains.setdefault(str(each["name"]), []).append(each)
    for name, found in domains.items():
        yield Check(name, True, [each["column"] for each in found], found[0]["definition"])
    for child in catalogue.below(relation) if row["partition_key"] else ():
        bound = (catalogue.relation(child) or {}).get("partition_bound")
        yield Check("", False, [name for name in columns if name in str(row["partition_key"])], str(bound or ""))
