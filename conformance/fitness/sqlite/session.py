"""Connections to the copy of a surface, and a record of their statements and answers."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path

from holdfast.conformance.fitness.model import ProbeAnswer, Statement
from holdfast.conformance.fitness.sqlite.rows import Sql

# The user who may write the file: SQLite knows no other.
ROLE = "whoever may write the file"
# A trigger that never ends must not block the kit; the check of all pages may take longer.
_STATEMENT_S = 10.0
_INSTRUCTIONS = 100_000
# Results that this Python has no name for.
_NAMES = {3091: "SQLITE_CONSTRAINT_DATATYPE"}
# What a connection has that sets nothing, for what a policy does not declare.
DEFAULTS: Mapping[str, str] = {"recursive_triggers": "off", "foreign_keys": "off"}


class Session:
    """One connection, opened as the registrar is declared to open its own."""

    def __init__(self, file: Path, name: str, settings: Mapping[str, str]) -> None:
        self.name = name
        self.connection = sqlite3.connect(file, isolation_level=None, timeout=0, check_same_thread=False)
        try:
            for pragma, value in {**DEFAULTS, **settings}.items():
                self.connection.execute(f"PRAGMA {pragma} = {value}")
        except BaseException:
            self.connection.close()
            raise
        self._deadline = 0.0
        self.connection.set_progress_handler(lambda: int(time.monotonic() > self._deadline), _INSTRUCTIONS)

    def run(self, sql: Sql) -> ProbeAnswer:
        """Send one statement. A refusal is an answer like any other."""
        self._deadline = time.monotonic() + _STATEMENT_S
        try:
            cursor = self.connection.execute(sql.text, sql.parameters)
            names = [part[0] for part in cursor.description or ()]
            rows = tuple(dict(zip(names, row, strict=True)) for row in cursor.fetchall())
            return ProbeAnswer(None, "", len(rows) if names else max(cursor.rowcount, 0), rows)
        except sqlite3.Error as error:
            return ProbeAnswer(_name_of(error), str(error))

    def end(self) -> None:
        """Roll back the open transaction."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(sqlite3.Error):
            self.connection.close()


def _name_of(error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return type(error).__name__
    return _NAMES.get(code, str(error.sqlite_errorname))


def refused(answer: ProbeAnswer) -> bool:
    """Whether a constraint, a guard or a column's type said no; any other error is no refusal."""
    state = answer.sqlstate or ""
    return state.startswith("SQLITE_CONSTRAINT") or state == "SQLITE_MISMATCH"


class Transcript:
    """The statements and answers, in order, and their sessions."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self.answers: list[ProbeAnswer] = []

    def run(self, session: Session, sql: Sql) -> ProbeAnswer:
        """Send a statement and keep it with its answer."""
        self.statements.append(Statement(session.name, ROLE, sql.text, sql.parameters))
        self.answers.append(session.run(sql))
        return self.answers[-1]
