"""The value that a column takes: what a policy says, or the form that its checks show, or what its type suggests.

Nothing is guessed: a check of another form refuses the row, and then a person names a value in the policy. `Table` is
what has to be known of a relation for that.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

from holdfast.conformance.fitness.criteria.spelling import (
    Place,
    admitted,
    bound,
    conditions,
    expanded,
    limits,
    literals,
    of_glob,
    places,
)
from holdfast.conformance.fitness.model import RelationName, Row
from holdfast.conformance.fitness.policy import KEYS
from holdfast.conformance.fitness.postgres.catalogue import MADE_UP, Catalogue, longest

# The queries of a catalogue that say all of it.
NEEDED = ("relations", "columns", "constraints", "domain_checks", "indexes", "references", "inheritance")
# pg_type.typcategory of PostgreSQL's own types, as far as values for them differ.
_CATEGORIES = {
    **dict.fromkeys(("text", "varchar", "bpchar", "char", "name", "citext"), "S"),
    **dict.fromkeys(("int2", "int4", "int8", "numeric", "float4", "float8", "money", "oid"), "N"),
    **dict.fromkeys(("date", "time", "timetz", "timestamp", "timestamptz"), "D"),
}
# What takes bytes as well, and what makes numbers of texts that look so; "bytes" takes nothing else.
_AFFINITIES = {"BLOB": "blob", **dict.fromkeys(("INTEGER", "REAL", "NUMERIC"), "affine")}


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `type` is the name of the base type, `category` that of pg_type.typcategory.

    `needed` has to be said, `generated` is made of other columns, `numbered` an identity that is GENERATED ALWAYS,
    `made_up` has a value by default that no other row has: an identity, a sequence, a UUID; `checks` are texts.
    """

    name: str
    type: str
    category: str
    length: int | None
    needed: bool
    generated: bool
    numbered: bool
    made_up: bool
    labels: Sequence[str]
    checks: Sequence[str]

    @property
    def made_by_server(self) -> bool:
        """Whether ordinary statements cannot give it a value."""
        return self.generated or self.numbered


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`columns` refer to `targets` of another relation, position by position."""

    target: RelationName
    columns: Sequence[str]
    targets: Sequence[str]


@dataclass(frozen=True, slots=True)
class Unique:
    """A valid and immediate unique index over plain columns; `total` if it has no condition."""

    name: str
    total: bool
    primary: bool
    columns: Sequence[str]


@dataclass(frozen=True, slots=True)
class Table:
    """A relation that rows are made for."""

    relation: RelationName
    owner: str
    columns: Mapping[str, Column]
    foreign_keys: Sequence[ForeignKey]
    uniques: Sequence[Unique]
    # Of SQLite: whether rows have a rowid, and the column that is the rowid by another name.
    has_rowid: bool = False
    rowid: str = ""


def table_of(catalogue: Catalogue, relation: RelationName, *, refers: bool = True) -> Table | None:
    """What a catalogue says of a relation; None if it is not there. `refers`: foreign keys are enforced."""
    row = catalogue.relation(relation)
    if row is None:
        return None
    found, domains = catalogue.of("columns", relation), catalogue.of("domain_checks", relation)
    checks = [(each["columns"], each) for each in catalogue.of("constraints", relation) if each["kind"] == "c"]
    checks += [([each["column"]], each) for each in domains]
    return Table(
        relation,
        str(row.get("owner")),
        {
            str(each["name"]): _column(each, [str(check["definition"]) for of, check in checks if each["name"] in of])
            for each in found
        },
        tuple(
            ForeignKey(RelationName(key["to_schema"], key["to_relation"]), key["columns"], key["to_columns"])
            for key in sorted(catalogue.of("references", relation) if refers else (), key=lambda key: str(key["name"]))
        ),
        tuple(
            Unique(each.get("index", each["name"]), each["predicate"] is None, each["primary"], each["columns"])
            for each in catalogue.of("indexes", relation)
            if each["unique"] and each["valid"] and each["immediate"] and None not in each["columns"]
        ),
        has_rowid=row["kind"] == "r" and row.get("without_rowid") is False,
        rowid=next((str(each["name"]) for each in found if each["identity"] and "affinity" in each), ""),
    )


def _column(row: Row, checks: Sequence[str]) -> Column:
    kind, default = str(row["base_type"]).rpartition(".")[2], row["default"]
    if "affinity" in row:
        kind = "bytes" if kind == "bytea" else _AFFINITIES.get(row["affinity"], kind)
    category = "A" if kind.startswith("_") else "R" if kind.endswith("range") else _CATEGORIES.get(kind, "U")
    return Column(
        name=str(row["name"]),
        type=kind,
        category=category,
        length=longest(row),
        needed=bool(row["not_null"]) and default is None and not row["identity"],
        generated=bool(row["generated"]),
        numbered=row["identity"] == "a",
        made_up=bool(row["identity"] or row.get("random") or re.match(MADE_UP, str(default or ""))),
        labels=row["labels"] or (),
        checks=checks,
    )


# How often a set stands where a pattern leaves it open: enough to differ by, and not too long for a column.
_ENOUGH = 16
_HEX = "0123456789abcdef"


def pattern_of(text: str) -> tuple[str, ...]:
    """For each place of a value its possible characters, by a pattern with both anchors; none for another form."""
    read = places(text)
    if not all(each.drawable for each in read):
        return ()
    return tuple(each.characters or _HEX for each in read for _ in range(_times(each)))


def _drawn(place: str, digit: str) -> str:
    """The digit itself where it may stand there, so that keys of several columns stay alike."""
    return digit if digit in place else place[ord(digit) % len(place)]


def _times(place: Place) -> int:
    """How often: what may be left out is, so that another spelling with it can be tried; sets have room to differ."""
    if not place.inside or place.most == 1:
        return place.least
    return max(place.least, min(place.most or _ENOUGH, _ENOUGH))


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes of SQLite, by their hexadecimal digits."""

    hex: str

    @classmethod
    def of(cls, value: str | Blob) -> Blob:
        """The bytes of a text; of bytes these."""
        return value if isinstance(value, Blob) else cls(value.encode().hex())


