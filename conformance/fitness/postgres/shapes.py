"""Values by the type of a column and by what its checks mention, each a function of a number.

Equal numbers give equal values. Where a type or a check leaves few values, different numbers give equal values too.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeAlias

from holdfast.conformance.fitness.policy import KEYS
from holdfast.conformance.fitness.postgres.patterns import Pattern, pattern_of
from holdfast.conformance.fitness.postgres.tables import Check, Column

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
