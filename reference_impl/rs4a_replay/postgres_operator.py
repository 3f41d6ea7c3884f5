"""The operator's side of PostgreSQL: an administrative connection to the session's own database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg import sql

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.postgres import Connection, Link, with_settings
from holdfast.reference_impl.rs4a_replay.ddl import SCHEMA
from holdfast.reference_impl.rs4a_replay.operator import Breakage, RawInsert, there
from holdfast.reference_impl.rs4a_replay.store import Row, StoreError
from holdfast.reference_impl.session import SurfaceWanted
from holdfast.specs import Relation

_CATALOGUE = """
SELECT 'relation ' || c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind NOT IN ('i', 'I') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_'
UNION ALL
SELECT 'index ' || c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('i', 'I') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_'
UNION ALL
SELECT 'trigger ' || t.tgname || ' on ' || t.tgrelid::regclass::text FROM pg_trigger t WHERE NOT t.tgisinternal
UNION ALL
SELECT 'constraint ' || o.conname || ' on ' || o.conrelid::regclass::text
  FROM pg_constraint o JOIN pg_namespace n ON n.oid = o.connamespace
 WHERE o.conrelid <> 0 AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_'
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
        self._writer = sql.Identifier(writer)

    def _connection(self) -> Connection:
        connection = self._admin.connection()
        try:
            connection.execute("SELECT 1")
        except psycopg.OperationalError:
            # The server may have restarted since the last use of this connection.
            self._admin.drop()
            connection = self._admin.connection()
        return connection

    def rows(self, relations: Sequence[Relation]) -> Mapping[str, Sequence[Row]]:
        """See `operator.Operator`. One statement, hence one snapshot."""
        try:
            return there(relations, self._rows(relations), self._expected)
        except psycopg.Error as error:
            raise StoreError(f"expected to read the database, got: {error}") from error

    def _rows(self, relations: Sequence[Relation]) -> Mapping[str, Sequence[Row]]:
        connection = self._connection()
        names: list[Any] = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s)", (SCHEMA,)
        ).fetchall()
        seen = [relation for relation in relations if (relation.name,) in names]
        if not seen:
            return {}
        row: Any = connection.execute(sql.SQL("SELECT {}").format(sql.SQL(", ").join(map(_all_rows, seen)))).fetchone()
        return dict(zip((relation.name for relation in seen), row, strict=True))

    def catalogue(self) -> Sequence[str]:
        """See `operator.Operator`."""
        found: list[Any] = self._connection().execute(_CATALOGUE).fetchall()
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
        except psycopg.OperationalError:
            raise
        except psycopg.Error as error:
            return RawInsert(inserted=False, constraint=error.diag.constraint_name)
        return RawInsert(inserted=True)

    def break_surface(self, how: Breakage, relations: Mapping[str, Relation]) -> None:
        """See `operator.Operator`. Real each time: privileges, a renamed relation, a lock that is never given back."""
        connection = self._connection()
        if how is Breakage.UNREACHABLE:
            name = sql.Identifier(connection.info.dbname)
            connection.execute(sql.SQL("REVOKE CONNECT ON DATABASE {} FROM PUBLIC").format(name))
            self._writer_link.drop()
            connection.execute(
                "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        elif how is Breakage.UNREADABLE:
            for relation in relations.values():
                if not relation.audit:
                    connection.execute(sql.SQL("REVOKE SELECT ON {} FROM {}").format(_table(relation), self._writer))
        elif how is Breakage.INCOMPLETE:
            gone = relations["nonce_consume"]
            connection.execute(
                sql.SQL("ALTER TABLE {} RENAME TO {}").format(_table(gone), sql.Identifier(f"{gone.name}_gone"))
            )
        else:
            # This connection holds the lock and can still read.
            connection.execute("BEGIN")
            connection.execute(
                sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(_table(relations["registration"]))
            )

    def break_audit(self, relation: Relation) -> None:
        """See `operator.Operator`."""
        self._connection().execute(sql.SQL("REVOKE INSERT ON {} FROM {}").format(_table(relation), self._writer))

    def mend_audit(self, relation: Relation) -> None:
        """See `operator.Operator`."""
        self._connection().execute(sql.SQL("GRANT INSERT ON {} TO {}").format(_table(relation), self._writer))

    def close(self) -> None:
        """See `operator.Operator`."""
        self._admin.drop()
        self._writer_link.drop()


def _all_rows(relation: Relation) -> sql.Composed:
    # Collation "C" orders text by its bytes, as the contract's relations compare it.
    keys = (sql.SQL('r.{} COLLATE "C"').format(sql.Identifier(name)) for name in relation.primary_key)
    return sql.SQL("(SELECT coalesce(jsonb_agg(to_jsonb(r) ORDER BY {}), '[]') FROM {} r)").format(
        sql.SQL(", ").join(keys), _table(relation)
    )


def _table(relation: Relation) -> sql.Identifier:
    return sql.Identifier(SCHEMA, relation.name)
