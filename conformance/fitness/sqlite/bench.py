"""The bench for probes of a surface in SQLite files: copies, rows that its relations accept, and sessions.

The contract's words have known values; trials find the rest of a row.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from holdfast.conformance.fitness.model import EvidenceClass, Part, Probe, ProbeAnswer, Snapshot, Statement, Surface
from holdfast.conformance.fitness.policy import KEYS, NONCE, WORDS, Policy
from holdfast.conformance.fitness.sqlite.catalogue import Column, Database, ForeignKey, Relation, database, place_of
from holdfast.conformance.fitness.sqlite.live import MAIN

# Statements that are tried until a row is accepted.
_TRIES = 400
# Parents of parents of parents.
_DEPTH = 3
_HASHES = (*KEYS, "deployed_artifact_hash")
_INSTANT = "2026-01-02T03:04:05Z"
_EPOCH = 1_767_323_045
# What may be a number where a surface has numbers for it; keys and bindings are texts.
_NUMBERED = ("attempt", "decision", "retain_until")
# The user who may write the file: SQLite knows no other.
ROLE = "whoever may write the file"
# A trigger that never ends must not block the kit; the check of all pages may take longer.
_STATEMENT_S = 10.0
INSTRUCTIONS = 100_000
# Results that this Python has no name for.
_NAMES = {3091: "SQLITE_CONSTRAINT_DATATYPE"}
# What a connection has that sets nothing, for what a policy does not declare.
DEFAULTS: Mapping[str, str] = {"recursive_triggers": "off", "foreign_keys": "off"}


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes, which a proof cannot hold as a parameter: they stand in the statement, in hexadecimal."""

    hex: str

    @classmethod
    def of(cls, text: str) -> Blob:
        """The bytes of a text."""
        return cls(text.encode().hex())


Plain: TypeAlias = str | int | float | None
Value: TypeAlias = Plain | Blob
Values: TypeAlias = Mapping[str, Value]
Guess: TypeAlias = Callable[[int], Value]


@dataclass(frozen=True, slots=True)
class Sql:
    """One statement with its parameters by position."""

    text: str
    parameters: tuple[Plain, ...] = ()


BEGIN, COMMIT, ROLLBACK = Sql("BEGIN IMMEDIATE"), Sql("COMMIT"), Sql("ROLLBACK")


def quoted(name: str) -> str:
    """An identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def spelled(values: Sequence[Value]) -> tuple[list[str], tuple[Plain, ...]]:
    """Values in the form of a statement, and its parameters."""
    places = [f"x'{value.hex}'" if isinstance(value, Blob) else "?" for value in values]
    return places, tuple(value for value in values if not isinstance(value, Blob))


def insert(relation: str, values: Values, *, verb: str = "INSERT", behind: str = "") -> Sql:
    """An INSERT of the named columns; `behind` goes behind the values."""
    places, parameters = spelled(list(values.values()))
    names = ", ".join(map(quoted, values))
    return Sql(f"{verb} INTO {quoted(relation)} ({names}) VALUES ({', '.join(places)}){behind}", parameters)


def same(values: Values) -> tuple[str, tuple[Plain, ...]]:
    """A condition that holds for exactly the rows with these values, byte by byte."""
    places, parameters = spelled(list(values.values()))
    parts = (f"{quoted(name)} IS {place} COLLATE BINARY" for name, place in zip(values, places, strict=True))
    return " AND ".join(parts), parameters


def without(values: Values, *names: str) -> dict[str, Value]:
    """Values without some columns."""
    return {name: value for name, value in values.items() if name not in names}


def digest_of(text: str) -> str:
    """64 lower-case hexadecimal digits with a letter among them, so that upper case is another text."""
    return "abc" + hashlib.sha256(text.encode()).hexdigest()[3:]


def refused(answer: ProbeAnswer) -> bool:
    """Whether a constraint, a guard or a column's type said no; any other error is no refusal."""
    state = answer.sqlstate or ""
    return state.startswith("SQLITE_CONSTRAINT") or state == "SQLITE_MISMATCH"


