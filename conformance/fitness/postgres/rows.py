"""Rows that a surface accepts: words of the contract have known values, trials find the rest, within bounds."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

import psycopg
from psycopg import errors, sql

from holdfast.conformance.fitness.model import Part, RelationName, Surface
from holdfast.conformance.fitness.policy import KEYS, NONCE, WORDS, Policy
from holdfast.conformance.fitness.postgres.tables import Check, Column, ForeignKey, Table, read_table

# Values of a pattern that fixes the characters of each place: `^lrk:[0-9a-f]{64}$`, and nothing with alternatives
_PLAIN = r"[^\\^$.|?*+()\[\]{}]"
_ATOM = re.compile(
    rf"(?:\[(?P<set>[^\\^\[\]][^\\\[\]]*)\]|\\(?P<escaped>[^\w\s])|(?P<plain>{_PLAIN}))"
    r"(?:\{(?P<least>[0-9]{1,3})(?:(?P<comma>,)(?P<most>[0-9]{1,3})?)?\}|(?P<many>[+*?]))?"
)
# The number of places where a pattern leaves it open: enough to differ by, and not too long for a column.
_ENOUGH = 16
# A pattern with fewer values than this is a list of words rather than a form.
_ROOMY = 2**32


@dataclass(frozen=True, slots=True)
class Pattern:
    """For each place of a value, its possible characters in their order."""

    places: tuple[str, ...]

    @property
    def roomy(self) -> bool:
        """Whether values made of different numbers differ."""
        room = 1
        for place in self.places:
            room *= len(place)
        return room >= _ROOMY

    def value(self, digits: Callable[[int], str]) -> str:
        """The value whose open places hold `digits`, as far as they can."""
        drawn = iter(digits(sum(len(place) > 1 for place in self.places)))
        return "".join(place if len(place) == 1 else _drawn(place, next(drawn)) for place in self.places)


def pattern_of(text: str) -> Pattern | None:
    """The open places of a pattern with both anchors; None for a pattern of another form."""
    if not (text.startswith("^") and text.endswith("$")):
        return None
    inside, place, found = text[1:-1], 0, []
    while place < len(inside):
        atom = _ATOM.match(inside, place)
        if atom is None:
            return None
        characters = "".join(_characters(atom["set"])) if atom["set"] else atom["escaped"] or atom["plain"]
        if not characters:
            return None
        found += ["".join(dict.fromkeys(characters))] * _times(atom)
        place = atom.end()
    return Pattern(tuple(found)) if found else None


def _drawn(place: str, digit: str) -> str:
    """The digit itself where it may stand there, so that keys of several columns stay alike."""
    return digit if digit in place else place[ord(digit) % len(place)]


def _times(atom: re.Match[str]) -> int:
    """How often: what may be left out is, so that another spelling with it can be tried; sets have room to differ."""
    least = {"?": 0, "*": 0, "+": 1, None: 1}[atom["many"]] if atom["least"] is None else int(atom["least"])
    if atom["set"] is None or not (atom["comma"] or atom["many"] in ("*", "+")):
        return least
    return max(least, min(int(atom["most"] or _ENOUGH), _ENOUGH))


def _characters(inside: str) -> Iterator[str]:
    """Every character that brackets name; a hyphen at an end is one."""
    place = 0
    while place < len(inside):
        if inside[place + 1 : place + 2] == "-" and place + 2 < len(inside):
            yield from map(chr, range(ord(inside[place]), ord(inside[place + 2]) + 1))
            place += 3
        else:
            yield inside[place]
            place += 1


# From a number to the text of a value.
Shape: TypeAlias = Callable[[int], str]

# By these a reader of a live table, or of a log, can distinguish these rows from others.
PREFIX = "holdfast-probe-"
_HASHES = (*KEYS, "deployed_artifact_hash")
# What is shorter than this cannot hold the prefix and be unique.
_ROOM = 32
_KIBI = 1024
# {hex:22} in a value of the policy: as many hexadecimal digits, 64 at most.
_SOME_DIGITS = re.compile(r"\{hex:([1-9]|[1-5][0-9]|6[0-4])\}")


def digest_of(number: int) -> str:
    """64 random lower-case hexadecimal digits; there are letters among them."""
    return hashlib.sha256(f"{PREFIX}{number}".encode()).hexdigest()


def shapes_of(word: str, column: Column, checks: tuple[Check, ...], operations: tuple[str, ...]) -> tuple[Shape, ...]:
    """Everything worth trying for a column, the likeliest first. `word` is the contract's for it, or its own name."""
    found = [*_of_type(word, column, checks, operations)]
    if column.length is None:
        return tuple(found)
    return tuple(_cut(shape, column.length) for shape in found)


