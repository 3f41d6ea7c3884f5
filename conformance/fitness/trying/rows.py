"""Rows that a surface accepts: words of the contract have known values, trials find the rest, within bounds."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from holdfast.conformance.fitness.model import Part, RelationName, Surface
from holdfast.conformance.fitness.policy import KEYS, NONCE, WORDS, Policy
from holdfast.conformance.fitness.trying.tables import Check, ForeignKey, Table
from holdfast.conformance.fitness.trying.values import Blob, Shape, sample_shape, shapes_of

# Values as text, by column; None is NULL, and bytes are of SQLite alone.
Value: TypeAlias = str | Blob | None
Values: TypeAlias = dict[str, Value]
Parameters: TypeAlias = tuple[str | None, ...]
# How many trials satisfy a table with a dozen checks; beyond that a person must name the values.
_TRIES = 400
# About as many rows as probes make.
_ROWS = 200
# The number of the rows by which values are found on a clone; nothing of them stays.
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


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why rows were not accepted: by which column, or constraint, of which relation, as far as it is told."""

    state: str
    message: str
    relation: RelationName | None = None
    column: str = ""
    constraint: str = ""
    of_domain: bool = False


class Ground(Protocol):
    """Where rows are made: a copy, or the live tables."""

    @property
    def in_files(self) -> bool:
        """Whether it is SQLite."""

    def table(self, relation: RelationName) -> Table | None:
        """What there is of that name; None if there is nothing."""

    def refusal(self, rows: Sequence[Insert]) -> Refusal | None:
        """Why these rows, in this order, are not accepted; None if they are. Nothing of them stays."""

    def text(self, relation: RelationName) -> str:
        """A relation as SQL."""


class RowError(Exception):
    """No row can be made that the surface accepts; the text names the rule that stood in the way."""


def quoted(name: str) -> str:
    """An identifier as SQL."""
    return '"' + name.replace('"', '""') + '"'