class Bench:
    """One surface on copies of its files. What it makes up bears a mark, which keeps it apart from what is stored."""

    def __init__(self, copies: Mapping[str, Path], surface: Surface, snapshot: Snapshot, policy: Policy) -> None:
        self.copies = copies
        self.surface = surface
        self.policy = policy
        self.settings = {**DEFAULTS, **policy.sqlite_connection}
        self.databases = {name: database(snapshot, name) for name in copies}
        self._mark = secrets.token_hex(4)
        self._last = 0
        self.number = self.fresh()

    def fresh(self) -> int:
        """The number of a request that there was not before."""
        self._last += 1
        return self._last

    def value(self, word: str, number: int) -> str:
        """The value of a word of the contract in a request."""
        if word in _HASHES:
            return digest_of(f"{self._mark} {word} {number}")
        if word == "operation":
            return self.policy.operations[0]
        return "9999-12-31T23:59:59Z" if word == "retain_until" else f"holdfast-{self._mark}-{word}-{number}"

    def subjects(self) -> Iterator[Subject]:
        """The parts that exist, after trials have found which rows they accept. Raises sqlite3.Error."""
        for which, name in self.surface.parts.items():
            place = place_of(name)
            relation = self.databases[place].relation(name.name)
            if relation is not None:
                subject = Subject(self, which, place, RowBuilder(self, self.databases[place], relation))
                with Session(Trying(self, ""), "", self.copies[place]) as session:
                    try:
                        subject.rows.learn(session.connection)
                    except NoRowError as error:
                        subject.problem = str(error)
                subject.first = subject.rows.row(self.number)
                yield subject


class NoRowError(Exception):
    """No row was found that a relation accepts; the text names the obstacle."""


