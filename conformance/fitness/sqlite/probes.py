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
from holdfast.conformance.fitness.model import (
    Evidence,
    EvidenceClass,
    Part,
    Probe,
    ProbeAnswer,
    Snapshot,
    Statement,
    Surface,
)
from holdfast.conformance.fitness.neighbours import NEIGHBOURS, NUL_NEIGHBOURS
from holdfast.conformance.fitness.policy import BINDINGS, KEYS, NONCE, Policy
from holdfast.conformance.fitness.sqlite.bench import (
    BEGIN,
    COMMIT,
    ROLLBACK,
    ProbeRunner,
    Subject,
    all_there,
    inspect,
    made,
    problem_of,
    row_of,
)
from holdfast.conformance.fitness.sqlite.live import MAIN, read
from holdfast.conformance.fitness.sqlite.records import own
from holdfast.conformance.fitness.sqlite.rows import Blob, Sql, Values, insert, quoted, same, without
from holdfast.conformance.fitness.sqlite.session import DEFAULTS, ROLE, Transcript, refused
from holdfast.conformance.fitness.sqlite.snapshot import files_of, take
from holdfast.conformance.fitness.sqlite.tampering import tampering

# A process that holds an open transaction on the copy, and is killed

_PATIENCE_S = 10.0
# The process itself interrupts a trigger that never ends: it may outlive the reader of its lines.
_INSTRUCTIONS = 100_000
# The process has nothing of ours: what it needs it reads. It says one line for each statement, then waits to be killed.
_PROGRAM = """
import json, sqlite3, sys, time
told = json.loads(sys.stdin.readline())
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
sys.stdin.read()
"""


def kill_before_commit(file: Path, settings: Mapping[str, str], inserts: Sequence[Sql], transcript: Transcript) -> str:
    """Run the inserts in a transaction of another process and kill that. Why it could not be done, else empty."""
    statements = [Sql("BEGIN IMMEDIATE"), *inserts]
    described = {
        "file": str(file),
        "settings": {**DEFAULTS, **settings},
        "patience": _PATIENCE_S,
        "instructions": _INSTRUCTIONS,
        "statements": [[sql.text, sql.parameters] for sql in statements],
    }
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        if process.stdin is None or process.stdout is None:
            return "no process could be talked to"
        process.stdin.write(json.dumps(described) + "\n")
        process.stdin.flush()
        for sql in statements:
            line = process.stdout.readline()
            if not line:
                return "the process that was to be killed ended by itself"
            state, message, affected = json.loads(line)
            transcript.statements.append(Statement("killed", ROLE, sql.text, sql.parameters))
            transcript.answers.append(ProbeAnswer(state, message, affected))
        return ""
    except OSError as error:
        return f"the process that was to be killed cannot be talked to: {error.strerror}"
    finally:
        process.kill()
        process.communicate(timeout=_PATIENCE_S)


# Operations of other domains, and other spellings of this one.
_OTHER_OPERATIONS = ("unregister_dot", "outbound", "REGISTER_DOT", "register_dot ")


def other_operations() -> Iterator[tuple[str, str]]:
    """The names of probes of operations that are not the surface's, with the operations."""
    for place, operation in enumerate(_OTHER_OPERATIONS):
        yield "other-operation" + (f"-{place + 1}" if place else ""), operation


def gather_evidence(path: Path, surface: Surface, policy: Policy, *, within: Path | None = None) -> Evidence:
    """All evidence about a surface; copies lie `within` a folder. Raises FitnessError if the file cannot be read."""
    snapshot = take(path, surface, policy)
    try:
        return Evidence(surface, snapshot, probe_copy(path, surface, snapshot, policy, within=within))
    except (LostError, FitnessError, OSError) as error:
        lost = dict.fromkeys((EvidenceClass.CLONE, EvidenceClass.CONCURRENCY), str(error))
        return Evidence(surface, snapshot, (), lost)


