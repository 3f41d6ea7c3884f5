"""What the catalogue of PostgreSQL says of a surface, in one read-only transaction with settings for it alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import psycopg
from psycopg import errors, sql
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from holdfast.conformance.fitness.deadline import Deadline
from holdfast.conformance.fitness.errors import FitnessError
from holdfast.conformance.fitness.model import Dialect, Row, Snapshot, Surface
from holdfast.conformance.fitness.policy import CONTRACT
from holdfast.conformance.fitness.postgres.catalogue import UNREADABLE
from holdfast.conformance.fitness.postgres.connecting import Connection, cause, inquirer
from holdfast.conformance.fitness.target import Target
from holdfast.specs.fitness import Query, QueryKind, in_order, load_queries, parameters
from holdfast.specs.strictjson import MAX_SAFE_INTEGER

# What the role may not read, what this server does not know, and what is no text: a database without an encoding holds
# all bytes that it was given.
_UNREADABLE = (
    errors.InsufficientPrivilege,
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.UndefinedFunction,
    # Services that speak PostgreSQL and are none: what they cannot say is not there.
    errors.FeatureNotSupported,
    errors.CharacterNotInRepertoire,
)
# Whether a relation belongs to a superuser.
_BY_A_SUPERUSER = """
SELECT r.rolsuper FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_roles r ON r.oid = c.relowner WHERE n.nspname = %s AND c.relname = %s
"""


class StrangerError(Exception):
    """A relation that an extension should have made belongs to another owner."""


def take(connection: psycopg.Connection[Any], surface: Surface) -> Snapshot:
    """Everything about the relations of `surface` and its writer, as of one moment.

    In the transaction that the connection is in (`moment`), or in one of its own. What the role may not read, or the
    server does not know, is left out and named under `unreadable` in the circumstances. Raises psycopg.Error if the
    connection fails.
    """
    relations = [(name.schema, name.name) for name in surface.parts.values()]
    return read(connection, relations, surface.writer)


def read(
    connection: psycopg.Connection[Any],
    relations: Sequence[tuple[str, str]],
    writer: str | None,
    *,
    only: Collection[str] = (),
) -> Snapshot:
    """The same for relations by (schema, name); `only` these queries, if there are any."""
    given = parameters(relations, writer)
    queries = load_queries(CONTRACT)
    structure: dict[str, tuple[Row, ...]] = {}
    circumstances: dict[str, Any] = {}
    unreadable: dict[str, str] = {}
    idle = connection.info.transaction_status is TransactionStatus.IDLE
    with moment(connection) if idle else nullcontext():
        for query in (each for each in queries.queries if not only or each.name in only):
            try:
                with connection.transaction():
                    rows = _rows(connection, query, given)
            except _UNREADABLE as error:
                unreadable[query.name] = f"{error.sqlstate} {error.diag.message_primary or ''}".strip()
            except StrangerError as error:
                unreadable[query.name] = str(error)
            else:
                if query.kind is QueryKind.STRUCTURE:
                    structure[query.name] = rows
                else:
                    circumstances[query.name] = list(rows)
    circumstances[UNREADABLE] = unreadable
    return Snapshot(Dialect.POSTGRESQL, structure, circumstances)


@contextmanager
def moment(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """One transaction that reads one state of the database, cannot write, and is rolled back.

    Each setting is for this transaction alone: it ends with it, in every session and however it ends.
    """
    with connection.transaction(force_rollback=True):
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        for setting in load_queries(CONTRACT).settings:
            connection.execute(setting)
        yield


def _rows(connection: psycopg.Connection[Any], query: Query, given: Mapping[str, Any]) -> tuple[Row, ...]:
    """The rows of a query. Raises StrangerError where reading could run a user's functions."""
    for needed in query.needs:
        found = connection.execute(_BY_A_SUPERUSER, needed).fetchone()
        if found is None:
            return ()
        if not found[0]:
            name = ".".join(needed)
            raise StrangerError(f"{name} belongs to no superuser, so reading it could run anybody's functions")
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(sql.SQL(query.sql), given)
        return in_order({name: _plain(value) for name, value in row.items()} for row in cursor)


def _plain(value: Any) -> Any:
    """A value as I-JSON has it."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_SAFE_INTEGER else str(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    # Numbers that JSON may spell in several ways, and instants and spans of the tables of extensions.
    if isinstance(value, Decimal | float | date | time | timedelta):
        return str(value)
    raise TypeError(f"a catalogue query gave a {type(value).__name__}, which no proof can hold")


# Major versions whose catalogues the queries know.
OLDEST, NEWEST = 13, 18
# Longer than the server lets a statement take in such a transaction (`settings` of the queries).
STATEMENT_S = 35.0
# For a client that stops between two statements: its transaction must not keep the server from tidying up.
_IDLE = "SET LOCAL idle_in_transaction_session_timeout = '60s'"


@contextmanager
def reading(target: Target, deadline: Deadline, purpose: str) -> Iterator[Connection]:
    """A transaction that cannot write. Each error of the database becomes a FitnessError without secrets."""
    with errors_described(target, purpose), ExitStack() as stack:
        inquire = inquirer(target, deadline)
        connection = Connection.reach(
            target.dsn, purpose=purpose, longest=STATEMENT_S, deadline=deadline, inquire=inquire
        )
        stack.callback(connection.close)
        major = connection.info.server_version // 10_000
        if not OLDEST <= major <= NEWEST:
            raise FitnessError(
                f"{target.described}: expected PostgreSQL {OLDEST} to {NEWEST}, got {major}: its catalogue may say "
                "things that this version of holdfast does not know"
            )
        stack.enter_context(moment(connection))
        connection.execute(_IDLE)
        yield connection


@contextmanager
def errors_described(target: Target, purpose: str) -> Iterator[None]:
    """Errors of the driver and the server as a FitnessError without secrets, with what to do about it.

    Of a wait that was too long it says for what `purpose`, and who was in the way.
    """
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise FitnessError(
            f"{target.described}: the role of the DSN may not read the catalogue: {target.first_line(error)}; "
            "connect as a role that may, such as the owner of the database"
        ) from None
    except psycopg.Error as error:
        said, why = target.first_line(error), target.scrubbed(cause(error))
        if why and not said.startswith(purpose):
            said = f"{purpose}: {said}"
        raise FitnessError(
            f"{target.described} cannot be asked: {said}{why or '; check that the server runs and lets this role in'}"
        ) from None
