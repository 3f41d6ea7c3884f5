"""Builds probes: rows that a surface accepts, and what sends them. Words of the contract have known values, other
columns those that their checks show.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from msgspec import structs

from holdfast.conformance.fitness.model import EvidenceClass, Part, Probe, ProbeAnswer, RelationName, Statement, Surface
from holdfast.conformance.fitness.policy import KEYS, NONCE, WORDS, Policy
from holdfast.conformance.fitness.trying.values import Blob, ForeignKey, Shape, Table, sample_shape, shape_of


class Session(Protocol):
    """One connection of one role."""

    def send(self, text: str, parameters: Sequence[Any] = ()) -> tuple[Statement, ProbeAnswer]:
        """Send one statement and wait for what it says. An error is an answer; never raises."""

    def begin(self) -> None:
        """Begin what `rollback` undoes. Never raises: the next statement reports the error."""

    def rollback(self) -> None:
        """Undo what was not committed. Never raises."""


class Copy(Protocol):
    """A copy of a surface, on which everything can be tried."""

    def opened(self, *sessions: tuple[str, str]) -> AbstractContextManager[tuple[Session, ...]]:
        """Sessions by (label, role), closed at the end. Raises LostError or the driver's error."""


class Attempt:
    """The record of one probe while it is made."""

    def __init__(self, name: str, evidence: EvidenceClass) -> None:
        self.name = name
        self.evidence = evidence
        self._sent: list[tuple[Statement, ProbeAnswer]] = []

    def send(self, session: Session, text: str, parameters: Sequence[Any] = ()) -> ProbeAnswer:
        """Send a statement, and keep it with its answer."""
        statement, answer = session.send(text, parameters)
        self.keep(statement, answer)
        return answer

    def keep(self, statement: Statement, answer: ProbeAnswer) -> None:
        """Keep what was sent elsewhere."""
        self._sent.append((statement, answer))

    def done(self, failed: str = "") -> Probe:
        """What came of it; if it could not be tried, what was tried on the way stays visible, and shows nothing."""
        statements, answers = zip(*self._sent, strict=True) if self._sent else ((), ())
        return Probe(self.name, self.evidence, statements, answers, failed)


def gone(answer: ProbeAnswer) -> bool:
    """Whether it only says that the connection, or the whole server, went away."""
    return (answer.sqlstate or "").startswith(("08", "57P"))


# Values as text, by column; None is NULL, and bytes are of SQLite alone.
Value: TypeAlias = str | Blob | None
Values: TypeAlias = dict[str, Value]
Parameters: TypeAlias = tuple[str | None, ...]
KEY, REPLAY_KEY = KEYS
_NO_EQUALITY = frozenset({"json", "xml", "point"})
# About as many rows as probes make.
_ROWS = 200
# The number of the rows by which values are found on a clone.
TRIAL = 999
# Of parents of parents; a cycle ends here too.
_GENERATIONS = 5
# The distance between the number of a replay key and that of the other key.
_APART = 5_000


@dataclass(frozen=True, slots=True)
class Sample:
    """What makes a row itself: the number of each word or column in `words`, and `base` for all others.

    Rows of several relations that are made of one sample belong together.
    """

    base: int
    words: Mapping[str, int] = field(default_factory=dict)

    def number(self, word: str) -> int:
        """The number of which the value of this word is made."""
        return self.words.get(word, self.base)


@dataclass(frozen=True, slots=True)
class Insert:
    """One row for one relation."""

    relation: RelationName
    # The relation as SQL.
    into: str
    values: Values
    # Whether it says itself what the server would number.
    overriding: bool = False
    # How its statement ends, if nothing else is said.
    ends: str = ""

    def text(self, suffix: str = "", verb: str = "INSERT") -> str:
        """The statement, with a `suffix` such as ON CONFLICT …; values by position, but for bytes."""
        names = ", ".join(quoted(name) for name in self.values)
        how = " OVERRIDING SYSTEM VALUE" if self.overriding else ""
        places = ", ".join(placed(self.values.values()))
        return f"{verb} INTO {self.into} ({names}){how} VALUES ({places}){suffix or self.ends}"

    @property
    def parameters(self) -> Parameters:
        """The values by position."""
        return given(self.values.values())


def placed(values: Iterable[Value], offset: int = 0) -> list[str]:
    """Values as a statement has them: a place each, but for bytes, which a proof cannot hold as a parameter."""
    count = itertools.count(offset + 1)
    return [f"x'{each.hex}'" if isinstance(each, Blob) else f"${next(count)}" for each in values]


def given(values: Iterable[Value]) -> Parameters:
    """The parameters of such a statement."""
    return tuple(each for each in values if not isinstance(each, Blob))