def probe_copy(
    path: Path, surface: Surface, snapshot: Snapshot, policy: Policy, *, within: Path | None = None
) -> tuple[Probe, ...]:
    """All probes. Raises LostError if there is no copy, FitnessError if a file cannot be read."""
    with tempfile.TemporaryDirectory(prefix="holdfast-fitness-", dir=within) as folder:
        copies = {
            name: _copied(file, Path(folder) / f"{name}.sqlite3") for name, file in files_of(surface, path).items()
        }
        try:
            return tuple(_Probing(copies, surface, snapshot, policy).run())
        except sqlite3.Error as error:
            raise LostError(f"the copy cannot be worked on: {error}") from error


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


class _Probing(ProbeRunner):
    """The probes of one surface on one copy."""

    def run(self) -> Iterator[Probe]:
        """Every probe. Raises sqlite3.Error if the copy itself does not work."""
        yield from self._integrity()
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
        yield from self._keys(effect)
        yield from self._bindings(effect)
        yield from self._composites(effect)
        if nonce is not None:
            yield from self._nonces(nonce)
        yield from self._atomic(effect, nonce, both)
        if audit is not None:
            yield self._store_audit(audit)
            yield self._audit_again(audit)
            yield self._audit_survives(effect, audit)
        for subject in subjects.values():
            yield from tampering(self, subject)

    def _integrity(self) -> Iterator[Probe]:
        for place in self.copies:
            transcript = Transcript()
            with self.session("checker", place) as session:
                # All pages are read, however many there are.
                session.connection.set_progress_handler(None, 0)
                transcript.run(session, Sql("PRAGMA integrity_check(10)"))
            yield made("integrity" if place == MAIN else f"integrity-{place}", transcript)

    def _first(self, subjects: list[Subject]) -> Probe:
        transcript = Transcript()
        problem = next((each.problem for each in subjects if each.problem), "")
        with self.session() as session:
            transcript.run(session, BEGIN)
            for each in subjects:
                self.insert(transcript, session, each, each.first)
            transcript.run(session, COMMIT)
            session.end()
        with self.session("reader") as session:
            transcript.run(session, inspect({each.which.value: (each.relation, each.first) for each in subjects}))
        for each in subjects:
            if not each.problem and not all_there(transcript.answers[-1]):
                each.problem = problem or "the rows of the first request were not stored"
        return made("first", transcript, failed=problem)

    def _keys(self, effect: Subject) -> Iterator[Probe]:
        key, replay_key = KEYS
        known, known_replay = (str(self.known(effect, word)) for word in KEYS)
        yield self.having("same-key", effect, key, known)
        yield self._same_but_attempt(effect)
        yield self.having("same-replay-key", effect, replay_key, known_replay)
        yield self.having("key-null", effect, key, None)
        yield self.having("replay-key-null", effect, replay_key, None)
        for name, word, value in ((key, key, known), (replay_key, replay_key, known_replay)):
            stem = "key" if name == key else "replay-key"
            for neighbour, (make, _) in {**NEIGHBOURS, **NUL_NEIGHBOURS}.items():
                yield self.having(f"{stem}-{neighbour}", effect, word, make(value))
            yield self.having(f"{stem}-blob", effect, word, Blob.of(value))
        # Another key, which must go in.
        other = known[:-1] + ("0" if known[-1] != "0" else "1")
        yield self.having("key-prefix", effect, key, other)
        yield self.having("attempt-again", effect, "attempt", self.known(effect, "attempt"))

    def _same_but_attempt(self, effect: Subject) -> Probe:
        """Everything of the first request, with a new attempt. What else has to be unique in the row is new too."""
        same_words = {word: self.known(effect, word) for word in (*KEYS, NONCE, *BINDINGS)}
        row = effect.row_builder.word_row(self.words.fresh(), **same_words)
        lacking = self.lacking("same-key-new-attempt", effect, KEYS[0])
        return lacking or self.attempt("same-key-new-attempt", effect, row)

    def _bindings(self, effect: Subject) -> Iterator[Probe]:
        for word in BINDINGS:
            yield self.having(f"without-{word}", effect, word, None)
            yield self._omitted(f"omitted-{word}", effect, word)
            yield self.having(f"empty-{word}", effect, word, "")
            yield self.having(f"empty-blob-{word}", effect, word, Blob(""))
        yield self.having("decision-null", effect, "decision", None)
        for place, operation in enumerate(self.policy.operations):
            yield self.having(f"operation-{place + 1}", effect, "operation", operation)
        for name, operation in other_operations():
            if operation not in self.policy.operations:
                yield self.having(name, effect, "operation", operation)

    def _omitted(self, name: str, subject: Subject, word: str) -> Probe:
        """Try a row that does not name the column, so that a default would fill it."""
        row = without(subject.row_builder.word_row(self.words.fresh()), self.policy.column(word))
        return self.lacking(name, subject, word) or self.attempt(name, subject, row)

    def _composites(self, effect: Subject) -> Iterator[Probe]:
        """For each unique index over several columns: rows that differ in one of them only."""
        for index in effect.relation.indexes:
            names = [name for name in index.columns if name is not None]
            if not index.unique or len(index.columns) < 2 or len(names) < len(index.columns):
                continue
            kept = {name: effect.first[name] for name in names if name in effect.first}
            for column in names:
                if column in effect.first:
                    yield self._composite(f"composite-{index.name}-{column}", effect, kept, column)

    def _composite(self, name: str, effect: Subject, kept: Values, column: str) -> Probe:
        """Try values of the column until a row that is otherwise the same goes in."""
        probe = made(name, Transcript(), failed=effect.problem or f"no other value is known for {column}")
        for guess in [] if effect.problem else effect.row_builder.guesses[column]:
            number = self.words.fresh()
            value = guess(number)
            if value != effect.first[column]:
                probe = self.attempt(name, effect, effect.row_builder.row(number, {**kept, column: value}))
                if not any(refused(answer) for answer in probe.answers):
                    break
        return probe

    def _nonces(self, nonce: Subject) -> Iterator[Probe]:
        known = str(self.known(nonce, NONCE))
        yield self.having("nonce-again", nonce, NONCE, known)
        yield self.having("nonce-null", nonce, NONCE, None)
        yield self.having("nonce-blob", nonce, NONCE, Blob.of(known))

    def _atomic(self, effect: Subject, nonce: Subject | None, both: list[Subject]) -> Iterator[Probe]:
        yield self._arbiter("arbiter", effect, KEYS[0])
        if nonce is not None:
            yield self._arbiter("nonce-arbiter", nonce, NONCE)
        yield self._rolled_back(both)
        yield self._read_back(effect)
        yield self._race(effect)
        yield self._killed(both)

    def _arbiter(self, name: str, subject: Subject, word: str) -> Probe:
        lacking = self.lacking(name, subject, word)
        row = subject.row_builder.word_row(self.words.fresh(), **{word: self.known(subject, word)})
        behind = f" ON CONFLICT ({quoted(self.policy.column(word))}) DO NOTHING"
        return lacking or self.attempt(name, subject, row, behind=behind)

    def _rolled_back(self, subjects: list[Subject]) -> Probe:
        transcript = Transcript()
        rows = self.fresh_rows(subjects)
        with self.session() as session:
            transcript.run(session, BEGIN)
            for each in subjects:
                self.insert(transcript, session, each, rows[each.which])
            inside = inspect({each.which.value: (each.relation, rows[each.which]) for each in subjects})
            transcript.run(session, inside)
            transcript.run(session, ROLLBACK)
            transcript.run(session, inside)
            session.end()
        return made("rollback", transcript, failed=problem_of(subjects))

    def _read_back(self, effect: Subject) -> Probe:
        transcript = Transcript()
        lacking = self.lacking("read-back", effect, "decision")
        if lacking is not None:
            return lacking
        column = quoted(self.policy.column("decision"))
        key = self.policy.column(KEYS[0])
        known = {key: effect.first[key]} if key in effect.first else effect.first
        condition, parameters = same(known)
        sql = f"SELECT {column} AS decision FROM {quoted(effect.relation.name)} WHERE {condition}"
        with self.session("another writer") as session:
            transcript.run(session, Sql(sql, parameters))
        return made("read-back", transcript, failed=effect.problem)

    def _race(self, effect: Subject) -> Probe:
        """Two sessions with one key: the second waits for the first, and is refused when that one has committed."""
        transcript = Transcript()
        lacking = self.lacking("race", effect, KEYS[0])
        winner = effect.row_builder.row(self.words.fresh())
        key = winner.get(self.policy.column(KEYS[0]))
        loser = effect.row_builder.word_row(self.words.fresh(), **{KEYS[0]: key})
        if lacking is not None or effect.problem:
            return lacking or made("race", transcript, EvidenceClass.CONCURRENCY, failed=effect.problem)
        with self.session("first") as first, self.session("second") as second:
            transcript.run(first, BEGIN)
            self.insert(transcript, first, effect, winner)
            transcript.run(second, BEGIN)
            transcript.run(first, COMMIT)
            first.end()
            transcript.run(second, BEGIN)
            self.insert(transcript, second, effect, loser)
            transcript.run(second, inspect({"tried": (effect.relation, loser), "first": (effect.relation, winner)}))
            second.end()
        return made("race", transcript, EvidenceClass.CONCURRENCY)

    def _killed(self, subjects: list[Subject]) -> Probe:
        """A process that is killed between the inserts and the commit leaves neither row."""
        problem = problem_of(subjects)
        rows = self.fresh_rows(subjects)
        statements: list[Sql] = []
        if not problem:
            # Rehearsed here, so that each statement finds the rows that earlier ones have made.
            rehearsal = Transcript()
            with self.session() as session:
                session.run(BEGIN)
                for each in subjects:
                    self.insert(rehearsal, session, each, rows[each.which])
                session.end()
            statements = [Sql(each.sql, each.parameters) for each in rehearsal.statements]
        transcript = Transcript()
        died = problem or kill_before_commit(self.copies[MAIN], self.settings, statements, transcript)
        with self.session("survivor") as session:
            transcript.run(session, inspect({each.which.value: (each.relation, rows[each.which]) for each in subjects}))
        return made("killed", transcript, EvidenceClass.CONCURRENCY, failed=died)

    def _store_audit(self, audit: Subject) -> Probe:
        """A record of its own for the attempts on the audit."""
        transcript = Transcript()
        with self.session(place=self.place(audit)) as session:
            transcript.run(session, BEGIN)
            self.insert(transcript, session, audit, audit.first)
            transcript.run(session, COMMIT)
            session.end()
            transcript.run(session, inspect({Part.AUDIT.value: row_of(audit)}))
        problem, audit.problem = (
            audit.problem,
            audit.problem or ("" if all_there(transcript.answers[-1]) else "the audit took no record"),
        )
        return made("audit-first", transcript, failed=problem)

    def _audit_again(self, audit: Subject) -> Probe:
        """A second record, with only the columns changed that make it a record of its own, and how many there are."""
        transcript = Transcript()
        if audit.problem:
            return made("audit-again", transcript, failed=audit.problem)
        same_values = without(audit.first, *own(audit.relation, self.policy))
        row = audit.row_builder.row(self.words.fresh(), same_values)
        how_many = Sql(f"SELECT count(*) AS records FROM {quoted(audit.relation.name)}")
        with self.session("auditor", self.place(audit)) as session:
            transcript.run(session, BEGIN)
            for statement in list(audit.parents.of(session.connection, audit.relation, row)):
                transcript.run(session, statement)
            transcript.run(session, how_many)
            transcript.run(session, insert(audit.relation.name, row))
            transcript.run(session, how_many)
            session.end()
        return made("audit-again", transcript)

    def _audit_survives(self, effect: Subject, audit: Subject) -> Probe:
        """A record that is written while the transaction of which it speaks is open, which then rolls back."""
        transcript = Transcript()
        number = self.words.fresh()
        row, record = effect.row_builder.row(number), audit.row_builder.row(number)
        problem = effect.problem or audit.problem
        if problem:
            return made("audit-survives", transcript, EvidenceClass.CONCURRENCY, failed=problem)
        place = self.place(audit)
        with self.session() as writer, self.session("auditor", place) as auditor:
            transcript.run(writer, BEGIN)
            self.insert(transcript, writer, effect, row)
            self.insert(transcript, auditor, audit, record)
            transcript.run(writer, ROLLBACK)
            writer.end()
        with self.session("reader") as reader, self.session("reader of the audit", place) as second:
            transcript.run(reader, inspect({Part.EFFECT.value: (effect.relation, row)}))
            transcript.run(second, inspect({Part.AUDIT.value: (audit.relation, record)}))
        return made("audit-survives", transcript, EvidenceClass.CONCURRENCY)
