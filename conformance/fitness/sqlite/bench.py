"""The bench for probes of a surface in SQLite files: sessions on the copy, rows, and attempts that are rolled back."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.conformance.fitness.model import EvidenceClass, Part, Probe, ProbeAnswer, Snapshot, Surface
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.sqlite.catalogue import Database, Relation, database, part, place_of
from holdfast.conformance.fitness.sqlite.live import MAIN
from holdfast.conformance.fitness.sqlite.outcomes import FIRST, TRIED
from holdfast.conformance.fitness.sqlite.rows import (
    NoRowError,
    Parents,
    RowBuilder,
    Sql,
    Value,
    Values,
    Words,
    insert,
    quoted,
    same,
)
from holdfast.conformance.fitness.sqlite.session import Session, Transcript

BEGIN, COMMIT, ROLLBACK = Sql("BEGIN IMMEDIATE"), Sql("COMMIT"), Sql("ROLLBACK")


@dataclass(slots=True)
class Subject:
    """One relation under test: how its rows are made, and the row that is stored for all attempts."""

    which: Part
    relation: Relation
    row_builder: RowBuilder
    parents: Parents
    first: Values = field(default_factory=dict)
    problem: str = ""


class ProbeRunner:
    """One surface on one copy."""

    def __init__(self, copies: Mapping[str, Path], surface: Surface, snapshot: Snapshot, policy: Policy) -> None:
        self.copies = copies
        self.surface = surface
        self.snapshot = snapshot
        self.policy = policy
        self.words = Words(secrets.token_hex(4), policy)
        self.settings = policy.sqlite_connection
        self.databases: dict[str, Database] = {name: database(snapshot, name) for name in copies}
        self.number = self.words.fresh()

    def session(self, name: str = "writer", place: str = MAIN) -> contextlib.closing[Session]:
        """A connection to the copy of a file, as the registrar is declared to open its own. Raises sqlite3.Error."""
        return contextlib.closing(Session(self.copies[place], name, self.settings))

    def subjects(self) -> Iterator[Subject]:
        """The parts that exist, after trials have found which rows they accept."""
        for which in Part:
            relation = part(self.snapshot, self.surface, which)
            if relation is None:
                continue
            place = place_of(self.surface.parts[which])
            enforced = self.settings.get("foreign_keys") == "on"
            parents = Parents(self.databases[place], self.words, enforced=enforced)
            subject = Subject(which, relation, RowBuilder(self.databases[place], relation, self.words), parents)
            with self.session(place=place) as session:
                self._learn(session, subject)
            yield subject

    def _learn(self, session: Session, subject: Subject) -> None:
        try:
            subject.row_builder.learn(
                session.connection, lambda values: subject.parents.of(session.connection, subject.relation, values)
            )
        except NoRowError as error:
            subject.problem = str(error)
        subject.first = subject.row_builder.row(self.number)

    def insert(self, transcript: Transcript, session: Session, subject: Subject, values: Values) -> ProbeAnswer:
        """Store a row, and before it the rows that its foreign keys ask for. The answer is the row's own."""
        # One after the other: a row that is stored already is no missing parent.
        for statement in list(subject.parents.of(session.connection, subject.relation, values)):
            transcript.run(session, statement)
        return transcript.run(session, insert(subject.relation.name, values))

    def attempt(self, name: str, subject: Subject, values: Values, *, verb: str = "INSERT", behind: str = "") -> Probe:
        """Try one row, and inspect what came of it."""
        transcript = Transcript()
        if subject.problem:
            return made(name, transcript, failed=subject.problem)
        with self.session(place=self.place(subject)) as session:
            transcript.run(session, BEGIN)
            for statement in list(subject.parents.of(session.connection, subject.relation, values)):
                transcript.run(session, statement)
            transcript.run(session, insert(subject.relation.name, values, verb=verb, behind=behind))
            transcript.run(session, _inspect_after(subject, values))
            session.end()
        return made(name, transcript)

    def place(self, subject: Subject) -> str:
        """The name of the file that a part lies in."""
        return place_of(self.surface.parts[subject.which])

    def lacking(self, name: str, subject: Subject, *words: str) -> Probe | None:
        """A probe that cannot be made because columns are missing."""
        gone = [self.policy.column(word) for word in words if not subject.row_builder.has(word)]
        if not gone:
            return None
        return made(name, Transcript(), failed=f"{subject.relation.name} has no column {', '.join(gone)}")

    def having(self, name: str, subject: Subject, word: str, value: Value, **more: Value) -> Probe:
        """Try a fresh row in which this word of the contract has this value."""
        lacking = self.lacking(name, subject, word)
        row = subject.row_builder.word_row(self.words.fresh(), **{word: value}, **more)
        return lacking or self.attempt(name, subject, row)

    def known(self, subject: Subject, word: str) -> Value:
        """The value of a word in the row that is stored."""
        return subject.first.get(self.policy.column(word), self.words.value(word, self.number))

    def fresh_rows(self, subjects: list[Subject]) -> dict[Part, Values]:
        """Rows of one new request."""
        number = self.words.fresh()
        return {each.which: each.row_builder.row(number) for each in subjects}


def row_of(subject: Subject) -> tuple[Relation, Values]:
    """The row that is stored for all attempts."""
    return subject.relation, subject.first


def problem_of(subjects: list[Subject]) -> str:
    """Why nothing can be tried with these; empty if it can."""
    return next((each.problem for each in subjects if each.problem), "")


def inspect(rows: Mapping[str, tuple[Relation, Values]]) -> Sql:
    """How many rows have exactly these values, by the names given."""
    parts: list[str] = []
    parameters: list[str | int | float | None] = []
    for name, (relation, values) in rows.items():
        condition, more = same(values)
        parts.append(f"(SELECT count(*) FROM {quoted(relation.name)} WHERE {condition}) AS {quoted(name)}")
        parameters += more
    return Sql(f"SELECT {', '.join(parts)}", tuple(parameters))


def _inspect_after(subject: Subject, values: Values) -> Sql:
    """Whether a tried row is there, and the row of the first request."""
    if values != subject.first:
        return inspect({TRIED: (subject.relation, values), FIRST: row_of(subject)})
    # A relation of one column has no other row with its key: one of two equal rows was there before.
    condition, parameters = same(values)
    count = f"SELECT count(*) FROM {quoted(subject.relation.name)} WHERE {condition}"
    return Sql(f"SELECT max(({count}) - 1, 0) AS {TRIED}, min(({count}), 1) AS {FIRST}", (*parameters, *parameters))


def all_there(answer: ProbeAnswer) -> bool:
    """Whether an inspection found each row once."""
    return bool(answer.rows) and all(count == 1 for count in answer.rows[0].values())


def made(
    name: str, transcript: Transcript, evidence: EvidenceClass = EvidenceClass.CLONE, *, failed: str = ""
) -> Probe:
    """The probe that a transcript makes."""
    return Probe(name, evidence, tuple(transcript.statements), tuple(transcript.answers), failed)
