"""The probes on a copy of a surface in SQLite files.

The copy is made by SQLite's own backup, pages and all, in a folder of its own; the harness needs the right to read
the file. Each attempt has a transaction that is rolled back afterwards; what is stored for all of them is `first`.

An attempt's last two statements are the trial, and an inspection of what came of it: how many rows there are with the
values that were tried, and whether the row of `first` is as it was. SQLite's count of changed rows is not enough: an
INSTEAD OF trigger reports none, and RAISE(IGNORE) reports no error.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from holdfast.conformance.fitness.errors import FitnessError, LostError
from holdfast.conformance.fitness.model import Evidence, EvidenceClass, Part, Probe, ProbeAnswer, Surface
from holdfast.conformance.fitness.neighbours import NEIGHBOURS, NUL_NEIGHBOURS
from holdfast.conformance.fitness.policy import BINDINGS, KEYS, NONCE, Policy
from holdfast.conformance.fitness.sqlite.bench import (
    BEGIN,
    COMMIT,
    INSTRUCTIONS,
    ROLLBACK,
    Bench,
    Blob,
    Plain,
    Sql,
    Subject,
    Trying,
    Value,
    Values,
    insert,
    quoted,
    refused,
    same,
    spelled,
    without,
)
from holdfast.conformance.fitness.sqlite.catalogue import Relation
from holdfast.conformance.fitness.sqlite.live import MAIN, read
from holdfast.conformance.fitness.sqlite.snapshot import files_of, take

TRIED, FIRST = "tried", "first"
SUFFIX = {Part.EFFECT: "", Part.NONCE: "-nonce", Part.AUDIT: "-audit"}
# Operations of other domains, and other spellings of this one, by the names of their probes.
OTHER_OPERATIONS = {
    "other-operation": "unregister_dot",
    "other-operation-2": "outbound",
    "other-operation-3": "REGISTER_DOT",
    "other-operation-4": "register_dot ",
}
STEMS = {KEYS[0]: "key", KEYS[1]: "replay-key", NONCE: "nonce"}
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


def kill_before_commit(file: Path, settings: Mapping[str, str], statements: Sequence[Sql]) -> list[ProbeAnswer]:
    """What another process is told on these statements, which is killed after the last one. Raises OSError."""
    told = {
        "file": str(file),
        "settings": dict(settings),
        "patience": _PATIENCE_S,
        "instructions": INSTRUCTIONS,
        "statements": [[sql.text, sql.parameters] for sql in statements],
    }
    words = [sys.executable, "-I", "-S", "-c", _PROGRAM]
    said = subprocess.run(words, input=json.dumps(told), stdout=subprocess.PIPE, text=True, check=False).stdout
    return [ProbeAnswer(*json.loads(line)) for line in said.splitlines()]


def gather_evidence(path: Path, surface: Surface, policy: Policy, *, within: Path | None = None) -> Evidence:
    """All evidence about a surface; copies lie `within` a folder. Raises FitnessError if the file cannot be read."""
    snapshot = take(path, surface, policy)
    try:
        with tempfile.TemporaryDirectory(prefix="holdfast-fitness-", dir=within) as folder:
            copies = {
                name: _copied(file, Path(folder) / f"{name}.sqlite3") for name, file in files_of(surface, path).items()
            }
            return Evidence(surface, snapshot, tuple(_Probing(copies, surface, snapshot, policy).run()))
    except (LostError, FitnessError, OSError, sqlite3.Error) as error:
        why = f"the copy cannot be worked on: {error}" if isinstance(error, sqlite3.Error) else str(error)
        return Evidence(surface, snapshot, (), dict.fromkeys((EvidenceClass.CLONE, EvidenceClass.CONCURRENCY), why))


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


class _Probing(Bench):
    """The probes of one surface on one copy."""

    def run(self) -> Iterator[Probe]:
        """Every probe. Raises sqlite3.Error if the copy itself does not work."""
        for place in self.copies:
            with Trying(self, "integrity" if place == MAIN else f"integrity-{place}") as trying:
                session = trying.open("checker", place)
                # All pages are read, however many there are.
                session.connection.set_progress_handler(None, 0)
                session.run(Sql("PRAGMA integrity_check(10)"))
            yield trying.done()
        subjects = {each.which: each for each in self.subjects()}
        effect, nonce, audit = (subjects.get(which) for which in (Part.EFFECT, Part.NONCE, Part.AUDIT))
        if effect is None:
            return
        # One row cannot be both.
        apart = nonce is not None and nonce.relation.name != effect.relation.name
        both = [effect, nonce] if nonce is not None and apart else [effect]
        yield self._first(both)
        if nonce is not None and not apart:
            nonce.problem = nonce.problem or effect.problem
        for name, word, value in (*self._keys(effect), *self._bindings()):
            yield self._having(name, effect, word, value)
            if name == "same-key":
                yield self._same_but_attempt(effect)
            if name.startswith("without-"):
                # A row that does not name the column, so that a default would fill it.
                row = without(effect.rows.word_row(self.fresh()), self.policy.column(word))
                yield self._attempt(f"omitted-{word}", effect, row, word)
        yield from self._composites(effect)
        if nonce is not None:
            known = str(nonce.known(NONCE))
            for name, value in (("nonce-again", known), ("nonce-null", None), ("nonce-blob", Blob.of(known))):
                yield self._having(name, nonce, NONCE, value)
        yield self._arbiter("arbiter", effect, KEYS[0])
        if nonce is not None:
            yield self._arbiter("nonce-arbiter", nonce, NONCE)
        yield self._rolled_back(both)
        yield self._read_back(effect)
        yield self._race(effect)
        yield self._killed(both)
        if audit is not None:
            yield self._store_audit(audit)
            yield self._audit_again(audit)
            yield self._audit_survives(effect, audit)
        for subject in subjects.values():
            yield from self._tampering(subject)

    def _attempt(self, name: str, subject: Subject, values: Values, *words: str, behind: str = "") -> Probe:
        """Try one row, for which the columns of `words` must be there, and inspect what came of it."""
        with Trying(self, name, failed=subject.why_not(*words)) as trying:
            if not trying.failed:
                session = trying.open(place=subject.place)
                session.run(BEGIN)
                session.insert(subject, values, behind=behind)
                session.run(_inspect_after(subject, values))
        return trying.done()

    def _having(self, name: str, subject: Subject, word: str, value: Value, *, behind: str = "") -> Probe:
        """Try a fresh row in which this word of the contract has this value."""
        return self._attempt(name, subject, subject.rows.word_row(self.fresh(), **{word: value}), word, behind=behind)

    def _first(self, subjects: list[Subject]) -> Probe:
        problem = _problem(subjects)
        with Trying(self, "first", failed=problem) as trying:
            with trying.open() as session:
                session.run(BEGIN)
                for each in subjects:
                    session.insert(each, each.first)
                session.run(COMMIT)
                session.end()
            there = _all_there(trying.open("reader").run(_inspect({s.which.value: _row_of(s) for s in subjects})))
        for each in subjects:
            if not there:
                each.problem = each.problem or problem or "the rows of the first request were not stored"
        return trying.done()

    def _keys(self, effect: Subject) -> Iterator[tuple[str, str, Value]]:
        """The name of a probe, a word, and the value that it has in a row that is fresh otherwise."""
        known, known_replay = (str(effect.known(word)) for word in KEYS)
        yield "same-key", KEYS[0], known
        yield "same-replay-key", KEYS[1], known_replay
        yield "key-null", KEYS[0], None
        yield "replay-key-null", KEYS[1], None
        for word, value in zip(KEYS, (known, known_replay), strict=True):
            for neighbour, (make, _) in {**NEIGHBOURS, **NUL_NEIGHBOURS}.items():
                yield f"{STEMS[word]}-{neighbour}", word, make(value)
            yield f"{STEMS[word]}-blob", word, Blob.of(value)
        # Another key, which must go in.
        yield "key-prefix", KEYS[0], known[:-1] + ("0" if known[-1] != "0" else "1")
        yield "attempt-again", "attempt", effect.known("attempt")

    def _same_but_attempt(self, effect: Subject) -> Probe:
        """Everything of the first request, with a new attempt. What else has to be unique in the row is new too."""
        row = effect.rows.word_row(self.fresh(), **{word: effect.known(word) for word in (*KEYS, NONCE, *BINDINGS)})
        return self._attempt("same-key-new-attempt", effect, row, KEYS[0])

    def _bindings(self) -> Iterator[tuple[str, str, Value]]:
        for word in BINDINGS:
            yield f"without-{word}", word, None
            yield f"empty-{word}", word, ""
            yield f"empty-blob-{word}", word, Blob("")
        yield "decision-null", "decision", None
        for place, operation in enumerate(self.policy.operations):
            yield f"operation-{place + 1}", "operation", operation
        for name, operation in OTHER_OPERATIONS.items():
            if operation not in self.policy.operations:
                yield name, "operation", operation

    def _composites(self, effect: Subject) -> Iterator[Probe]:
        """For each unique index over several columns: rows that differ in one of them only."""
        for index in effect.relation.indexes:
            if index.unique and len(index.columns) > 1 and None not in index.columns:
                names = [name for name in index.columns if name is not None]
                kept = {name: effect.first[name] for name in names if name in effect.first}
                for column in kept:
                    yield self._composite(f"composite-{index.name}-{column}", effect, kept, column)

    def _composite(self, name: str, effect: Subject, kept: Values, column: str) -> Probe:
        """Try values of the column until a row that is otherwise the same goes in."""
        probe = Trying(self, name, failed=effect.problem or f"no other value is known for {column}").done()
        for guess in [] if effect.problem else effect.rows.guesses[column]:
            number = self.fresh()
            value = guess(number)
            if value != effect.first[column]:
                probe = self._attempt(name, effect, effect.rows.row(number, {**kept, column: value}))
                if not any(map(refused, probe.answers)):
                    break
        return probe

    def _arbiter(self, name: str, subject: Subject, word: str) -> Probe:
        behind = f" ON CONFLICT ({quoted(self.policy.column(word))}) DO NOTHING"
        return self._having(name, subject, word, subject.known(word), behind=behind)

    def _rolled_back(self, subjects: list[Subject]) -> Probe:
        rows, inside = self._fresh_rows(subjects)
        with Trying(self, "rollback", failed=_problem(subjects)) as trying:
            session = trying.open()
            session.run(BEGIN)
            for each in subjects:
                session.insert(each, rows[each.which])
            for statement in (inside, ROLLBACK, inside):
                session.run(statement)
        return trying.done()

    def _fresh_rows(self, subjects: list[Subject]) -> tuple[dict[Part, Values], Sql]:
        """Rows of one new request, and what asks how many of them are there."""
        number = self.fresh()
        rows: dict[Part, Values] = {each.which: each.rows.row(number) for each in subjects}
        return rows, _inspect({each.which.value: (each.relation, rows[each.which]) for each in subjects})

    def _read_back(self, effect: Subject) -> Probe:
        with Trying(self, "read-back", failed=effect.why_not("decision")) as trying:
            key, decision = map(self.policy.column, (KEYS[0], "decision"))
            if decision in effect.relation.columns:
                condition, parameters = same({key: effect.first[key]} if key in effect.first else effect.first)
                sql = f"SELECT {quoted(decision)} AS decision FROM {quoted(effect.relation.name)} WHERE {condition}"
                trying.open("another writer").run(Sql(sql, parameters))
        return trying.done()

    def _race(self, effect: Subject) -> Probe:
        """Two sessions with one key: the second waits for the first, and is refused when that one has committed."""
        winner = effect.rows.row(self.fresh())
        loser = effect.rows.word_row(self.fresh(), **{KEYS[0]: winner.get(self.policy.column(KEYS[0]))})
        with Trying(self, "race", EvidenceClass.CONCURRENCY, failed=effect.why_not(KEYS[0])) as trying:
            if not trying.failed:
                first, second = trying.open("first"), trying.open("second")
                first.run(BEGIN)
                first.insert(effect, winner)
                second.run(BEGIN)
                first.run(COMMIT)
                first.end()
                second.run(BEGIN)
                second.insert(effect, loser)
                second.run(_inspect({TRIED: (effect.relation, loser), FIRST: (effect.relation, winner)}))
        return trying.done()

    def _killed(self, subjects: list[Subject]) -> Probe:
        """A process that is killed between the inserts and the commit leaves neither row."""
        rows, inside = self._fresh_rows(subjects)
        with Trying(self, "killed", EvidenceClass.CONCURRENCY, failed=_problem(subjects)) as trying:
            if not trying.failed:
                # Rehearsed here, so that each statement finds the rows that earlier ones have made.
                with Trying(self, "rehearsal") as rehearsal:
                    session = rehearsal.open()
                    session.connection.execute(BEGIN.text)
                    for each in subjects:
                        session.insert(each, rows[each.which])
                statements = [BEGIN, *(Sql(each.sql, each.parameters) for each in rehearsal.statements)]
                try:
                    answers = kill_before_commit(self.copies[MAIN], self.settings, statements)
                    for sql, answer in zip(statements, answers, strict=False):
                        trying.keep("killed", sql, answer)
                    if len(answers) < len(statements):
                        trying.failed = "the process that was to be killed ended by itself"
                except OSError as error:
                    trying.failed = f"the process that was to be killed cannot be talked to: {error.strerror}"
            trying.open("survivor").run(inside)
        return trying.done()

    def _store_audit(self, audit: Subject) -> Probe:
        """A record of its own for the attempts on the audit."""
        with Trying(self, "audit-first", failed=audit.problem) as trying:
            session = trying.open(place=audit.place)
            session.run(BEGIN)
            session.insert(audit, audit.first)
            session.run(COMMIT)
            session.end()
            if not _all_there(session.run(_inspect({Part.AUDIT.value: _row_of(audit)}))):
                audit.problem = audit.problem or "the audit took no record"
        return trying.done()

    def _audit_again(self, audit: Subject) -> Probe:
        """A second record, with only the columns changed that make it a record of its own, and how many there are."""
        with Trying(self, "audit-again", failed=audit.problem) as trying:
            if not trying.failed:
                row = audit.rows.row(self.fresh(), without(audit.first, *own(audit.relation, self.policy)))
                how_many = Sql(f"SELECT count(*) AS records FROM {quoted(audit.relation.name)}")
                session = trying.open("auditor", audit.place)
                session.run(BEGIN)
                for statement in list(audit.rows.parents(session.connection, row)):
                    session.run(statement)
                for statement in (how_many, insert(audit.relation.name, row), how_many):
                    session.run(statement)
        return trying.done()

    def _audit_survives(self, effect: Subject, audit: Subject) -> Probe:
        """A record that is written while the transaction of which it speaks is open, which then rolls back."""
        number, problem = self.fresh(), effect.problem or audit.problem
        row, record = effect.rows.row(number), audit.rows.row(number)
        with Trying(self, "audit-survives", EvidenceClass.CONCURRENCY, failed=problem) as trying:
            if not problem:
                with trying.open() as writer, trying.open("auditor", audit.place) as auditor:
                    writer.run(BEGIN)
                    writer.insert(effect, row)
                    auditor.insert(audit, record)
                    writer.run(ROLLBACK)
                trying.open("reader").run(_inspect({Part.EFFECT.value: (effect.relation, row)}))
                second = trying.open("reader of the audit", audit.place)
                second.run(_inspect({Part.AUDIT.value: (audit.relation, record)}))
        return trying.done()

    # Attempts to change or remove what is stored, in every way that SQLite has

    def _tampering(self, subject: Subject) -> Iterator[Probe]:
        """The probes of one relation."""
        suffix, relation = SUFFIX[subject.which], subject.relation
        other = subject.rows.row(self.fresh())
        condition, parameters = same(subject.first)
        delete = f"DELETE FROM {quoted(relation.name)}"
        yield self._changed(f"writer-update{suffix}", subject, list(_updates(subject, other)))
        yield self._changed(f"writer-delete{suffix}", subject, [Sql(f"{delete} WHERE {condition}", parameters)])
        yield self._changed(f"writer-truncate{suffix}", subject, [Sql(delete)])
        # The columns of each unique index, if the stored row has values for all of them.
        names = (index.columns for index in relation.indexes if index.unique)
        keys = [[name for name in key if name is not None] for key in names if subject.first.keys() >= set(key)]
        if keys:
            fresh = without(other, *(column for key in keys for column in key))
            changed = ", ".join(f"{quoted(column)} = excluded.{quoted(column)}" for column in fresh or other)
            row = {**subject.first, **fresh}
            upsert = insert(relation.name, row, behind=f" ON CONFLICT DO UPDATE SET {changed}")
            yield self._changed(f"writer-upsert{suffix}", subject, [upsert], adds=True)
        replaces = list(_replaces(subject, keys, other))
        if replaces:
            yield self._changed(f"writer-replace{suffix}", subject, replaces, adds=True)

    def _changed(self, name: str, subject: Subject, changes: list[Sql], *, adds: bool = False) -> Probe:
        """Try one after the other until one does harm; the last two answers are that one's, or the last one's.

        An upsert or REPLACE that runs into nothing adds a row, which does no harm to the stored one.
        """
        with Trying(self, name, failed=subject.problem) as trying:
            for change in [] if trying.failed else changes:
                with trying.open(place=subject.place) as session:
                    session.run(BEGIN)
                    answer = session.run(change)
                    observed = session.run(_inspect({FIRST: _row_of(subject)}))
                if not _all_there(observed) or not (refused(answer) or adds):
                    break
        return trying.done()


def own(relation: Relation, policy: Policy) -> frozenset[str]:
    """The columns of the primary key in which records of one refusal differ.

    What the refused request said is the same each time, in a primary key too.
    """
    said = {policy.column(word) for word in (*KEYS, NONCE, *BINDINGS)}
    return frozenset(name for name, column in relation.columns.items() if column.primary_key and name not in said)


def _updates(subject: Subject, other: Values) -> Iterator[Sql]:
    """Each column by itself, with a value that only a guard can refuse: a trigger may check some columns only."""
    condition, parameters = same(subject.first)
    for column, value in other.items():
        (place,), given = spelled([value])
        sql = f"UPDATE {quoted(subject.relation.name)} SET {quoted(column)} = {place} WHERE {condition}"
        yield Sql(sql, (*given, *parameters))


def _replaces(subject: Subject, keys: list[list[str]], other: Values) -> Iterator[Sql]:
    """REPLACE of the stored row by each of its unique keys, and by its rowid."""
    relation, verb = subject.relation, "INSERT OR REPLACE"
    for key in keys:
        yield insert(relation.name, {**other, **{name: subject.first[name] for name in key}}, verb=verb)
    if relation.is_table and not relation.without_rowid and "rowid" not in relation.columns:
        condition, parameters = same(subject.first)
        # A column that is the rowid under another name would have the last word.
        rest = without(other, *(name for name, column in relation.columns.items() if relation.is_rowid(column)))
        places, given = spelled(list(rest.values()))
        name, names = quoted(relation.name), ", ".join(["rowid", *map(quoted, rest)])
        values = ", ".join([f"(SELECT rowid FROM {name} WHERE {condition})", *places])
        yield Sql(f"{verb} INTO {name} ({names}) VALUES ({values})", (*parameters, *given))


def _row_of(subject: Subject) -> tuple[Relation, Values]:
    """The row that is stored for all attempts."""
    return subject.relation, subject.first


def _problem(subjects: list[Subject]) -> str:
    """Why nothing can be tried with these; empty if it can."""
    return next((each.problem for each in subjects if each.problem), "")


def _inspect(rows: dict[str, tuple[Relation, Values]]) -> Sql:
    """How many rows have exactly these values, by the names given."""
    parts, parameters = list[str](), list[Plain]()
    for name, (relation, values) in rows.items():
        condition, more = same(values)
        parts.append(f"(SELECT count(*) FROM {quoted(relation.name)} WHERE {condition}) AS {quoted(name)}")
        parameters += more
    return Sql(f"SELECT {', '.join(parts)}", tuple(parameters))


def _inspect_after(subject: Subject, values: Values) -> Sql:
    """Whether a tried row is there, and the row of the first request."""
    if values != subject.first:
        return _inspect({TRIED: (subject.relation, values), FIRST: _row_of(subject)})
    # A relation of one column has no other row with its key: one of two equal rows was there before.
    condition, parameters = same(values)
    count = f"SELECT count(*) FROM {quoted(subject.relation.name)} WHERE {condition}"
    return Sql(f"SELECT max(({count}) - 1, 0) AS {TRIED}, min(({count}), 1) AS {FIRST}", (*parameters, *parameters))


def _all_there(answer: ProbeAnswer) -> bool:
    """Whether an inspection found each row once."""
    return bool(answer.rows) and all(count == 1 for count in answer.rows[0].values())
