"""Rows that a surface in a SQLite file accepts: the contract's words are known, trials find the rest."""

from __future__ import annotations

import hashlib
import re
import sqlite3
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from holdfast.conformance.fitness.policy import KEYS, NONCE, WORDS, Policy
from holdfast.conformance.fitness.sqlite.catalogue import Column, Database, ForeignKey, Relation

# Statements that are tried until a row is accepted.
_TRIES = 400
# Parents of parents of parents.
_DEPTH = 3
_HASHES = (*KEYS, "deployed_artifact_hash")
_INSTANT = "2026-01-02T03:04:05Z"
_EPOCH = 1_767_323_045
# What may be a number where a surface has numbers for it; keys and bindings are texts.
_NUMBERED = ("attempt", "decision", "retain_until")


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes, which a proof cannot hold as a parameter: they stand in the statement, in hexadecimal."""

    hex: str

    @classmethod
    def of(cls, text: str) -> Blob:
        """The bytes of a text."""
        return cls(text.encode().hex())


Value: TypeAlias = str | int | float | Blob | None
Values: TypeAlias = Mapping[str, Value]
Guess: TypeAlias = Callable[[int], Value]


class NoRowError(Exception):
    """No row was found that a relation accepts; the text names the obstacle."""


@dataclass(frozen=True, slots=True)
class Sql:
    """One statement with its parameters by position."""

    text: str
    parameters: tuple[str | int | float | None, ...] = ()


def quoted(name: str) -> str:
    """An identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def spelled(values: Sequence[Value]) -> tuple[list[str], tuple[str | int | float | None, ...]]:
    """Values in the form of a statement, and its parameters."""
    places = [f"x'{value.hex}'" if isinstance(value, Blob) else "?" for value in values]
    return places, tuple(value for value in values if not isinstance(value, Blob))


def insert(relation: str, values: Values, *, verb: str = "INSERT", behind: str = "") -> Sql:
    """An INSERT of the named columns; `behind` goes behind the values."""
    places, parameters = spelled(list(values.values()))
    names = ", ".join(map(quoted, values))
    return Sql(f"{verb} INTO {quoted(relation)} ({names}) VALUES ({', '.join(places)}){behind}", parameters)


def same(values: Values) -> tuple[str, tuple[str | int | float | None, ...]]:
    """A condition that holds for exactly the rows with these values, byte by byte."""
    places, parameters = spelled(list(values.values()))
    parts = (f"{quoted(name)} IS {place} COLLATE BINARY" for name, place in zip(values, places, strict=True))
    return " AND ".join(parts), parameters


def digest_of(text: str) -> str:
    """64 lower-case hexadecimal digits with a letter among them, so that upper case is another text."""
    return "abc" + hashlib.sha256(text.encode()).hexdigest()[3:]


@dataclass(slots=True)
class Words:
    """Values of the contract's words for requests that are numbered. `run` keeps them apart from what is stored."""

    run: str
    policy: Policy
    # The last number that was given out.
    last: int = field(default=0)

    def fresh(self) -> int:
        """The number of a request that there was not before."""
        self.last += 1
        return self.last

    def value(self, word: str, number: int) -> str:
        """The value of a word in a request."""
        if word in _HASHES:
            return digest_of(f"{self.run} {word} {number}")
        if word == "operation":
            return self.policy.operations[0]
        if word == "retain_until":
            return "9999-12-31T23:59:59Z"
        return f"holdfast-{self.run}-{word}-{number}"


def guesses(
    column: Column, literals: Sequence[Value], *, known: Sequence[Guess], given: Sequence[Value], differs: bool = False
) -> list[Guess]:
    """The possible values of a column, the likeliest first; each by the number of the request.

    One that is unique by itself `differs`: what is the same each time is the last that is tried.
    """

    def always(value: Value) -> Guess:
        return lambda _: value

    texts: list[Guess] = [
        lambda n: f"holdfast-{column.name}-{n}",
        always(_INSTANT),
        lambda n: digest_of(f"{column.name} {n}"),
        lambda n: str(uuid.uuid5(uuid.NAMESPACE_OID, f"{column.name} {n}")),
        lambda n: digest_of(f"{column.name} {n}")[:32],
        always(_INSTANT[:10]),
        lambda n: str(1000 + n),
        always("{}"),
    ]
    numbers: list[Guess] = [lambda n: 1000 + n, always(1), always(0), lambda n: _EPOCH + n]
    blobs: list[Guess] = [lambda n: Blob(digest_of(f"{column.name} {n}"))]
    stated: list[Guess] = [always(value) for value in literals if value != ""]
    by_affinity = {
        "TEXT": [*texts, *stated, *blobs],
        "INTEGER": [*numbers, *stated, *texts],
        "REAL": [*numbers, *stated, *texts],
        "NUMERIC": [*numbers, *stated, *texts],
        "BLOB": [*texts, *blobs, *numbers, *stated],
    }[column.affinity]
    # A text among a CHECK's literals is likelier than anything that is made up.
    return [*(always(value) for value in given), *known, *([] if differs else stated), *by_affinity]