# From a number to the text of a value.
Shape: TypeAlias = Callable[[int], str | Blob]

# By these a reader of a live table, or of a log, can distinguish these rows from others.
PREFIX = "holdfast-probe-"
_HASHES = (*KEYS, "deployed_artifact_hash")
# {hex:22} in a value of the policy: as many hexadecimal digits, 64 at most.
_SOME_DIGITS = re.compile(r"\{hex:([1-9]|[1-5][0-9]|6[0-4])\}")


def digest_of(number: int) -> str:
    """64 random lower-case hexadecimal digits; there are letters among them."""
    return hashlib.sha256(f"{PREFIX}{number}".encode()).hexdigest()


def sample_shape(value: Any) -> Callable[[int], str]:
    """A value of the policy: in a text, {hex}, {hex:N}, {uuid} and {number} stand for what differs between rows."""
    if not isinstance(value, str):
        return _always(json.dumps(value))

    def filled(number: int) -> str:
        digits, text = digest_of(number), value.replace("{number}", str(number))
        text = text.replace("{hex}", digits).replace("{uuid}", str(uuid.UUID(digits[:32])))
        return _SOME_DIGITS.sub(lambda mark: digits[: int(mark[1])], text)

    return filled


def _always(text: str) -> Callable[[int], str]:
    return lambda _number: text


def _long(number: int) -> str:
    return digest_of(number) + digest_of(-number)


# What a CHECK says of the characters that there are, whatever their number.
_ONLY = re.compile(r"\*?\[\^(?P<none>[^\\\[\]]+)\]\*?|\^\[(?P<all>[^\^\\\[\]]+)\][+*]\$")
_TEXT_LENGTH = len(PREFIX) + 24
# Longer values than this show nothing more.
_LONGEST = 1024
_BY_TYPE: Mapping[str, str] = {
    "uuid": "{uuid}",
    "bytea": "\\x{hex}",
    "bool": "true",
    **dict.fromkeys(("json", "jsonb"), '{"probe": {number}}'),
    "interval": "1 day",
    "xml": "<probe/>",
    **dict.fromkeys(("bit", "varbit"), "1"),
    **dict.fromkeys(("int4range", "int8range", "numrange"), "[{number},{number}]"),
    **dict.fromkeys(("int4multirange", "int8multirange", "nummultirange"), "{[{number},{number}]}"),
}
_BY_CATEGORY: Mapping[str, str] = {"N": "{number}", "A": "{}", "R": "empty"}