class RowBuilder:
    """Makes rows of one relation, after trials have found which rows it accepts."""

    def __init__(self, bench: Bench, database: Database, relation: Relation) -> None:
        self.bench = bench
        self.database = database
        self.relation = relation
        self.by_column = {bench.policy.column(word): word for word in WORDS}
        self.guesses = {name: self._guesses(column) for name, column in relation.columns.items()}
        self.chosen = dict.fromkeys(self.guesses, 0)
        self.included = {name for name, column in relation.columns.items() if self._is_wanted(column)}
        self._parents: dict[str, RowBuilder] = {}

    def _is_wanted(self, column: Column) -> bool:
        if column.generated or column.name in self.by_column:
            return not column.generated
        return not self.relation.is_rowid(column) and self.relation.refuses_null(column) and column.default is None

    def _guesses(self, column: Column) -> list[Guess]:
        """The possible values of a column, the likeliest first; each by the number of the request."""

        def always(value: Value) -> Guess:
            return lambda _: value

        name, word, samples = column.name, self.by_column.get(column.name), self.bench.policy.values
        found = [always(samples[key]) for key in (f"{self.relation.name}.{name}", name) if key in samples]
        if word in (*KEYS, NONCE, "decision", "attempt"):
            found = []  # one sample cannot take the place of values that must differ each time
        if word is not None and not (word in _NUMBERED and column.affinity not in ("TEXT", "BLOB")):
            found.append(lambda n: self.bench.value(word, n))
        texts: list[Guess] = [
            lambda n: f"holdfast-{name}-{n}",
            always(_INSTANT),
            lambda n: digest_of(f"{name} {n}"),
            lambda n: str(uuid.uuid5(uuid.NAMESPACE_OID, f"{name} {n}")),
            lambda n: digest_of(f"{name} {n}")[:32],
            always(_INSTANT[:10]),
            lambda n: str(1000 + n),
            always("{}"),
        ]
        numbers: list[Guess] = [lambda n: 1000 + n, always(1), always(0), lambda n: _EPOCH + n]
        blobs: list[Guess] = [lambda n: Blob(digest_of(f"{name} {n}"))]
        literals = (value for check in self.relation.checks if check.mentions(name) for value in check.literals)
        stated = [always(value) for value in dict.fromkeys(literals) if value != ""]
        # A text among a CHECK's literals is likelier than anything made up, but where each row needs one of its own.
        found += [] if self.relation.unique_on(name) else stated
        by_affinity = {"TEXT": [*texts, *stated, *blobs], "BLOB": [*texts, *blobs, *numbers, *stated]}
        return [*found, *by_affinity.get(column.affinity, [*numbers, *stated, *texts])]

    def row(self, number: int, changed: Values | None = None) -> dict[str, Value]:
        """The row of a request; `changed` are columns with other values."""
        made = {name: self.guesses[name][self.chosen[name]](number) for name in self.guesses if name in self.included}
        return made | dict(changed or {})

    def word_row(self, number: int, **changed: Value) -> dict[str, Value]:
        """The same, with other values for words of the contract. A word without its column, or with one that SQLite
        makes up, is left out."""
        by_name = {self.bench.policy.column(word): value for word, value in changed.items()}
        columns = self.relation.columns
        return self.row(number, {k: v for k, v in by_name.items() if k in columns and not columns[k].generated})

    def learn(self, connection: sqlite3.Connection, depth: int = 0) -> None:
        """Find rows that the relation accepts, in transactions that are rolled back. Raises NoRowError.

        Each try is a request of its own.
        """
        problem, tries = "", 0
        while tries == 0 or (tries < _TRIES and self._other(problem)):
            tries += 1
            values = self.row(self.bench.fresh())
            statements = [*self.parents(connection, values, depth), insert(self.relation.name, values)]
            try:
                connection.execute(BEGIN.text)
                for statement in statements:
                    connection.execute(statement.text, statement.parameters)
                return
            except sqlite3.Error as error:
                problem = str(error)
            finally:
                if connection.in_transaction:
                    connection.execute(ROLLBACK.text)
        raise NoRowError(
            f"no row was found that {self.relation.name} accepts, after {tries} tries; the last was refused with: "
            f"{problem}. Give sample values in the policy (`values`)"
        )

    def _other(self, problem: str) -> bool:
        """Choose another value where the refusal names one as wrong. False if there is none left."""
        columns = list(self._blamed(problem))
        for name in columns:
            if name not in self.included and not self.relation.columns[name].generated:
                self.included.add(name)
                return True
        for name in columns:
            if self.chosen[name] + 1 < len(self.guesses[name]):
                self.chosen[name] += 1
                return True
            self.chosen[name] = 0
        return False

    def _blamed(self, problem: str) -> Iterator[str]:
        """The columns that a refusal names, those first that the contract does not know."""
        columns = sorted(self.relation.columns, key=lambda name: (name in self.by_column, name))
        if problem.startswith("CHECK constraint failed"):
            meant = [check for check in self.relation.checks if check.is_meant(problem)]
            yield from (name for name in columns if any(check.mentions(name) for check in meant))
        else:
            named = {name.casefold() for name in re.findall(r"\.([^\s,]+)", problem)}
            yield from (name for name in columns if name.casefold() in named)

    def parents(self, connection: sqlite3.Connection, values: Values, depth: int = 0) -> Iterator[Sql]:
        """INSERTs of what foreign keys that are enforced ask for and is not there yet, the farthest first."""
        if self.bench.settings["foreign_keys"] != "on" or depth >= _DEPTH:
            return
        for key in self.relation.foreign_keys:
            parent = self.database.relation(key.parent)
            wanted = None if parent is None else _referenced(key, parent, values)
            if parent is None or wanted is None or parent.name == self.relation.name:
                continue
            condition, parameters = same(wanted)
            if connection.execute(f"SELECT 1 FROM {quoted(parent.name)} WHERE {condition}", parameters).fetchone():
                continue
            if parent.name not in self._parents:
                builder = self._parents[parent.name] = RowBuilder(self.bench, self.database, parent)
                if not connection.in_transaction:
                    builder.learn(connection, depth + 1)
            row = self._parents[parent.name].row(self.bench.fresh(), wanted)
            yield from self._parents[parent.name].parents(connection, row, depth + 1)
            yield insert(parent.name, row)


def _referenced(key: ForeignKey, parent: Relation, values: Values) -> dict[str, Value] | None:
    """What the parent's columns must hold; None if the row refers to nothing."""
    own = [column.name for column in sorted(parent.columns.values(), key=lambda c: c.primary_key) if column.primary_key]
    to = [name if name is not None else own[place] for place, name in enumerate(key.to)]
    found = {name: values.get(column) for name, column in zip(to, key.columns, strict=True)}
    return None if any(value is None for value in found.values()) else found


