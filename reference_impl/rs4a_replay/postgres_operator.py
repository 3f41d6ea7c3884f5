"""The operator's side of PostgreSQL: an administrative connection to the session's own database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import psycopg
from psycopg import sql

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.postgres import Link, with_settings
from holdfast.reference_impl.rs4a_replay.ddl import SCHEMA
from holdfast.reference_impl.rs4a_replay.operator import Breakage, RawInsert, there
from holdfast.reference_impl.rs4a_replay.store import Row, StoreError
from holdfast.reference_impl.session import SurfaceWanted
from holdfast.specs import Relation

_CATALOGUE = """
SELECT 'relation or index ' || c.oid::regclass::text FROM pg_class c
 WHERE c.relnamespace::regnamespace::text !~ '^(pg_|information_schema$)'
UNION ALL
SELECT 'trigger ' || t.tgname || ' on ' || t.tgrelid::regclass::text FROM pg_trigger t
UNION ALL
SELECT 'constraint ' || o.conname || ' on ' || o.conrelid::regclass::text FROM pg_constraint o
 WHERE o.connamespace::regnamespace::text !~ '^(pg_|information_schema$)'
ORDER BY 1
"""


class PostgresOperator:
    """Implements `operator.Operator`. Connects only when something is asked of it."""

    def __init__(
        self, *, admin_dsn: str, writer_dsn: str, writer: str, expected: SurfaceWanted, patience: Patience
    ) -> None:
        self._expected = expected
        # Rows are read along their primary key: the index shows the rows that a truncated table has lost.
        admin_dsn = with_settings(admin_dsn, enable_seqscan="off", enable_bitmapscan="off")
        self._admin = Link(admin_dsn, patience=patience)
        self._writer_link = Link(writer_dsn, patience=patience)
        self._writer = sql.Identifier(writer).as_string()

    def rows(self, relations: Sequence[Relation]) -> Mapping[str, Sequence[Row]]:
        """See `operator.Operator`. One statement, hence one snapshot."""
        try:
            return there(relations, self._rows(relations), self._expected)
        except psycopg.Error as error:
            raise StoreError(f"expected to read the database, got: {error}") from error

    def _rows(self, relations: Sequence[Relation]) -> Mapping[str, Sequence[Row]]:
        connection = self._admin.alive()
        names: list[Any] = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s)", (SCHEMA,)
        ).fetchall()
        seen = map(_all_rows, (relation for relation in relations if (relation.name,) in names))
        rows = connection.execute(sql.SQL("SELECT jsonb_build_object({})").format(sql.SQL(", ").join(seen)))
        (found,) = rows.fetchall()
        return cast("Mapping[str, Sequence[Row]]", found[0])

    def catalogue(self) -> Sequence[str]:
        """See `operator.Operator`."""
        found: list[Any] = self._admin.alive().execute(_CATALOGUE).fetchall()
        return [name for (name,) in found]

    def raw_insert(self, relation: Relation, row: Row) -> RawInsert:
        """See `operator.Operator`. Runs as the restricted writer: an administrator could do anything."""
        statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
            _table(relation),
            sql.SQL(", ").join(map(sql.Identifier, row)),
            sql.SQL(", ").join(sql.Placeholder() * len(row)),
        )
        try:
            self._writer_link.connection().execute(statement, tuple(row.values()))
        except (psycopg.IntegrityError, psycopg.DataError, psycopg.ProgrammingError) as error:
            return RawInsert(inserted=False, constraint=error.diag.constraint_name)
        return RawInsert(inserted=True)

    def break_surface(self, how: Breakage) -> None:
        """See `operator.Operator`. Real each time: privileges, a renamed relation, a lock that is never given back."""
        connection = self._admin.alive()
        if how is Breakage.UNREACHABLE:
            name = sql.Identifier(connection.info.dbname)
            connection.execute(sql.SQL("REVOKE CONNECT ON DATABASE {} FROM PUBLIC").format(name))
            connection.execute(
                "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        elif how is Breakage.UNREADABLE:
            connection.execute(f"REVOKE SELECT ON ALL TABLES IN SCHEMA {SCHEMA} FROM {self._writer}")
        elif how is Breakage.INCOMPLETE:
            connection.execute(f"ALTER TABLE {SCHEMA}.nonce_consume RENAME TO nonce_consume_gone")
        else:
            # This connection holds the lock and can still read.
            connection.execute(f"BEGIN; LOCK TABLE {SCHEMA}.registration IN ACCESS EXCLUSIVE MODE")

    def break_audit(self) -> None:
        """See `operator.Operator`."""
        self._admin.alive().execute(f"REVOKE INSERT ON {SCHEMA}.audit FROM {self._writer}")

    def mend_audit(self) -> None:
        """See `operator.Operator`."""
        self._admin.alive().execute(f"GRANT INSERT ON {SCHEMA}.audit TO {self._writer}")

    def close(self) -> None:
        """See `operator.Operator`."""
        self._admin.drop()
        self._writer_link.drop()


def _all_rows(relation: Relation) -> sql.Composed:
    # Collation "C" orders text by its bytes, as the contract's relations compare it.
    keys = (sql.SQL('r.{} COLLATE "C"').format(sql.Identifier(name)) for name in relation.primary_key)
    return sql.SQL("{}, (SELECT coalesce(jsonb_agg(to_jsonb(r) ORDER BY {}), '[]') FROM {} r)").format(
        sql.Literal(relation.name), sql.SQL(", ").join(keys), _table(relation)
    )


def _table(relation: Relation) -> sql.Identifier:
    return sql.Identifier(SCHEMA, relation.name)