def shape_of(word: str, column: Column, operations: tuple[str, ...]) -> Shape:
    """The values of a column by their number. `word` is the contract's for it, or its own name."""
    lists = [words for check in column.checks if (words := admitted(check, column.name)) is not None]
    listed = set(column.labels).union(*lists).intersection(*lists, *([column.labels] if column.labels else []))
    if word == "operation" and (not listed or operations[0] in listed):
        return _always(operations[0])
    if listed:
        # What SQLite keeps of a truth.
        return _always(
            {"true": "1", "false": "0"}.get(min(listed), min(listed)) if column.type == "affine" else min(listed)
        )
    said = sorted(word for check in column.checks for word in literals(check))
    must = [condition for check in column.checks for condition in conditions(check)]
    length, (low, high) = bound(must, column.name), limits(must, column.name)
    if (column.category == "N" or column.type == "affine") and (low, high) != (None, None):
        return _within(low, high)
    if column.type == "bytes" or (column.type == "blob" and "blob" in said):
        return lambda number: Blob(_long(number)[: 2 * (length or 32)])
    if column.type == "bytea" and length is not None:
        return lambda number: f"\\x{_long(number)[: 2 * length]}"
    if column.category == "S" or column.type in ("blob", "affine"):
        return _text(word, column, said, length)
    if column.type in ("inet", "cidr"):
        # Addresses of no one: 198.18.0.0/15 of RFC 2544.
        return lambda number: f"198.{18 + number // 65536 % 2}.{number // 256 % 256}.{number % 256}"
    if column.category == "D":
        # Once for all rows: a row must be the same whenever it is made.
        return _always(datetime.now(UTC).isoformat())
    return sample_shape(_BY_TYPE.get(column.type) or _BY_CATEGORY.get(column.category, "probe"))


def _text(word: str, column: Column, said: Sequence[str], length: int | None) -> Shape:
    found = (_ONLY.fullmatch(text) for text in said)
    only = next((expanded(each["none"] or each["all"]) for each in found if each), "")
    # A text that has signs of other patterns, and is not read as one, is none of GLOB either.
    globs = [of_glob(text) for text in said if "[" in text and not set(text) & set("^$({|+\\")]
    read = filter(None, map(pattern_of, (*said, *globs)))
    # The roomiest: another one may be a list of words.
    pattern = max(read, key=lambda each: math.prod(map(len, each)), default=())
    if pattern and not (only and length):
        return of_pattern(pattern)
    if column.length is not None and column.length < _TEXT_LENGTH:
        length = min(column.length, length or column.length)
    if only or length:
        return of_pattern((only or _HEX,) * min(length or 64, _LONGEST))
    if column.type == "affine" and "text" not in said:
        return sample_shape("{number}")
    if word in _HASHES and (column.length or 64) >= 64:
        return sample_shape("{hex}")
    # Texts of one row are not equal: a table may refuse that.
    return sample_shape(f"{PREFIX}{hashlib.sha256(word.encode()).hexdigest()[:4]}{{hex:20}}")


def _within(low: int | None, high: int | None) -> Callable[[int], str]:
    least = low if low is not None else min(0, high or 0)
    return lambda number: str(least + (number if high is None else number % max(high - least + 1, 1)))


def of_pattern(characters: Sequence[str]) -> Callable[[int], str]:
    """Values whose open places hold the digits of a number, as far as they can."""

    def value(number: int) -> str:
        digits = itertools.cycle(_long(number))
        return "".join(each if len(each) == 1 else _drawn(each, next(digits)) for each in characters)

    return value
