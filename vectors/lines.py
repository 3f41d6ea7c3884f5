"""Files of records: on every line a JSON object that fits a published schema and has an id of its own."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Protocol, TypeVar

from holdfast.specs.errors import SpecError, StrictJsonError
from holdfast.specs.loader import load_terms
from holdfast.specs.schema import explain, published_schema, published_validator
from holdfast.specs.strictjson import loads

# Of a line that is spelt otherwise, so much is shown of how it should be.
_SHOWN = 60
_NONE = object()


class Identified(Protocol):
    """What has an id."""

    @property
    def id(self) -> str:
        """The id."""


class Termed(Identified, Protocol):
    """What is about a clause of a contract."""

    @property
    def contract(self) -> str:
        """The contract."""

    @property
    def clause(self) -> str:
        """The clause."""


_Record = TypeVar("_Record")
_IdentifiedRecord = TypeVar("_IdentifiedRecord", bound=Identified)


def read_lines(
    data: bytes, make: Callable[[Mapping[str, Any], str], _Record], *, schema: str, place: str
) -> list[_Record]:
    """What `make` gives for the object and the place of each line. `place` is the file's name in errors (SpecError)."""
    if not data.endswith(b"\n"):
        raise SpecError(f"{place}: expected every line to end with a line feed; the last one is cut off")
    places = ((line, f"{place}:{number}") for number, line in enumerate(data[:-1].split(b"\n"), start=1))
    return [make(_object(line, schema, where), where) for line, where in places]


def _object(line: bytes, schema: str, place: str) -> Mapping[str, Any]:
    try:
        raw: Any = loads(line)
    except StrictJsonError as error:
        raise SpecError(f"{place}: expected one JSON object, found {error}") from error
    problem = explain(published_validator(schema), raw)
    if problem is not None:
        raise SpecError(f"{place}: {problem}")
    found: Mapping[str, Any] = raw
    return found


def read_json(data: bytes | None, folder: str, name: str, schema: str | None = None) -> Any:
    """The value of a file of one JSON value, which is the committed one unless its bytes are given (SpecError)."""
    place = f"vectors/{folder}/data/{name}"
    if data is None:
        resource = files("holdfast.vectors").joinpath(folder, "data", name)
        if not resource.is_file():
            raise SpecError(f"expected {place}, found nothing; reinstall holdfast")
        data = resource.read_bytes()
    try:
        raw = loads(data)
    except StrictJsonError as error:
        raise SpecError(f"{place}: expected JSON, found {error}") from error
    problem = None if schema is None else explain(published_validator(schema), raw)
    if problem is not None:
        raise SpecError(f"{place}: {problem}")
    return raw


def bytes_of(text: str, place: str) -> bytes:
    """The bytes that a member spells in hexadecimal."""
    # `fromhex` skips blanks. The schemas allow none; this is the second lock.
    if text.strip() != text:
        raise SpecError(f"{place}: expected hexadecimal digits only, found a blank beside them")
    return bytes.fromhex(text)


def with_own_ids(records: Sequence[_IdentifiedRecord], place: str) -> tuple[_IdentifiedRecord, ...]:
    """The records as they are. Raises SpecError if two have one id."""
    seen: set[str] = set()
    for record in records:
        if record.id in seen:
            raise SpecError(f"{place}: the id {record.id} stands there twice; ids are unique")
        seen.add(record.id)
    return tuple(records)


def repeated_ids(records: Iterable[Identified]) -> Iterator[str]:
    """A linter's problem for every id that stands there more than once."""
    for identifier, count in Counter(record.id for record in records).items():
        if count > 1:
            yield f"{identifier}: stands there {count} times; ids are unique"


def wrong_terms(record: Termed, which: str, derivation: str, reasons: Iterable[str] = ()) -> Iterator[str]:
    """A linter's problem for a clause or a reason that its contract does not have, and for a derivation of another."""
    try:
        contract = load_terms(record.contract)
    except SpecError as error:
        yield f"{record.id}: {error}"
        return
    if record.clause not in contract.clauses:
        yield f"{record.id}: is about clause {record.clause}, which contract {record.contract} does not have"
    word = derivation.partition(".")[0]
    if not (record.id.startswith(f"{word}-") and record.contract.startswith(f"{word}-")):
        yield f"{record.id}: {which}, so its id and its contract begin with {word}-"
    for reason in reasons:
        if reason not in contract.reasons:
            yield f"{record.id}: is refused with {reason}, which contract {record.contract} does not know"


def unlike_others(data: bytes, *, schema: str, place: str) -> Iterator[str]:
    """A linter's problem for every line that is not spelt like all others. Raises SpecError for what is no JSON."""
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        raw = _object(line, schema, f"{place}:{number}")
        # Escaped, so that a note about a noncharacter can be read in any editor.
        due = json.dumps(_in_order(raw, published_schema(schema)), ensure_ascii=True).encode("ascii") + b"\n"
        if line != due:
            at = next((at for at, (one, other) in enumerate(zip(line, due, strict=False)) if one != other), len(line))
            yield f"{place}:{number}: expected the spelling of all lines, from byte {at} on {due[at : at + _SHOWN]!r}"


def _in_order(value: Any, schema: Mapping[str, Any]) -> Any:
    members = schema.get("properties", {})
    return {name: _in_order(value[name], members[name]) for name in members} if members else value


def one_change(one: Any, other: Any) -> bool:
    """Whether two JSON values differ in one member or element, at whatever depth."""
    if isinstance(one, dict) and isinstance(other, dict):
        differing = [name for name in one.keys() | other.keys() if one.get(name, _NONE) != other.get(name, _NONE)]
        if len(differing) == 1 and differing[0] in one.keys() & other.keys():
            return one_change(one[differing[0]], other[differing[0]])
        return len(differing) == 1
    return bool(one != other)
