"""The probes on a copy of a surface in SQLite files.

The copy is made by SQLite's own backup, pages and all, in a folder of its own; the harness needs the right to read
the file. A session has the main file and, attached to it, that of the audit.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import structs

from holdfast.conformance.fitness.errors import FitnessError, LostError
from holdfast.conformance.fitness.model import (
    Evidence,
    EvidenceClass,
    Part,
    Probe,
    ProbeAnswer,
    RelationName,
    Statement,
    Surface,
)
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres.catalogue import Catalogue, name_of
from holdfast.conformance.fitness.sqlite.catalogue import expression, state_of, translated, violated
from holdfast.conformance.fitness.sqlite.live import AUDIT, MAIN, files_of, read, take
from holdfast.conformance.fitness.trying.rows import (
    Attempt,
    Insert,
    ProbeBuilder,
    Sample,
    Session,
    first_number,
    quoted,
    rolled_back,
)
from holdfast.conformance.fitness.trying.tampering import FILE_ROLE
from holdfast.conformance.fitness.trying.trials import NOT_ADMITTED, left, races, trials, until_it_fails
from holdfast.conformance.fitness.trying.values import Table, table_of

# A trigger that never ends must not block the kit; the check of all pages may take longer.
_STATEMENT_S = 10.0
_INSTRUCTIONS = 100_000
# Results that this Python has no name for.
_NAMES = {3091: "SQLITE_CONSTRAINT_DATATYPE"}
# What a connection has that sets nothing, for what a policy does not declare.
_DEFAULTS: Mapping[str, str] = {"recursive_triggers": "off", "foreign_keys": "off"}
# The process that is killed interrupts a trigger that never ends.
_PATIENCE_S = 10.0
# It has nothing of ours: what it needs it reads. It says one line for each statement, then kills itself.
_PROGRAM = """
import json, os, signal, sqlite3, sys, time
told = json.load(sys.stdin)
connection = sqlite3.connect(told["file"], isolation_level=None)
for pragma, value in told["settings"].items():
    connection.execute(f"PRAGMA {pragma} = {value}")