def sample_shape(value: Any) -> Shape:
    """A value of the policy: in a text, {hex}, {hex:N}, {uuid} and {number} stand for what differs between rows."""
    if not isinstance(value, str):
        return _always(json.dumps(value))

    def filled(number: int) -> str:
        words = {"{hex}": digest_of(number), "{uuid}": _uuid(number), "{number}": str(number)}
        text = value
        for mark, instead in words.items():
            text = text.replace(mark, instead)
        return _SOME_DIGITS.sub(lambda mark: digest_of(number)[: int(mark[1])], text)

    return filled


def _of_type(word: str, column: Column, checks: tuple[Check, ...], operations: tuple[str, ...]) -> Iterator[Shape]:
    literals = tuple(text for check in checks for text in check.literals if text)
    numbers = tuple(number for check in checks for number in check.numbers)
    patterns = tuple(pattern for text in literals if (pattern := pattern_of(text)) is not None)
    if word == "operation":
        yield from map(_always, operations)
    if column.labels:
        yield from map(_always, column.labels)
    elif column.category == "S":
        yield from (_of_pattern(pattern) for pattern in patterns if pattern.roomy)
        yield from _texts(word)
        yield from map(_always, literals)
        yield from (_of_pattern(pattern) for pattern in patterns if not pattern.roomy)
    elif column.category == "N":
        yield from _numbers(numbers)
    elif column.category == "A":
        yield from map(_always, ("{}", "{1}", "{probe}"))
    elif column.category == "D":
        yield from map(_always, (_now(), "9999-01-01", "infinity", "2000-01-01", *literals))
    elif column.category == "R":
        yield lambda number: f"[{number},{number + 1})"
        yield _always("empty")
    else:
        yield from _others(column.type)
        yield from map(_always, literals)


