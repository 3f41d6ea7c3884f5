"""Databases that stand for live ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from holdfast.conformance.fitness.model import Snapshot, Surface
from holdfast.conformance.fitness.postgres import roles
from holdfast.conformance.fitness.postgres.clone import Clone, clone
from holdfast.conformance.fitness.postgres.roles import Household
from holdfast.conformance.fitness.postgres.scratch import Scratch
from holdfast.conformance.fitness.postgres.snapshot import moment, take
from holdfast.conformance.fitness.target import target_of


def household(dsn: str) -> Household:
    """What surrounds a database on its server."""
    with psycopg.connect(dsn) as connection, moment(connection):
        return roles.read(connection)


def snapshot_of(dsn: str, surface: Surface) -> Snapshot:
    """What its catalogue says of a surface."""
    with psycopg.connect(dsn) as connection:
        return take(connection, surface)


def clone_of(dsn: str, surface: Surface, snapshot: Snapshot, server: Scratch) -> AbstractContextManager[Clone]:
    """A clone of a database on a server."""
    return clone(target_of(dsn), household(dsn), surface, snapshot, server)


# Objects of the cluster that initdb made have numbers below this one (FirstNormalObjectId).
_NORMAL = 16384
_SWEEP = f"""
DO $$ DECLARE made text; BEGIN
  FOR made IN SELECT format('DROP SCHEMA %I CASCADE', nspname) FROM pg_namespace
    WHERE oid >= {_NORMAL} AND nspname !~ '^pg_'
    UNION ALL SELECT format('DROP FOREIGN DATA WRAPPER %I CASCADE', fdwname) FROM pg_foreign_data_wrapper
  LOOP EXECUTE made; END LOOP;
END $$
"""
# What a sweep does not know, and who may do what with the database.
_LEFT = f"""
SELECT count(*)::int FROM (
  SELECT oid FROM pg_class UNION ALL SELECT oid FROM pg_proc UNION ALL SELECT oid FROM pg_type
  UNION ALL SELECT oid FROM pg_event_trigger UNION ALL SELECT oid FROM pg_extension
  UNION ALL SELECT oid FROM pg_foreign_data_wrapper UNION ALL SELECT oid FROM pg_default_acl
  UNION ALL SELECT oid FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp_'
  UNION ALL SELECT {_NORMAL} FROM pg_database
    WHERE datname = current_database() AND (datacl IS NOT NULL OR datdba <> 10)
  -- Functions of PostgreSQL's own have been granted to a role, or are no longer as initdb has left them.
  UNION ALL SELECT {_NORMAL} FROM pg_proc p
    JOIN pg_init_privs i ON i.classoid = 'pg_proc'::regclass AND i.objoid = p.oid
    WHERE p.oid < {_NORMAL} AND p.proacl <> i.initprivs
  UNION ALL SELECT {_NORMAL} FROM pg_namespace WHERE nspname = 'public' AND nspacl::text !~ '^.pg_database_owner=UC/'
) made WHERE oid >= {_NORMAL}
"""


@dataclass(frozen=True, slots=True)
class LiveServer:
    """A server; `dsn` is its superuser's."""

    dsn: str

    @contextmanager
    def database(self, name: str = "registry", *ddl: str) -> Iterator[psycopg.Connection[Any]]:
        """A database with this in it, and a connection to it; afterwards it is gone or empty, as are its roles.

        Making one costs more than most of what is done in it, so that one that was swept clean is used again.
        """
        with psycopg.connect(self.dsn, autocommit=True) as keeper:
            known = self._roles(keeper)
            if keeper.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone() is None:
                keeper.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
            try:
                with psycopg.connect(self.dsn_of(name), autocommit=True) as connection:
                    for statements in ddl:
                        connection.execute(statements.encode())
                    yield connection
            finally:
                keeper.execute(sql.SQL("ALTER DATABASE {} RESET ALL").format(sql.Identifier(name)))
                if not self._sweep(name):
                    keeper.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
                made = [sql.Identifier(role) for role in sorted(self._roles(keeper) - known)]
                if made:
                    keeper.execute(sql.SQL("DROP OWNED BY {}").format(sql.SQL(", ").join(made)))
                    keeper.execute(sql.SQL("DROP ROLE {}").format(sql.SQL(", ").join(made)))

    def _sweep(self, name: str) -> bool:
        """Drop what a test has made; whether the database is as it was new."""
        try:
            with psycopg.connect(self.dsn_of(name), autocommit=True) as sweeper:
                sweeper.execute("SET client_min_messages = error")
                sweeper.execute(_SWEEP)
                found = sweeper.execute(_LEFT).fetchone()
        except psycopg.Error:
            return False
        return found == (0,)

    def dsn_of(self, database: str, *, user: str | None = None) -> str:
        """DSN of a database on it, as the superuser or as another role."""
        return make_conninfo(self.dsn, dbname=database, **({} if user is None else {"user": user}))

    @staticmethod
    def _roles(connection: psycopg.Connection[Any]) -> set[str]:
        return {name for (name,) in connection.execute("SELECT rolname FROM pg_roles").fetchall()}
