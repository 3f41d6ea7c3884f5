"""All relations of a database, and who writes to one."""

from __future__ import annotations

from typing import Any

import psycopg

from holdfast.conformance.fitness.candidates import candidates
from holdfast.conformance.fitness.model import Candidate, RelationName
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres.catalogue import Catalogue
from holdfast.conformance.fitness.postgres.snapshot import read

_RELATIONS = """
    SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
      AND n.nspname !~ '^pg_(toast|temp)' AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_depend d
        WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = c.oid AND d.deptype = 'e'
      )
    ORDER BY 1, 2
"""
_WRITERS = """
    SELECT DISTINCT g.rolname::text
    FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace,
    LATERAL (
      SELECT x.grantee FROM pg_catalog.aclexplode(c.relacl) x WHERE x.privilege_type = 'INSERT'
      UNION
      SELECT x.grantee FROM pg_catalog.pg_attribute a, pg_catalog.aclexplode(a.attacl) x
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND x.privilege_type = 'INSERT'
    ) granted
    LEFT JOIN pg_catalog.pg_roles g ON g.oid = granted.grantee
    WHERE n.nspname = %s AND c.relname = %s AND granted.grantee <> c.relowner
      AND g.rolsuper IS DISTINCT FROM true
"""


def search(connection: psycopg.Connection[Any], policy: Policy) -> tuple[Candidate, ...]:
    """See `candidates`. Raises psycopg.Error."""
    with connection.transaction():
        found = [(str(schema), str(name)) for schema, name in connection.execute(_RELATIONS).fetchall()]
    catalogue = Catalogue(read(connection, found, None))
    return candidates(catalogue, [RelationName(schema, name) for schema, name in found], policy)


def writer(connection: psycopg.Connection[Any], effect: RelationName) -> str | None:
    """The only role to which INSERT on a relation was granted, but for its owner and superusers; None if there is none.

    PUBLIC is no role: where every role may insert, no role is the writer. Raises psycopg.Error.
    """
    with connection.transaction():
        rows = connection.execute(_WRITERS, (effect.schema, effect.name)).fetchall()
    return str(rows[0][0]) if len(rows) == 1 and rows[0][0] is not None else None
