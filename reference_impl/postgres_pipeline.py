"""Several statements in one message to PostgreSQL: psycopg's own pipeline mode.

It saves exchanges with the server: a registration needs five instead of eleven (`bench/registrations.py`). On a machine
with ten times the load that it has processors for, code of our own on `psycopg.pq` reached 0.5 to 0.9 of the rate of a
bare transaction, this adapter 0.4. The adapter stays, because an example shows what the library offers.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg

Value = str | bool | None


@dataclass(frozen=True, slots=True)
class Step:
    """A statement, whose `%s` stand for the values."""

    statement: str
    values: Sequence[Value] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one step: its command tag, such as `COMMIT`, and its first row, None if there is none."""

    tag: str | None
    row: tuple[Any, ...] | None


def run(connection: psycopg.Connection[Any], *steps: Step) -> list[Reply]:
    """Send all steps at once. The first that fails is the last that runs; its error is raised, a psycopg.Error.

    Without BEGIN and COMMIT among them, the steps are one transaction.
    """
    # psycopg finds this only after it has sent the steps before it.
    if any(isinstance(value, str) and "\0" in value for step in steps for value in step.values):
        raise psycopg.DataError("PostgreSQL text cannot hold a NUL")
    with connection.pipeline():
        cursors = [connection.execute(step.statement, step.values, prepare=True) for step in steps]
    return [Reply(each.statusmessage, each.fetchone() if each.description else None) for each in cursors]


def rehearse(connection: psycopg.Connection[Any], step: Step) -> None:
    """Run a step and roll it back. Raises its psycopg.Error."""
    try:
        run(connection, Step("BEGIN"), step)
    finally:
        # An exchange of its own: psycopg forgets at a ROLLBACK what is prepared, and within a pipeline it does so late.
        with suppress(psycopg.OperationalError):
            connection.execute("ROLLBACK")
