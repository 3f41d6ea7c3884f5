"""What has to be known of a table to make rows for it, read where the rows are made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from holdfast.conformance.fitness.model import RelationName
from holdfast.conformance.fitness.postgres.catalogue import MADE_UP

_RELATION = """
SELECT c.oid, pg_catalog.pg_get_userbyid(c.relowner) AS owner
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = %s AND c.relname = %s
"""
# A domain is resolved to the type it is made of; a length is the domain's or the column's own.
_COLUMNS = """
WITH RECURSIVE depth AS (
  SELECT a.attnum, t.oid AS domain, t.oid AS type, a.atttypmod AS modifier
    FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
   WHERE a.attrelid = %(oid)s AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT d.attnum, d.domain, t.typbasetype, t.typtypmod
    FROM depth d JOIN pg_catalog.pg_type t ON t.oid = d.type AND t.typtype = 'd'
)
SELECT a.attname AS name, t.typname AS type, t.typcategory::text AS category, d.modifier,
       a.attnotnull AS not_null, a.atthasdef OR a.attidentity <> '' AS has_default,
       a.attgenerated <> '' AS generated, a.attidentity = 'a' AS numbered,
       a.attidentity <> '' OR coalesce(pg_catalog.pg_get_expr(v.adbin, v.adrelid) ~ %(fresh)s, false) AS made_up,
       CASE WHEN d.domain <> d.type THEN (SELECT typname FROM pg_catalog.pg_type WHERE oid = d.domain) END AS domain,
       ARRAY(SELECT e.enumlabel::text FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder)
         AS labels
  FROM depth d
  JOIN pg_catalog.pg_attribute a ON a.attrelid = %(oid)s AND a.attnum = d.attnum
  JOIN pg_catalog.pg_type t ON t.oid = d.type AND t.typtype <> 'd'
  LEFT JOIN pg_catalog.pg_attrdef v ON v.adrelid = a.attrelid AND v.adnum = a.attnum
 ORDER BY a.attnum
"""
_CHECKS = """
SELECT k.conname AS name, NULL AS domain, pg_catalog.pg_get_constraintdef(k.oid) AS text,
       ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a
              WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)) AS columns
  FROM pg_catalog.pg_constraint k WHERE k.conrelid = %(oid)s AND k.contype = 'c'
UNION ALL
SELECT k.conname, t.typname, pg_catalog.pg_get_constraintdef(k.oid),
       ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a
              WHERE a.attrelid = %(oid)s AND a.atttypid = t.oid AND NOT a.attisdropped)
  FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_type t ON t.oid = k.contypid
 WHERE k.contypid IN (SELECT atttypid FROM pg_catalog.pg_attribute WHERE attrelid = %(oid)s)
UNION ALL
SELECT '', NULL, pg_catalog.pg_get_expr(c.relpartbound, c.oid),
       ARRAY(SELECT a.attname::text FROM pg_catalog.pg_partitioned_table p
               JOIN pg_catalog.pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = ANY (p.partattrs::int2[])
              WHERE p.partrelid = %(oid)s)
  FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
 WHERE i.inhparent = %(oid)s AND c.relispartition
"""
_FOREIGN_KEYS = """
SELECT k.conname AS name, n.nspname AS schema, c.relname AS relation,
       ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY u(number, place)
               JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.number ORDER BY u.place)
         AS columns,
       ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY u(number, place)
               JOIN pg_catalog.pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.number ORDER BY u.place)
         AS targets
  FROM pg_catalog.pg_constraint k
  JOIN pg_catalog.pg_class c ON c.oid = k.confrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE k.conrelid = %(oid)s AND k.contype = 'f'
 ORDER BY k.conname
"""
_UNIQUES = """
SELECT c.relname AS name, i.indpred IS NULL AS total, i.indisprimary AS primary,
       ARRAY(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY u(number, place)
               LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = u.number AND u.number > 0
              WHERE u.place <= i.indnkeyatts ORDER BY u.place) AS columns
  FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
 WHERE i.indrelid = %(oid)s AND i.indisunique AND i.indisvalid AND i.indimmediate
 ORDER BY c.relname
"""
# The header of a length: a varchar(10) has the modifier 14.
_LENGTH_HEADER = 4
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_NUMBER = re.compile(r"(?<![\w.'])\d+(?![\w.'])")


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `type` is PostgreSQL's name of the base type, `category` pg_type.typcategory.

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
    domain: str | None
    labels: tuple[str, ...]

    @property
    def made_by_server(self) -> bool:
        """Whether ordinary statements cannot give it a value."""
        return self.generated or self.numbered


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on rows: a CHECK of the table, one of a domain, or that there is a partition (without a name)."""

    name: str
    domain: str | None
    columns: tuple[str, ...]
    literals: tuple[str, ...]
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`columns` refer to `targets` of the relation `target`, position by position."""

    name: str
    columns: tuple[str, ...]
    target: RelationName
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unique:
    """A valid and immediate unique index over plain columns; `total` if it has no condition."""

    name: str
    columns: tuple[str, ...]
    total: bool
    primary: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A relation that rows are made for."""

    relation: RelationName
    owner: str
    columns: Mapping[str, Column]
    checks: tuple[Check, ...]
    foreign_keys: tuple[ForeignKey, ...]
    uniques: tuple[Unique, ...]

    def checks_on(self, column: str) -> tuple[Check, ...]:
        """Those that read a column."""
        return tuple(check for check in self.checks if column in check.columns)


def read_table(connection: psycopg.Connection[Any], relation: RelationName) -> Table | None:
    """What there is of that name; None if there is nothing. Raises psycopg.Error."""
    with connection.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(_RELATION, (relation.schema, relation.name)).fetchone()
        if found is None:
            return None
        oid = {"oid": found["oid"], "fresh": MADE_UP}
        return Table(
            relation=relation,
            owner=found["owner"],
            columns={row["name"]: _column(row) for row in cursor.execute(_COLUMNS, oid).fetchall()},
            checks=tuple(_check(row) for row in cursor.execute(_CHECKS, oid).fetchall()),
            foreign_keys=tuple(
                ForeignKey(
                    row["name"],
                    tuple(row["columns"]),
                    RelationName(row["schema"], row["relation"]),
                    tuple(row["targets"]),
                )
                for row in cursor.execute(_FOREIGN_KEYS, oid).fetchall()
            ),
            uniques=tuple(
                Unique(row["name"], tuple(row["columns"]), row["total"], row["primary"])
                for row in cursor.execute(_UNIQUES, oid).fetchall()
                if None not in row["columns"]
            ),
        )


def _column(row: Mapping[str, Any]) -> Column:
    bounded = row["type"] in {"varchar", "bpchar"} and row["modifier"] >= _LENGTH_HEADER
    return Column(
        name=row["name"],
        type=row["type"],
        category=row["category"],
        length=row["modifier"] - _LENGTH_HEADER if bounded else None,
        not_null=row["not_null"],
        has_default=row["has_default"],
        generated=row["generated"],
        numbered=row["numbered"],
        made_up=row["made_up"],
        domain=row["domain"],
        labels=tuple(row["labels"]),
    )


def _check(row: Mapping[str, Any]) -> Check:
    text = row["text"] or ""
    quoted = tuple(dict.fromkeys(found.replace("''", "'") for found in _QUOTED.findall(text)))
    numbers = tuple(dict.fromkeys(int(found) for found in _NUMBER.findall(_QUOTED.sub("", text))))
    return Check(row["name"], row["domain"], tuple(row["columns"]), quoted, numbers)