class Ground(Protocol):
    """Where rows are made: a copy, or the live tables."""

    @property
    def in_files(self) -> bool:
        """Whether it is SQLite."""

    def table(self, relation: RelationName) -> Table | None:
        """What there is of that name; None if there is nothing."""

    def refusal(self, rows: Sequence[Insert]) -> str:
        """Why these rows, in this order, are not accepted; empty if they are. Nothing of them stays."""

    def text(self, relation: RelationName) -> str:
        """A relation as SQL."""


class RowError(Exception):
    """No row can be made that the surface accepts; the text names the rule that stood in the way."""


def quoted(name: str) -> str:
    """An identifier as SQL."""
    return '"' + name.replace('"', '""') + '"'


class ProbeBuilder:
    """Makes and sends the rows of one surface. `helper` inserts what these refer to outside the surface.

    A file has one writer, who does it himself.
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
        self.ground = ground
        self.in_files = ground.in_files
        self.helper = helper
        self.policy = policy
        self._evidence = evidence
        self._prefix = prefix
        self._numbers = itertools.count(first)
        # The number of the rows by which values are found; nothing of them stays.
        self._trial = first - 1 or TRIAL
        self._words = {policy.column(word): word for word in WORDS}
        self._tables: dict[RelationName, Table] = {}
        self._wanted: set[tuple[RelationName, str]] = set()
        # Made once: a shape may hold the moment in which it was made, and a row must be the same whenever it is made.
        self._known: dict[tuple[RelationName, str], Shape] = {}
        self.relations = {part: self._table(relation).relation for part, relation in surface.parts.items()}
        # A nonce in the effect's own row needs no row of its own, and proves nothing; and an audit within another part
        # is no audit, and is tried as that part.
        effect, nonce, audit = (surface.parts.get(part) for part in (Part.EFFECT, Part.NONCE, Part.AUDIT))
        self.order = self.learn((Part.EFFECT,) if nonce in (None, effect) else (Part.EFFECT, Part.NONCE))
        self.audit = () if audit in (None, effect, nonce) else (Part.AUDIT,)

    # Probes.

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

    # Rows.

    def table(self, part: Part) -> Table:
        """What is known of a part's relation."""
        return self._tables[self.relations[part]]

    def has(self, part: Part, word: str, *, instead: bool = False) -> bool:
        """Whether a part has a column for a word that takes a value, if need be `instead` of the server's number."""
        found = self.table(part).columns.get(self.policy.column(word)) if part in self.relations else None
        return found is not None and not (found.generated if instead else found.made_by_server)

    def word(self, column: str) -> str:
        """The contract's word for a column, or the column's own name."""
        return self._words.get(column, column)

    def learn(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """Find values that everything accepts, and an order of the parts; nothing stays. Raises RowError."""
        reasons, sample = list[str](), Sample(self._trial)
        for order in (self._parents_first(parts), self._parents_first(parts)[::-1]):
            inserts = tuple(self.insert(part, sample) for part in order)
            reasons.append(self.ground.refusal((*self.parents(inserts, sample), *inserts)))
            if not reasons[-1]:
                self._must_differ(order)
                return order
        raise RowError(f"{reasons[0]}; give values that are accepted under `values` in the policy")

    def insert(self, part: Part, sample: Sample, changed: Mapping[str, Value] | None = None) -> Insert:
        """The row of a sample for a part, with the words or columns in `changed` set to these values."""
        relation = self.relations[part]
        values = self._values(relation, sample, 0)
        for word, value in (changed or {}).items():
            values[self.policy.column(word) if word in WORDS else word] = value
        table = self._tables[relation]
        numbered = any(name in values for name in table.columns if table.columns[name].numbered)
        return Insert(relation, self.ground.text(relation), values, numbered)

    def into(self, part: Part) -> str:
        """The relation of a part as SQL."""
        return self.ground.text(self.relations[part])

    def parents(self, inserts: tuple[Insert, ...], sample: Sample) -> tuple[Insert, ...]:
        """The rows outside the surface that these rows refer to, in the order in which they must be inserted."""
        found: dict[tuple[RelationName, Parameters], Insert] = {}
        for insert in inserts:
            for parent in self._parents_of(insert, sample, 0):
                found.setdefault((parent.relation, parent.parameters), parent)
        return tuple(found.values())

    def _must_differ(self, order: tuple[Part, ...]) -> None:
        """What is unique alone has a value of its own in each row: else a refusal says nothing. Raises RowError."""
        wanted = {Part.EFFECT: KEYS, Part.NONCE: (NONCE,)}
        for part in order:
            table = self.table(part)
            words = {self.policy.column(word) for word in wanted.get(part, ()) if self.has(part, word)}
            alone = {
                unique.columns[0]
                for unique in table.uniques
                if unique.total and len(unique.columns) == 1
                # That a record says the same is what an audit must bear, but for its primary key.
                if part is not Part.AUDIT or unique.primary or self._sample(table, unique.columns[0]) is not None
            }
            numbers = range(self._trial, self._trial + _ROWS)
            made = [self._values(table.relation, Sample(number), 0) for number in numbers]
            for name in sorted(words | (alone & set(made[0]))):
                if len({values[name] for values in made}) < _ROWS:
                    raise RowError(
                        f"the value for {table.relation.name}.{name} does not differ from row to row; "
                        "use {hex}, {hex:N}, {uuid} or {number} under `values` in the policy"
                    )

    # Values.

    def _values(self, relation: RelationName, sample: Sample, generation: int) -> Values:
        table = self._tables[relation]
        # What makes a row unique is said, so that it can be found again and inserted once more.
        keys = {name for unique in table.uniques for name in unique.columns}
        values: Values = {}
        for name, column in table.columns.items():
            if column.made_by_server:
                continue
            if (
                column.needed
                or name in self._words
                or name in keys
                or (relation, name) in self._wanted
                or self._sample(table, name)
            ):
                values[name] = self._value(table, name, sample)
        for key in table.foreign_keys:
            self._refer(values, key, relation, sample, generation)
        return values

    def _refer(self, values: Values, key: ForeignKey, relation: RelationName, sample: Sample, generation: int) -> None:
        """What is referred to decides what a column says, unless the contract has a word for the column."""
        if key.target == relation or generation >= _GENERATIONS or not set(key.columns) & set(values):
            return
        target = self._table(key.target)
        for name in key.targets:
            if not target.columns[name].made_by_server:
                self._wanted.add((key.target, name))
        above = self._values(key.target, sample, generation + 1)
        for name, referred in zip(key.columns, key.targets, strict=True):
            # One key that refers to the other one is what that one is.
            crossed = {self.word(name), self.word(referred)} == set(KEYS)
            if name in values and (name not in self._words or crossed) and referred in above:
                values[name] = above[referred]

    def _parents_of(self, insert: Insert, sample: Sample, generation: int) -> Iterator[Insert]:
        if generation >= _GENERATIONS:
            return
        for key in self._tables[insert.relation].foreign_keys:
            named = [insert.values.get(name) for name in key.columns]
            if key.target in self.relations.values() or key.target == insert.relation or None in named:
                continue
            values = self._values(key.target, self._of_its_own(insert.relation, key, sample), generation + 1)
            values.update(zip(key.targets, named, strict=True))
            # It may be there.
            parent = Insert(key.target, self.ground.text(key.target), values, ends=" ON CONFLICT DO NOTHING")
            yield from self._parents_of(parent, sample, generation + 1)
            yield parent

    def _of_its_own(self, relation: RelationName, key: ForeignKey, sample: Sample) -> Sample:
        """The sample of a parent: where both keys refer to one relation, it has two rows that differ in all."""
        alike = [each for each in self._tables[relation].foreign_keys if each.target == key.target]
        apart = len(alike) > 1 and self.policy.column(KEYS[1]) in key.columns
        return Sample(sample.base + _APART, sample.words) if apart else sample

    def _value(self, table: Table, name: str, sample: Sample) -> Value:
        word = self.word(name)
        # The two keys of a row are not equal: a table may refuse that.
        number = sample.number(word) + (_APART if word == KEYS[1] else 0)
        return self._shape(table, name)(number)

    def _shape(self, table: Table, name: str) -> Shape:
        key = table.relation, name
        if key not in self._known:
            given = self._sample(table, name)
            self._known[key] = given or shape_of(self.word(name), table.columns[name], self.policy.operations)
        return self._known[key]

    def _sample(self, table: Table, name: str) -> Shape | None:
        values = self.policy.values
        for key in (f"{table.relation.name}.{name}", name):
            if key in values:
                return sample_shape(values[key])
        return None

    # Tables.

    def _table(self, relation: RelationName) -> Table:
        if relation not in self._tables:
            found = self.ground.table(relation)
            if found is None:
                raise RowError(f"there is no relation {relation} in the clone")
            self._tables[relation] = found
        return self._tables[relation]

    def _parents_first(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """The nonce before the effect, unless it refers to it."""
        refers = {
            part: {key.target for key in self.table(part).foreign_keys if key.target != self.relations[part]}
            for part in parts
        }
        order = sorted(parts, key=lambda part: (Part.NONCE, Part.EFFECT, Part.AUDIT).index(part))
        if Part.NONCE in parts and self.relations.get(Part.EFFECT) in refers[Part.NONCE]:
            order = sorted(parts, key=lambda part: (Part.EFFECT, Part.NONCE, Part.AUDIT).index(part))
        return tuple(order)


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