class RowBuilder:
    """Makes rows for the relations of a surface, and for those that they refer to."""

    def __init__(self, ground: Ground, surface: Surface, policy: Policy, *, trial: int) -> None:
        """`trial` is the number that the rows are made of that are tried on the `ground`. Raises RowError."""
        self.ground = ground
        self._trial = trial
        self.policy = policy
        self._words = {policy.column(word): word for word in WORDS}
        self._tables: dict[RelationName, Table] = {}
        self._chosen: dict[tuple[RelationName, str], int] = {}
        self._counted: dict[tuple[RelationName, str], int] = {}
        self._wanted: set[tuple[RelationName, str]] = set()
        # Made once: a shape may hold the moment in which it was made, and a row must be the same whenever it is made.
        self._known: dict[tuple[RelationName, str], tuple[Shape, ...]] = {}
        self.relations = {part: self._table(relation).relation for part, relation in surface.parts.items()}

    def table(self, part: Part) -> Table:
        """What is known of a part's relation."""
        return self._tables[self.relations[part]]

    def has(self, part: Part, word: str) -> bool:
        """Whether the relation of a part has a column for a word of the contract that can be given a value."""
        found = self.table(part).columns.get(self.policy.column(word)) if part in self.relations else None
        return found is not None and not found.made_by_server

    def word(self, column: str) -> str:
        """The contract's word for a column, or the column's own name."""
        return self._words.get(column, column)

    def learn(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """Find values that everything accepts, and an order of the parts; nothing stays. Raises RowError."""
        reasons: list[str] = []
        for order in (self._parents_first(parts), tuple(reversed(self._parents_first(parts)))):
            try:
                self._learn(order)
            except RowError as error:
                reasons.append(str(error))
            else:
                return order
        raise RowError(reasons[0])

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

    # Learning.

    def _learn(self, order: tuple[Part, ...]) -> None:
        sample = Sample(self._trial)
        for _ in range(_TRIES):
            inserts = tuple(self.insert(part, sample) for part in order)
            if (refusal := self.ground.refusal((*self.parents(inserts, sample), *inserts))) is None:
                self._must_differ(order)
                return
            self._adjust(refusal)
        raise RowError(f"no row was accepted after {_TRIES} tries; give sample values in the policy")

    def _must_differ(self, order: tuple[Part, ...]) -> None:
        """A key has a value of its own in each row: else a refusal says nothing of the table. Raises RowError."""
        wanted = {Part.EFFECT: KEYS, Part.NONCE: (NONCE,)}
        for part in order:
            table = self.table(part)
            words = {self.policy.column(word) for word in wanted.get(part, ()) if self.has(part, word)}
            alone = {unique.columns[0] for unique in table.uniques if unique.total and len(unique.columns) == 1}
            given = {name for name in alone if self._sample(table, name) is not None}
            for name in sorted(words | given):
                numbers = range(self._trial, self._trial + _ROWS)
                if len({self._value(table, name, Sample(number)) for number in numbers}) < _ROWS:
                    raise RowError(
                        f"the value for {table.relation.name}.{name} does not differ from row to row; "
                        "use {hex}, {hex:N}, {uuid} or {number} under `values` in the policy"
                    )

    def _adjust(self, said: Refusal) -> None:
        """Choose something else for what was refused. Raises RowError if there is nothing else."""
        known = None if said.relation is None else self._tables.get(said.relation)
        if said.state == "23502" and known is not None:
            column, wanted = known.columns.get(said.column), (known.relation, said.column)
            if column is not None and not column.made_by_server and wanted not in self._wanted:
                self._wanted.add(wanted)
                return
        if said.state == "22001" and self._shorten(said.message):
            return
        if said.state == "22P02" and known is not None and said.column in known.columns:
            self._next(known, Check(said.column, False, [said.column], ""), said)
            return
        if said.state == "23514":
            # That of a domain says nothing of the table that was inserted into.
            for table in (known,) if known is not None else tuple(self._tables.values()):
                for check in table.checks:
                    if (check.name, check.of_domain) == (said.constraint, said.of_domain):
                        self._next(table, check, said)
                        return
        raise RowError(f"{said.state}: {said.message}")

    def _shorten(self, message: str) -> bool:
        """Give columns whose domain has a length the one that was exceeded: the catalogue does not say it."""
        found, changed = re.search(r"\((\d+)\)", message), False
        if found is None:
            return False
        for relation, table in self._tables.items():
            for name, column in table.columns.items():
                if column.type in ("varchar", "bpchar") and column.length is None:
                    limited = replace(column, length=int(found[1]))
                    self._tables[relation] = table = replace(table, columns={**table.columns, name: limited})
                    self._known.pop((relation, name), None)
                    changed = True
        return changed

    def _next(self, table: Table, check: Check, said: Refusal) -> None:
        """The next combination of values for the columns of a check."""
        columns = [name for name in check.columns if not table.columns[name].made_by_server]
        known = {name: len(self._shapes(table, name)) for name in columns}
        for name in columns:
            self._wanted.add((table.relation, name))
        key = table.relation, f"{check.of_domain}:{check.name}"
        self._counted[key] = number = self._counted.get(key, 0) + 1
        for name in columns:
            number, self._chosen[table.relation, name] = divmod(number, known[name])
        if number or not columns:
            raise RowError(
                f"{said.state}: {said.message}; no value is known that "
                f"{' and '.join(columns) or 'it'} may have: give one under `values` in the policy"
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
            needed = column.not_null and not column.has_default
            if (
                needed
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
        shapes = self._shapes(table, name)
        if not shapes:
            return None
        word = self.word(name)
        # The two keys of a row are not equal: a table may refuse that.
        number = sample.number(word) + (_APART if word == KEYS[1] else 0)
        return shapes[self._chosen.get((table.relation, name), 0)](number)

    def _shapes(self, table: Table, name: str) -> tuple[Shape, ...]:
        key = table.relation, name
        if key not in self._known:
            given, checks = self._sample(table, name), table.checks_on(name)
            made = shapes_of(self.word(name), table.columns[name], checks, self.policy.operations)
            self._known[key] = made if given is None else (given,)
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
