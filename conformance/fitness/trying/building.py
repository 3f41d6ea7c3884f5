"""Builds probes: a surface, rows for it, and the sessions that send them."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from msgspec import structs

from holdfast.conformance.fitness.model import EvidenceClass, Part, Probe, ProbeAnswer, Surface
from holdfast.conformance.fitness.policy import KEYS, NONCE, Policy
from holdfast.conformance.fitness.trying.rows import (
    TRIAL,
    Ground,
    Insert,
    Parameters,
    RowBuilder,
    Sample,
    Value,
    given,
    placed,
    quoted,
)
from holdfast.conformance.fitness.trying.sessions import Attempt, Session
from holdfast.conformance.fitness.trying.values import Blob

KEY, REPLAY_KEY = KEYS
_NO_EQUALITY = frozenset({"json", "xml", "point"})


class ProbeBuilder(RowBuilder):
    """Makes and sends the rows of one surface. `helper` inserts the rows that these refer to outside the surface; a
    file has one writer, who does it himself.
    """

    def __init__(
        self,
        ground: Ground,
        surface: Surface,
        policy: Policy,
        *,
        helper: Session | None,
        evidence: EvidenceClass,
        prefix: str = "",
        first: int = 1,
    ) -> None:
        """Learn the form of rows on the `ground`; theirs are the numbers from `first` on. Raises RowError."""
        # The number before them is that of the rows by which values are found; nothing of them stays.
        super().__init__(ground, surface, policy, trial=first - 1 or TRIAL)
        self.in_files = ground.in_files
        self.helper = helper
        self._evidence = evidence
        self._prefix = prefix
        self._numbers = itertools.count(first)
        # A nonce in the effect's own row needs no row of its own, and proves nothing; and an audit within another part
        # is no audit, and is tried as that part.
        effect, nonce, audit = (surface.parts.get(part) for part in (Part.EFFECT, Part.NONCE, Part.AUDIT))
        self.order = self.learn((Part.EFFECT,) if nonce in (None, effect) else (Part.EFFECT, Part.NONCE))
        self.audit = () if audit in (None, effect, nonce) else (Part.AUDIT,)

    def attempt(self, name: str, *, evidence: EvidenceClass | None = None) -> Attempt:
        """The record of a probe of that name."""
        return Attempt(f"{self._prefix}{name}", evidence or self._evidence)

    def cannot(self, name: str, reason: str, *, evidence: EvidenceClass | None = None) -> Probe:
        """A probe that cannot be tried."""
        return self.attempt(name, evidence=evidence).done(reason)

    def fresh(self, words: Mapping[str, int] | None = None) -> Sample:
        """A row that differs from all others, except in these words."""
        return Sample(next(self._numbers), words or {})

    def like(self, known: Sample, *words: str) -> Sample:
        """A fresh row that has these words, or columns, of a known one."""
        return self.fresh({word: known.number(word) for word in words})

    def lacks(self, part: Part, word: str, *, instead: bool = False) -> str:
        """Why a word of the contract cannot be tried on a part; empty if it can, `instead` of a number too."""
        if part not in self.relations or (part is Part.NONCE and part not in self.order):
            return f"there is no {part.value} relation of its own"
        if self.has(part, word, instead=instead):
            return ""
        return f"no column for {word} takes a value in {self.relations[part]}"

    def before(self, part: Part) -> tuple[Part, ...]:
        """The parts whose rows must be there first."""
        return self._parts(part)[:-1]

    def conflict(self, word: str) -> str:
        """The end of an INSERT that adds no row where the value of a word is known."""
        return f" ON CONFLICT ({quoted(self.policy.column(word))}) DO NOTHING"

    def put(
        self,
        attempt: Attempt,
        session: Session,
        sample: Sample,
        *,
        upto: Part | None = None,
        changed: Mapping[str, Value] | None = None,
        suffix: str = "",
    ) -> ProbeAnswer:
        """Insert the rows of a sample in their order, the part `upto` last, and only that with `changed` and `suffix`.

        Without `upto` all of them. Ends with the first that is refused, and returns its answer or the last one.
        """
        answer = ProbeAnswer()
        for part in self._parts(upto):
            last = part is upto
            insert = self.insert(part, sample, changed if last else None)
            answer = self.send(attempt, session, insert, sample, suffix if last else "")
            if answer.sqlstate is not None:
                break
        return answer

    def send(self, attempt: Attempt, session: Session, insert: Insert, sample: Sample, suffix: str = "") -> ProbeAnswer:
        """One row, after the rows outside the surface that it refers to."""
        self.prepare(attempt, insert, sample, self.helper or session)
        answer = attempt.send(session, insert.text(suffix), insert.parameters)
        if self.in_files and answer.sqlstate == "P0001":
            # RAISE(FAIL) refuses and takes back nothing: a row may be there all the same.
            statement, seen = session.send(*_counted(insert))
            if seen.rows and seen.rows[0]["there"]:
                answer = structs.replace(seen, affected=1)
                attempt.keep(statement, answer)
        return answer

    def prepare(self, attempt: Attempt, insert: Insert, sample: Sample, helper: Session) -> None:
        """Insert the rows outside the surface that a row refers to, unless they are there from an earlier one."""
        for parent in self.parents((insert,), sample):
            statement, answer = helper.send(parent.text(), parent.parameters)
            if answer.sqlstate is not None or answer.affected:
                attempt.keep(statement, answer)

    def _parts(self, upto: Part | None) -> tuple[Part, ...]:
        if upto is None:
            return self.order
        if upto not in self.order:
            return (upto,)
        return self.order[: self.order.index(upto) + 1]

    def value(self, part: Part, word: str, sample: Sample) -> str | Blob:
        """The value of a word's column in the row of a sample."""
        value = self.insert(part, sample).values[self.policy.column(word)]
        return value if isinstance(value, Blob) else str(value)

    def count(
        self, samples: Mapping[str, tuple[Part, Sample]], *, before: Mapping[str, int] | None = None
    ) -> tuple[str, Parameters]:
        """A query that counts the rows of samples, each under its name; null where there is no such part.

        Rows that cannot be distinguished from those of a sample, and were there `before`, are not counted.
        """
        texts: list[str] = []
        parameters: list[str | None] = []
        for name, (part, sample) in samples.items():
            if part not in (*self.order, *self.audit):
                texts.append(f"NULL AS {name}")
                continue
            condition, values = self.find(part, sample, len(parameters))
            parameters += values
            table = self.into(part)
            less = f" - {known}" if (known := (before or {}).get(name, 0)) else ""
            texts.append(f"(SELECT count(*){less} FROM {table} WHERE {condition}) AS {name}")
        return f"SELECT {', '.join(texts)}", tuple(parameters)

    def find(self, part: Part, sample: Sample, offset: int = 0) -> tuple[str, Parameters]:
        """A condition that finds the row of a sample, by the contract's key if it has one; places after `offset`."""
        word, table, insert = (
            {Part.EFFECT: KEY, Part.NONCE: NONCE}.get(part),
            self.table(part),
            self.insert(part, sample),
        )
        said = {name for name, value in insert.values.items() if value is not None}
        keys = [unique.columns for unique in sorted(table.uniques, key=lambda unique: len(unique.columns))]
        if word is not None:
            keys.insert(0, (self.policy.column(word),))
        comparable = [name for name in sorted(said) if table.columns[name].type not in _NO_EQUALITY]
        columns = next((each for each in keys if said.issuperset(each)), comparable)
        values = [insert.values[name] for name in columns]
        pairs = zip(columns, placed(values, offset), strict=True)
        return " AND ".join(f"{quoted(name)} = {place}" for name, place in pairs) or "TRUE", given(values)

    def intact(self, part: Part, sample: Sample) -> tuple[str, Parameters]:
        """A query that counts the rows that have every value of a sample."""
        return _counted(self.insert(part, sample))


def first_number() -> int:
    """That of the first of rows beside live ones: these begin low, and integers end above two thousand million."""
    return 1_000_000_001 + secrets.randbelow(1_000_000_000)


def _counted(insert: Insert) -> tuple[str, Parameters]:
    values = {name: value for name, value in insert.values.items() if value is not None}
    pairs = zip(values, placed(values.values()), strict=True)
    condition = " AND ".join(f"{quoted(name)} = {place}" for name, place in pairs) or "TRUE"
    return f"SELECT count(*) AS there FROM {insert.into} WHERE {condition}", given(values.values())


@contextmanager
def rolled_back(*sessions: Session) -> Iterator[None]:
    """A transaction in each of the sessions; everything that happens in it is undone."""
    for session in sessions:
        session.begin()
    try:
        yield
    finally:
        for session in sessions:
            session.rollback()