ends = time.monotonic() + told["patience"]
connection.set_progress_handler(lambda: int(time.monotonic() > ends), told["instructions"])
for sql, parameters in told["statements"]:
    try:
        print(json.dumps([None, "", max(connection.execute(sql, parameters).rowcount, 0)]), flush=True)
    except sqlite3.Error as error:
        print(json.dumps([type(error).__name__, str(error), None]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
# A statement with its parameters.
_Sent: TypeAlias = tuple[str, Sequence[Any]]


def _bound(parameters: Sequence[Any]) -> dict[str, Any]:
    """Parameters by the names that `$1` and so on are to SQLite."""
    return {str(place): value for place, value in enumerate(parameters, 1)}


def kill_before_commit(file: Path, settings: Mapping[str, str], statements: Sequence[_Sent]) -> list[ProbeAnswer]:
    """What another process is told on these statements, which is killed after the last one. Raises OSError."""
    told = {
        "file": str(file),
        "settings": dict(settings),
        "patience": _PATIENCE_S,
        "instructions": _INSTRUCTIONS,
        "statements": [[text, _bound(parameters)] for text, parameters in statements],
    }
    words = [sys.executable, "-I", "-S", "-c", _PROGRAM]
    said = subprocess.run(words, input=json.dumps(told), stdout=subprocess.PIPE, text=True, check=False).stdout
    answers = (ProbeAnswer(*json.loads(line)) for line in said.splitlines())
    return [each if each.sqlstate is None else replace_state(each, ()) for each in answers]


def replace_state(answer: ProbeAnswer, indexes: Sequence[Mapping[str, Any]]) -> ProbeAnswer:
    """An answer with SQLite's name of an error, as all judges read it."""
    name = str(answer.sqlstate)
    state = "42P10" if answer.message.startswith("ON CONFLICT clause does not match") else state_of(name)
    constraint = violated(answer.message, indexes) if state == "23505" else None
    return structs.replace(answer, sqlstate=state, message=f"{name}: {answer.message}", constraint=constraint)


def gather_evidence(path: Path, surface: Surface, policy: Policy, *, within: Path | None = None) -> Evidence:
    """All evidence about a surface; copies lie `within` a folder. Raises FitnessError if the file cannot be read."""
    snapshot = take(path, surface)
    bare = Evidence(surface, snapshot)
    try:
        with tempfile.TemporaryDirectory(prefix="holdfast-fitness-", dir=within) as folder:
            files = {
                name: _copied(file, Path(folder) / f"{name}.sqlite3") for name, file in files_of(surface, path).items()
            }
            copy = FileCopy(files, {**_DEFAULTS, **policy.sqlite_connection}, Catalogue(translated(bare).snapshot))
            return replace(bare, probes=tuple(_probes(copy, surface, policy)))
    except (LostError, FitnessError, OSError, sqlite3.Error) as error:
        why = f"the copy cannot be worked on: {error}" if isinstance(error, sqlite3.Error) else str(error)
        return replace(bare, lost=dict.fromkeys((EvidenceClass.CLONE, EvidenceClass.CONCURRENCY), why))


def _copied(file: Path, to: Path) -> Path:
    def back_up(connection: sqlite3.Connection) -> None:
        # A second inspection would find the first one's copy.
        to.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(to)) as copy:
            connection.backup(copy)

    try:
        read(file, back_up)
    except OSError as error:
        raise LostError(f"no copy of {file} can be made: {error.strerror}") from error
    return to


@dataclass(frozen=True)
class FileCopy:
    """Copies of the files of a surface. Implements `Copy` and `Ground`."""

    files: Mapping[str, Path]
    settings: Mapping[str, str]
    catalogue: Catalogue
    in_files: bool = field(default=True, init=False)

    @contextlib.contextmanager
    def opened(self, *sessions: tuple[str, str]) -> Iterator[tuple[FileSession, ...]]:
        """See `Copy`."""
        with contextlib.ExitStack() as stack:
            made = []
            for label, _ in sessions:
                try:
                    made.append(FileSession(label, self))
                except sqlite3.Error as error:
                    raise LostError(str(error)) from error
                stack.callback(made[-1].connection.close)
            yield tuple(made)

    def table(self, relation: RelationName) -> Table | None:
        """See `Ground`."""
        return table_of(self.catalogue, relation, refers=self.settings["foreign_keys"] == "on")

    def is_table(self, relation: RelationName) -> bool:
        """Whether it is there, and a table."""
        row = self.catalogue.relation(relation)
        return row is not None and row["kind"] == "r"

    def text(self, relation: RelationName) -> str:
        """See `Ground`."""
        return f"{quoted(MAIN if relation.schema == MAIN else AUDIT)}.{quoted(relation.name)}"

    def refusal(self, rows: Sequence[Insert]) -> str:
        """See `Ground`."""
        with self.opened(("trial", FILE_ROLE)) as (session,), rolled_back(session):
            for row in rows:
                _, answer = session.send(row.text(), row.parameters)
                if answer.sqlstate is not None:
                    return f"{answer.sqlstate}: {answer.message.partition(': ')[2]}"
        return ""

    def violated(self, text: str, message: str) -> str | None:
        """The CHECK that refused a statement; None where several of its relation can be meant."""
        found = {
            (str(row["name"]), str(row["definition"]))
            for row in self.catalogue.rows("constraints")
            if f" INTO {self.text(name_of(row))} " in text
            and _is_meant(row, message.partition(": ")[2], self._columns(name_of(row)))
        }
        return next(iter(found))[0] if len(found) == 1 else None

    def _columns(self, relation: RelationName) -> list[str]:
        return [str(row["name"]) for row in self.catalogue.of("columns", relation)]


def _is_meant(row: Mapping[str, Any], said: str, columns: Sequence[str]) -> bool:
    """Whether SQLite's message speaks of a CHECK: by its name, its text, or the quoted name that it begins with."""
    whole = f"CHECK ({expression(said, columns)})"
    return said == row["name"] or row["definition"] == whole or str(row["definition"]).startswith(whole[:-1] + " ")


class FileSession:
    """One connection of a probe, as the registrar is declared to open its own. Implements `Session`."""

    def __init__(self, label: str, copy: FileCopy) -> None:
        """Raises sqlite3.Error."""
        self.label = label
        self._copy = copy
        self.connection = sqlite3.connect(copy.files[MAIN], isolation_level=None, timeout=0, check_same_thread=False)
        try:
            if AUDIT in copy.files:
                self.connection.execute(f"ATTACH ? AS {AUDIT}", (str(copy.files[AUDIT]),))
            for pragma, value in copy.settings.items():
                self.connection.execute(f"PRAGMA {pragma} = {value}")
        except BaseException:
            self.connection.close()
            raise
        self._deadline = 0.0
        self.connection.set_progress_handler(lambda: int(time.monotonic() > self._deadline), _INSTRUCTIONS)

    def send(self, text: str, parameters: Sequence[Any] = ()) -> tuple[Statement, ProbeAnswer]:
        """See `Session`."""
        self._deadline = time.monotonic() + _STATEMENT_S
        statement = Statement(self.label, FILE_ROLE, text, tuple(parameters))
        try:
            cursor = self.connection.execute(text, _bound(parameters))
            names = [part[0] for part in cursor.description or ()]
            rows = tuple(dict(zip(names, row, strict=True)) for row in cursor.fetchall())
            return statement, ProbeAnswer(None, "", len(rows) if names else max(cursor.rowcount, 0), rows)
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            name = type(error).__name__ if code is None else _NAMES.get(code, error.sqlite_errorname)
            answer = replace_state(ProbeAnswer(name, str(error)), self._copy.catalogue.rows("indexes"))
            if answer.sqlstate == "23514":
                answer = structs.replace(answer, constraint=self._copy.violated(text, str(error)))
            return statement, answer

    def begin(self) -> None:
        """See `Session`."""
        self.send("BEGIN")

    def rollback(self) -> None:
        """See `Session`."""
        if self.connection.in_transaction:
            self.send("ROLLBACK")


def _probes(copy: FileCopy, surface: Surface, policy: Policy) -> Iterator[Probe]:
    with copy.opened(("checker", FILE_ROLE)) as (checker,):
        # All pages are read, however many there are.
        checker.connection.set_progress_handler(None, 0)
        for place in copy.files:
            attempt = Attempt("integrity" if place == MAIN else f"integrity-{place}", EvidenceClass.CLONE)
            attempt.send(checker, f"PRAGMA {place}.integrity_check(10)")
            yield attempt.done()
    # What a view does with a row is not its own.
    parts = {part: name for part, name in surface.parts.items() if copy.is_table(name)}
    if Part.EFFECT not in parts:
        return
    yield from until_it_fails(_trials(copy, Surface(surface.name, parts, None), policy))


def _trials(copy: FileCopy, surface: Surface, policy: Policy) -> Iterator[Probe]:
    names = (("writer", FILE_ROLE), ("another writer", FILE_ROLE), ("reader", FILE_ROLE))
    first = first_number()
    builder = ProbeBuilder(copy, surface, policy, helper=None, evidence=EvidenceClass.CLONE, first=first)
    with copy.opened(*names) as (writer, other, reader):

        def rest(first: Sample) -> Iterator[Probe]:
            kill = partial(_killed, builder, copy, writer, reader, first)
            yield from races(builder, partial(_race, builder, writer, other), kill, writer, other, reader)

        yield from trials(builder, copy, surface, FILE_ROLE, writer, rest)


def _race(
    builder: ProbeBuilder,
    winner: Session,
    loser: Session,
    part: Part,
    word: str,
    ends: str,
    suffix: str,
    attempt: Attempt,
) -> str:
    """The second session cannot begin to write before the first one has ended."""
    one = builder.fresh()
    with rolled_back(winner):
        if builder.put(attempt, winner, one, upto=part).sqlstate is not None:
            return NOT_ADMITTED
        statement, answer = loser.send("BEGIN IMMEDIATE")
        attempt.keep(statement, ProbeAnswer(rows=({"waits": answer.sqlstate == "55P03"},)))
        loser.rollback()
        attempt.send(winner, ends)
    with rolled_back(loser):
        builder.put(attempt, loser, builder.like(one, word), upto=part, suffix=suffix)
    return ""


def _killed(
    builder: ProbeBuilder, copy: FileCopy, session: Session, reader: Session, first: Sample, attempt: Attempt
) -> str:
    """A process that is killed between the inserts and the commit leaves neither row."""
    sample, rehearsal = builder.fresh(), builder.attempt("rehearsal")
    # Rehearsed here, so that each statement finds the rows that earlier ones have made.
    with rolled_back(session):
        if builder.put(rehearsal, session, sample).sqlstate is not None:
            return NOT_ADMITTED
    sent = [("BEGIN IMMEDIATE", ()), *((each.sql, each.parameters) for each in rehearsal.done().statements)]
    answers = kill_before_commit(copy.files[MAIN], copy.settings, sent)
    for (text, parameters), answer in zip(sent, answers, strict=False):
        attempt.keep(Statement("killed", FILE_ROLE, text, tuple(parameters)), answer)
    if len(answers) < len(sent):
        return "the process that was to be killed ended by itself"
    attempt.send(reader, *left(builder, sample, first))
    return ""