class RowBuilder:
    """Makes rows of one relation, after trials have found which rows it accepts."""

    def __init__(self, database: Database, relation: Relation, words: Words) -> None:
        self.database = database
        self.relation = relation
        self.words = words
        self.by_column = {words.policy.column(word): word for word in WORDS}
        self.guesses = {name: self._guesses(column) for name, column in relation.columns.items()}
        self.chosen = dict.fromkeys(self.guesses, 0)
        self.included = {name for name, column in relation.columns.items() if self._is_wanted(column)}

    def has(self, word: str) -> bool:
        """Whether the relation has the column of a word."""
        return self.words.policy.column(word) in self.relation.columns

    def _takes(self, word: str) -> bool:
        return self.has(word) and not self.relation.columns[self.words.policy.column(word)].generated

    def _is_wanted(self, column: Column) -> bool:
        if column.generated:
            return False
        if column.name in self.by_column:
            return True
        return not self.relation.is_rowid(column) and self.relation.refuses_null(column) and column.default is None

    def _guesses(self, column: Column) -> list[Guess]:
        word = self.by_column.get(column.name)
        values = self.words.policy.values
        given = [values[key] for key in (f"{self.relation.name}.{column.name}", column.name) if key in values]
        if word in (*KEYS, NONCE, "decision", "attempt"):
            given = []  # one sample cannot take the place of values that must differ each time
        numbers = word in _NUMBERED and column.affinity not in ("TEXT", "BLOB")
        known: list[Guess] = [] if word is None or numbers else [self._known(word)]
        literals = [value for c in self.relation.checks if c.mentions(column.name) for value in c.literals]
        differs = bool(self.relation.unique_on(column.name))
        return guesses(column, [*dict.fromkeys(literals)], known=known, given=given, differs=differs)

    def _known(self, word: str) -> Guess:
        return lambda number: self.words.value(word, number)

    def row(self, number: int, changed: Values | None = None) -> dict[str, Value]:
        """The row of a request; `changed` are columns with other values."""
        found = {
            name: self.guesses[name][self.chosen[name]](number)
            for name in self.relation.columns
            if name in self.included
        }
        return found | dict(changed or {})

    def word_row(self, number: int, **changed: Value) -> dict[str, Value]:
        """The same, with other values for words of the contract. A word without its column, or with one that SQLite
        makes up, is left out."""
        policy = self.words.policy
        by_name = {policy.column(word): value for word, value in changed.items() if self._takes(word)}
        return self.row(number, by_name)

    def learn(self, connection: sqlite3.Connection, before: Callable[[Values], Iterator[Sql]]) -> None:
        """Find rows that the relation accepts, in transactions that are rolled back. Raises NoRowError.

        `before` gives what must stand there first. Each try is a request of its own.
        """
        tried: list[str] = []
        for _ in range(_TRIES):
            values = self.row(self.words.fresh())
            problem = _try(connection, [*before(values), insert(self.relation.name, values)])
            if problem is None:
                return
            tried.append(problem)
            if not self._other(problem):
                break
        raise NoRowError(
            f"no row was found that {self.relation.name} accepts, after {len(tried)} tries; the last was refused with: "
            f"{tried[-1]}. Give sample values in the policy (`values`)"
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


def _try(connection: sqlite3.Connection, statements: Sequence[Sql]) -> str | None:
    """The error that refuses these statements in a transaction of their own, which is rolled back; None without one."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        for statement in statements:
            connection.execute(statement.text, statement.parameters)
        return None
    except sqlite3.Error as error:
        return str(error)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


class Parents:
    """What must be stored for a row's foreign keys, where the connection enforces them."""

    def __init__(self, database: Database, words: Words, *, enforced: bool) -> None:
        self._database = database
        self._words = words
        self._enforced = enforced
        self._makers: dict[str, RowBuilder] = {}

    def of(self, connection: sqlite3.Connection, relation: Relation, values: Values, depth: int = 0) -> Iterator[Sql]:
        """INSERTs of parents that are not there yet, the farthest first."""
        if not self._enforced or depth >= _DEPTH:
            return
        for key in relation.foreign_keys:
            parent = self._database.relation(key.parent)
            wanted = None if parent is None else _referenced(key, parent, values)
            if parent is None or wanted is None or parent.name == relation.name or _there(connection, parent, wanted):
                continue
            row_builder = self._row_builder(connection, parent, depth)
            row = row_builder.row(self._words.fresh(), wanted)
            yield from self.of(connection, parent, row, depth + 1)
            yield insert(parent.name, row)

    def _row_builder(self, connection: sqlite3.Connection, parent: Relation, depth: int) -> RowBuilder:
        if parent.name not in self._makers:
            row_builder = RowBuilder(self._database, parent, self._words)
            self._makers[parent.name] = row_builder
            if not connection.in_transaction:
                row_builder.learn(connection, lambda values: self.of(connection, parent, values, depth + 1))
        return self._makers[parent.name]


def _referenced(key: ForeignKey, parent: Relation, values: Values) -> dict[str, Value] | None:
    """What the parent's columns must hold; None if the row refers to nothing."""
    own = [column.name for column in sorted(parent.columns.values(), key=lambda c: c.primary_key) if column.primary_key]
    to = [name if name is not None else own[place] for place, name in enumerate(key.to)]
    found = {name: values.get(column) for name, column in zip(to, key.columns, strict=True)}
    return None if any(value is None for value in found.values()) else found


def _there(connection: sqlite3.Connection, parent: Relation, wanted: Values) -> bool:
    condition, parameters = same(wanted)
    sql = f"SELECT 1 FROM {quoted(parent.name)} WHERE {condition} LIMIT 1"
    return connection.execute(sql, parameters).fetchone() is not None


def without(values: Values, *names: str) -> dict[str, Value]:
    """Values without some columns."""
    return {name: value for name, value in values.items() if name not in names}