def _of_pattern(pattern: Pattern) -> Shape:
    def drawn(number: int) -> str:
        def digits(count: int) -> str:
            known = digest_of(number) + digest_of(-number)
            return (known * (count // len(known) + 1))[:count]

        return pattern.value(digits)

    return drawn


def _texts(word: str) -> Iterator[Shape]:
    named: Shape = lambda number: f"{PREFIX}{digest_of(number)[:24]}"  # noqa: E731 - one of a list of short ones
    if word not in _HASHES:
        yield named
    yield digest_of
    yield _uuid
    yield lambda number: f"sha256:{digest_of(number)}"
    yield lambda number: digest_of(number)[:32]
    yield lambda number: digest_of(number)[:40]
    yield lambda number: digest_of(number) + digest_of(-number)
    if word in _HASHES:
        yield named
    yield lambda number: f"v1:{digest_of(number)}"
    yield _always(_instant())
    yield _always(_instant()[:10])
    yield str
    yield lambda number: f"https://holdfast.invalid/{digest_of(number)[:24]}"
    yield lambda number: digest_of(number).upper()
    yield lambda number: f"probe{number}"
    yield _always("{}")


def _numbers(mentioned: tuple[int, ...]) -> Iterator[Shape]:
    yield str
    for number in mentioned:
        yield from map(_always, (str(number), str(number + 1), str(number - 1)))
    yield from map(_always, ("0", "-1", "100"))
    yield lambda number: str(_KIBI * number)


def _others(type_name: str) -> Iterator[Shape]:
    known: dict[str, tuple[Shape, ...]] = {
        "uuid": (_uuid,),
        "bytea": tuple(_bytes(length) for length in (32, 16, 20, 48, 64)),
        "bool": (_always("true"), _always("false")),
        "json": _documents(),
        "jsonb": _documents(),
        "interval": (_always("1 day"), _always("1000 years"), _always("1 second")),
        "inet": (_address,),
        "cidr": (_address,),
        "xml": (_always("<probe/>"),),
        "bit": (_always("1"),),
        "varbit": (_always("1"),),
    }
    yield from known.get(type_name, ())
    yield from map(_always, ("probe", "1", "{}", "empty", "(0,0)"))


def _documents() -> tuple[Shape, ...]:
    return (lambda number: json.dumps({"probe": number}), _always("{}"), _always("[]"), _always('"probe"'))


def _always(text: str) -> Shape:
    return lambda _number: text


def _bytes(length: int) -> Shape:
    return lambda number: "\\x" + (digest_of(number) * 2)[: 2 * length]


def _uuid(number: int) -> str:
    return str(uuid.UUID(digest_of(number)[:32]))


def _address(number: int) -> str:
    # TEST-NET-1 of RFC 5737.
    return f"192.0.2.{number % 256}"


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _instant() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _cut(shape: Shape, length: int) -> Shape:
    """What does not fit is made of digits only, so that few of them still differ."""

    def fitting(number: int) -> str:
        text = shape(number)
        if len(text) <= length:
            return text
        return digest_of(number)[:length] if length < _ROOM else text[:length]

    return fitting


# Values as text, by column; None is NULL.
Values: TypeAlias = dict[str, str | None]
# How many trials satisfy a table with a dozen checks; beyond that a person must name the values.
_TRIES = 400
# About as many rows as probes make.
_ROWS = 200
# The number of the rows by which values are found on a clone; nothing of them stays.
_TRIAL = 999
# Of parents of parents; a cycle ends here too.
_GENERATIONS = 5
# The distance between the number of a replay key and that of the other key.
_APART = 5_000
_NO_EQUALITY = frozenset({"json", "xml", "point"})


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
    values: Values
    # Whether it says itself what the server would number.
    overriding: bool = False

    def text(self, suffix: str = "") -> str:
        """The statement, with a `suffix` such as ON CONFLICT …; values by position."""
        names = ", ".join(quoted(name) for name in self.values)
        places = ", ".join(f"${place}" for place in range(1, len(self.values) + 1))
        how = " OVERRIDING SYSTEM VALUE" if self.overriding else ""
        return f"INSERT INTO {relation_text(self.relation)} ({names}){how} VALUES ({places}){suffix}"

    @property
    def parameters(self) -> tuple[str | None, ...]:
        """The values by position."""
        return tuple(self.values.values())


class RowError(Exception):
    """No row can be made that the surface accepts; the text names the rule that stood in the way."""


def quoted(name: str) -> str:
    """An identifier as SQL."""
    return sql.Identifier(name).as_string(None)


def relation_text(relation: RelationName) -> str:
    """A relation as SQL, with its schema: a name alone may mean a temporary table."""
    return f"{quoted(relation.schema)}.{quoted(relation.name)}"


class RowBuilder:
    """Makes rows for the relations of a surface, and for those that they refer to."""

    def __init__(
        self, connection: psycopg.Connection[Any], surface: Surface, policy: Policy, *, trial: int = _TRIAL
    ) -> None:
        """`connection` is where rows are tried, and rolled back; `trial` is the number that they are made of.

        Raises RowError or psycopg.Error.
        """
        self._connection = connection
        self._trial = trial
        self._policy = policy
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
        found = self.table(part).columns.get(self._policy.column(word)) if part in self.relations else None
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

    def insert(self, part: Part, sample: Sample, changed: Mapping[str, str | None] | None = None) -> Insert:
        """The row of a sample for a part, with the words or columns in `changed` set to these values."""
        relation = self.relations[part]
        values = self._values(relation, sample, 0)
        for word, value in (changed or {}).items():
            values[self._policy.column(word) if word in WORDS else word] = value
        table = self._tables[relation]
        return Insert(relation, values, any(name in values for name in table.columns if table.columns[name].numbered))

    def parents(self, inserts: tuple[Insert, ...], sample: Sample) -> tuple[Insert, ...]:
        """The rows outside the surface that these rows refer to, in the order in which they must be inserted."""
        found: dict[tuple[RelationName, tuple[str | None, ...]], Insert] = {}
        for insert in inserts:
            for parent in self._parents_of(insert, sample, 0):
                found.setdefault((parent.relation, parent.parameters), parent)
        return tuple(found.values())

    def locate(
        self, insert: Insert, *, prefer: str | None = None, offset: int = 0
    ) -> tuple[str, tuple[str | None, ...]]:
        """A condition that finds the row of an insert, by the column `prefer` if it is given; places after `offset`."""
        table = self._tables[insert.relation]
        given = {name for name, value in insert.values.items() if value is not None}
        if prefer in given:
            return _equal((prefer,), insert, offset)
        for unique in sorted(table.uniques, key=lambda unique: len(unique.columns)):
            if given.issuperset(unique.columns):
                return _equal(unique.columns, insert, offset)
        comparable = tuple(name for name in sorted(given) if table.columns[name].type not in _NO_EQUALITY)
        return _equal(comparable, insert, offset)

    # Learning.

    def _learn(self, order: tuple[Part, ...]) -> None:
        sample = Sample(self._trial)
        with self._connection.transaction(force_rollback=True):
            for _ in range(_TRIES):
                inserts = tuple(self.insert(part, sample) for part in order)
                refused = self._tried((*self.parents(inserts, sample), *inserts))
                if refused is None:
                    self._must_differ(order)
                    return
                self._adjust(refused)
        raise RowError(f"no row was accepted after {_TRIES} tries; give sample values in the policy")

    def _must_differ(self, order: tuple[Part, ...]) -> None:
        """A key has a value of its own in each row: else a refusal says nothing of the table. Raises RowError."""
        wanted = {Part.EFFECT: KEYS, Part.NONCE: (NONCE,)}
        for part in order:
            table = self.table(part)
            words = {self._policy.column(word) for word in wanted.get(part, ()) if self.has(part, word)}
            alone = {unique.columns[0] for unique in table.uniques if unique.total and len(unique.columns) == 1}
            given = {name for name in alone if self._sample(table, name) is not None}
            for name in sorted(words | given):
                numbers = range(self._trial, self._trial + _ROWS)
                if len({self._value(table, name, Sample(number)) for number in numbers}) < _ROWS:
                    raise RowError(
                        f"the value for {table.relation.name}.{name} does not differ from row to row; "
                        "use {hex}, {hex:N}, {uuid} or {number} under `values` in the policy"
                    )

    def _tried(self, inserts: tuple[Insert, ...]) -> psycopg.Error | None:
        try:
            with self._connection.transaction(force_rollback=True), psycopg.RawCursor(self._connection) as cursor:
                for insert in inserts:
                    cursor.execute(insert.text().encode(), insert.parameters)
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        except psycopg.Error as error:
            return error
        return None

    def _adjust(self, error: psycopg.Error) -> None:
        """Choose something else for what was refused. Raises RowError if there is nothing else."""
        said = error.diag
        table = self._named(said.schema_name, said.table_name)
        if isinstance(error, errors.NotNullViolation) and table is not None and said.column_name:
            self._want(table, said.column_name, error)
        elif isinstance(error, errors.CheckViolation):
            self._next(*self._violated(error, table), error)
        else:
            raise RowError(f"{error.sqlstate}: {said.message_primary}") from error

    def _want(self, table: Table, column: str, error: psycopg.Error) -> None:
        key = table.relation, column
        if key in self._wanted or column not in table.columns or table.columns[column].made_by_server:
            raise RowError(f"{error.sqlstate}: {error.diag.message_primary}") from error
        self._wanted.add(key)

    def _violated(self, error: psycopg.Error, table: Table | None) -> tuple[Table, Check]:
        """Which check of which table an error speaks of; of a domain, the table that was inserted into has it."""
        name, domain = error.diag.constraint_name or "", error.diag.datatype_name
        tables = (table,) if table is not None else tuple(self._tables.values())
        for candidate in tables:
            for check in candidate.checks:
                if check.name == name and check.domain == domain:
                    return candidate, check
        raise RowError(f"{error.sqlstate}: {error.diag.message_primary}") from error

    def _next(self, table: Table, check: Check, error: psycopg.Error) -> None:
        """The next combination of values for the columns of a check."""
        columns = [name for name in check.columns if not table.columns[name].made_by_server]
        known = {name: len(self._shapes(table, name)) for name in columns}
        for name in columns:
            self._wanted.add((table.relation, name))
        key = table.relation, f"{check.domain or ''}:{check.name}"
        self._counted[key] = number = self._counted.get(key, 0) + 1
        for name in columns:
            number, self._chosen[table.relation, name] = divmod(number, known[name])
        if number or not columns:
            raise RowError(
                f"{error.sqlstate}: {error.diag.message_primary}; no value is known that "
                f"{' and '.join(columns) or 'it'} may have: give one under `values` in the policy"
            ) from error

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
            parent = Insert(key.target, values)
            yield from self._parents_of(parent, sample, generation + 1)
            yield parent

    def _of_its_own(self, relation: RelationName, key: ForeignKey, sample: Sample) -> Sample:
        """The sample of a parent: where both keys refer to one relation, it has two rows that differ in all."""
        alike = [each for each in self._tables[relation].foreign_keys if each.target == key.target]
        apart = len(alike) > 1 and self._policy.column(KEYS[1]) in key.columns
        return Sample(sample.base + _APART, sample.words) if apart else sample

    def _value(self, table: Table, name: str, sample: Sample) -> str | None:
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
            made = shapes_of(self.word(name), table.columns[name], checks, self._policy.operations)
            self._known[key] = made if given is None else (given,)
        return self._known[key]

    def _sample(self, table: Table, name: str) -> Shape | None:
        values = self._policy.values
        for key in (f"{table.relation.name}.{name}", name):
            if key in values:
                return sample_shape(values[key])
        return None

    # Tables.

    def _table(self, relation: RelationName) -> Table:
        if relation not in self._tables:
            found = read_table(self._connection, relation)
            if found is None:
                raise RowError(f"there is no relation {relation} in the clone")
            self._tables[relation] = found
        return self._tables[relation]

    def _named(self, schema: str | None, name: str | None) -> Table | None:
        if schema is None or name is None:
            return None
        return self._tables.get(RelationName(schema, name))

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


def _equal(columns: tuple[str, ...], insert: Insert, offset: int) -> tuple[str, tuple[str | None, ...]]:
    condition = " AND ".join(f"{quoted(name)} = ${place}" for place, name in enumerate(columns, offset + 1))
    return condition or "TRUE", tuple(insert.values[name] for name in columns)