@dataclass(slots=True)
class Subject:
    """One relation under test, and the row that is stored for all attempts. `problem`: why nothing can be tried."""

    bench: Bench
    which: Part
    place: str
    rows: RowBuilder
    first: Values = field(default_factory=dict)
    problem: str = ""

    @property
    def relation(self) -> Relation:
        """The relation itself."""
        return self.rows.relation

    def why_not(self, *words: str) -> str:
        """Why an attempt with these words cannot be made; empty if it can."""
        columns = map(self.bench.policy.column, words)
        gone = ", ".join(column for column in columns if column not in self.relation.columns)
        return f"{self.relation.name} has no column {gone}" if gone else self.problem

    def known(self, word: str) -> Value:
        """The value of a word in the row that is stored."""
        return self.first.get(self.bench.policy.column(word), self.bench.value(word, self.bench.number))


class Trying(contextlib.ExitStack):
    """One probe while it is made: what its sessions, which end with it, sent, and what came back."""

    def __init__(
        self, bench: Bench, name: str, evidence: EvidenceClass = EvidenceClass.CLONE, *, failed: str = ""
    ) -> None:
        super().__init__()
        self.bench = bench
        self.name = name
        self.evidence = evidence
        self.failed = failed
        self.statements: list[Statement] = []
        self.answers: list[ProbeAnswer] = []

    def open(self, name: str = "writer", place: str = MAIN) -> Session:
        """A connection to the copy of a file, as the registrar is declared to open its own. Raises sqlite3.Error."""
        return self.enter_context(Session(self, name, self.bench.copies[place]))

    def keep(self, session: str, sql: Sql, answer: ProbeAnswer) -> ProbeAnswer:
        """Keep a statement with its answer."""
        self.statements.append(Statement(session, ROLE, sql.text, sql.parameters))
        self.answers.append(answer)
        return answer

    def done(self) -> Probe:
        """What came of it, after its sessions were closed."""
        self.close()
        return Probe(self.name, self.evidence, tuple(self.statements), tuple(self.answers), self.failed)


class Session:
    """One connection of a probe. What was not committed is rolled back at its end."""

    def __init__(self, trying: Trying, name: str, file: Path) -> None:
        self.trying = trying
        self.name = name
        self.connection = sqlite3.connect(file, isolation_level=None, timeout=0, check_same_thread=False)
        try:
            for pragma, value in trying.bench.settings.items():
                self.connection.execute(f"PRAGMA {pragma} = {value}")
        except BaseException:
            self.connection.close()
            raise
        self._deadline = 0.0
        self.connection.set_progress_handler(lambda: int(time.monotonic() > self._deadline), INSTRUCTIONS)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(sqlite3.Error):
            self.connection.close()

    def run(self, sql: Sql) -> ProbeAnswer:
        """Send one statement. A refusal is an answer like any other."""
        self._deadline = time.monotonic() + _STATEMENT_S
        try:
            cursor = self.connection.execute(sql.text, sql.parameters)
            names = [part[0] for part in cursor.description or ()]
            rows = tuple(dict(zip(names, row, strict=True)) for row in cursor.fetchall())
            answer = ProbeAnswer(None, "", len(rows) if names else max(cursor.rowcount, 0), rows)
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            state = type(error).__name__ if code is None else _NAMES.get(code, error.sqlite_errorname)
            answer = ProbeAnswer(state, str(error))
        return self.trying.keep(self.name, sql, answer)

    def insert(self, subject: Subject, values: Values, *, behind: str = "") -> ProbeAnswer:
        """Store a row, and before it the rows that its foreign keys ask for. The answer is the row's own."""
        # All are worked out first: a row that is stored already is no missing parent.
        for statement in list(subject.rows.parents(self.connection, values)):
            self.run(statement)
        return self.run(insert(subject.relation.name, values, behind=behind))

    def end(self) -> None:
        """Roll back the open transaction."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")
