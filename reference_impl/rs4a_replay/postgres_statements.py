"""The SQL that the registrar runs on PostgreSQL. Every relation is named with its schema."""

from __future__ import annotations

from holdfast.reference_impl.rs4a_replay.ddl import SCHEMA
from holdfast.specs import Relation

# What stands in the configured schema, and which *sound* unique indexes each relation has: valid, immediate,
# unconditional, over plain columns. A foreign, unlogged or partitioned relation is not durable in the needed sense.
# The last column is the number of the relation, for LOOK.
CATALOGUE = f"""
SELECT c.relname, c.relkind = 'r' AND c.relpersistence = 'p',
  (SELECT array_agg(a.attname::text) FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
  (SELECT jsonb_agg((SELECT jsonb_agg(a.attname) FROM pg_catalog.pg_attribute a
                      WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])))
     FROM pg_catalog.pg_index i
    WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate
      AND i.indpred IS NULL AND i.indexprs IS NULL),
  c.oid
FROM pg_catalog.pg_class c
WHERE c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = '{SCHEMA}')
  AND c.relkind IN ('r', 'p', 'f', 'v', 'm')
"""

# One statement, hence one snapshot: what is stored about one key and one nonce, and before it the marks of the
# catalogue: which transaction wrote each of the relations that CATALOGUE found, and each of their indexes, and thus
# whether any was dropped or altered since. Reading the marks takes a tenth of the time of reading the catalogue.
LOOK = f"""
SELECT
  ARRAY (SELECT k.xmin FROM pg_catalog.pg_class k WHERE k.oid = ANY (q.oids))::text
  || ARRAY (SELECT x.xmin FROM pg_catalog.pg_index x WHERE x.indrelid = ANY (q.oids))::text,
  to_jsonb(r), to_jsonb(v), to_jsonb(c), to_jsonb(i), to_jsonb(n)
FROM (SELECT %s::oid[] AS oids, %s::text AS logical_request_key, %s::text AS nonce) q
LEFT JOIN {SCHEMA}.registration r ON r.logical_request_key = q.logical_request_key
LEFT JOIN {SCHEMA}.verification v ON v.decision_id = r.decision_id
LEFT JOIN {SCHEMA}.compensation c ON c.decision_id = r.decision_id
LEFT JOIN {SCHEMA}.nonce_issue i ON i.authorization_nonce = q.nonce
LEFT JOIN {SCHEMA}.nonce_consume n ON n.authorization_nonce = q.nonce
LIMIT 1
"""

UNTOMBSTONED = f"""
SELECT to_jsonb(r) FROM {SCHEMA}.registration r
WHERE NOT EXISTS (SELECT 1 FROM {SCHEMA}.tombstone t WHERE t.logical_request_key = r.logical_request_key)
"""


_RETURNING = "RETURNING pg_catalog.pg_current_xact_id()::text"


def _into(relation: Relation) -> str:
    names, places = ", ".join(relation.columns), ", ".join(["%s"] * len(relation.columns))
    return f"INSERT INTO {SCHEMA}.{relation.name} ({names}) VALUES ({places})"


def insert(relation: Relation) -> str:
    """INSERT of a whole row, values in column order, returning the transaction's number."""
    return f"{_into(relation)} {_RETURNING}"


def append(relation: Relation) -> str:
    """The same of a row that no stored one conflicts with; of any other it returns nothing."""
    return f"{_into(relation)} ON CONFLICT DO NOTHING {_RETURNING}"


def read_back(relation: Relation) -> str:
    """One row of a relation by its primary key, which has one column."""
    (key,) = relation.primary_key
    return f"SELECT to_jsonb(r) FROM {SCHEMA}.{relation.name} r WHERE r.{key} = %s"
