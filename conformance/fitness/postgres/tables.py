"""What has to be known of a table to make rows for it, read where the rows are made."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg.rows import class_row

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
  SELECT a.attnum, t.oid AS type, a.atttypmod AS modifier
    FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
   WHERE a.attrelid = %(oid)s AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT d.attnum, t.typbasetype, t.typtypmod
    FROM depth d JOIN pg_catalog.pg_type t ON t.oid = d.type AND t.typtype = 'd'
)
SELECT a.attname AS name, t.typname AS type, t.typcategory::text AS category,
       -- With the header of a length: a varchar(10) has the modifier 14.
       CASE WHEN t.typname IN ('varchar', 'bpchar') AND d.modifier >= 4 THEN d.modifier - 4 END AS length,
       a.attnotnull AS not_null, a.atthasdef OR a.attidentity <> '' AS has_default,
       a.attgenerated <> '' AS generated, a.attidentity = 'a' AS numbered,
       a.attidentity <> '' OR coalesce(pg_catalog.pg_get_expr(v.adbin, v.adrelid) ~ %(fresh)s, false) AS made_up,
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
SELECT n.nspname AS schema, c.relname AS relation,
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
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_NUMBER = re.compile(r"(?<![\w.'])\d+(?![\w.'])")
_T = TypeVar("_T")


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
    labels: Sequence[str]

    @property
    def made_by_server(self) -> bool:
        """Whether ordinary statements cannot give it a value."""
        return self.generated or self.numbered


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on rows: a CHECK of the table, one of a domain, or that there is a partition (without a name)."""

    name: str
    domain: str | None
    columns: Sequence[str]
    text: str | None

    @property
    def literals(self) -> tuple[str, ...]:
        """The texts that it names."""
        return tuple(dict.fromkeys(found.replace("''", "'") for found in _QUOTED.findall(self.text or "")))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers that it names."""
        return tuple(dict.fromkeys(int(found) for found in _NUMBER.findall(_QUOTED.sub("", self.text or ""))))


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`columns` refer to `targets` of another relation, position by position."""

    schema: str
    relation: str
    columns: Sequence[str]
    targets: Sequence[str]

    @property
    def target(self) -> RelationName:
        """The other relation."""
        return RelationName(self.schema, self.relation)


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

    def checks_on(self, column: str) -> tuple[Check, ...]:
        """Those that read a column."""
        return tuple(check for check in self.checks if column in check.columns)


def read_table(connection: psycopg.Connection[Any], relation: RelationName) -> Table | None:
    """What there is of that name; None if there is nothing. Raises psycopg.Error."""
    found = connection.execute(_RELATION, (relation.schema, relation.name)).fetchone()
    if found is None:
        return None
    oid, owner = found

    def rows(kind: type[_T], query: str) -> list[_T]:
        with connection.cursor(row_factory=class_row(kind)) as cursor:
            return cursor.execute(query.encode(), {"oid": oid, "fresh": MADE_UP}).fetchall()

    columns = {column.name: column for column in rows(Column, _COLUMNS)}
    uniques = [unique for unique in rows(Unique, _UNIQUES) if None not in unique.columns]
    return Table(relation, owner, columns, rows(Check, _CHECKS), rows(ForeignKey, _FOREIGN_KEYS), uniques)
