"""Reads a live server, each time in one read-only transaction, with settings for that transaction alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg

from holdfast.conformance.fitness.deadline import Deadline
from holdfast.conformance.fitness.errors import FitnessError
from holdfast.conformance.fitness.postgres.blockers import cause, inquirer
from holdfast.conformance.fitness.postgres.connecting import Connection
from holdfast.conformance.fitness.postgres.snapshot import moment
from holdfast.conformance.fitness.target import Target

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
