"""Published formats as types: one declaration gives the check of what is read, what is written, and the JSON Schema.

    class Log(Form, tag_field="type", tag="log"):
        worker: Count
        text: str

    written(Log(0, "started"))                              # {"type": "log", "worker": 0, "text": "started"}
    read({"type": "log", "worker": 0, "text": "…"}, Log)    # a Log; InvalidError for anything else

`read` refuses unknown members, missing members and wrong types. `definitions` gives the JSON Schemas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, TypeAlias, TypeVar
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from holdfast.specs.schema import pattern

InvalidError = msgspec.ValidationError
AnyForm = TypeVar("AnyForm")

# `written` leaves values of these types as they are, so that what JSON cannot hold is an error and not a guess.
_AS_THEY_ARE = (datetime, bytes, bytearray, memoryview, Decimal, UUID)
_INSTANT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?Z$"


class Form(Struct, frozen=True, forbid_unknown_fields=True):
    """An object of a published format. Its members are the fields, all of them and no others."""


def matching(text: str) -> Meta:
    """A string in which the pattern `text` of JSON Schema occurs."""
    return Meta(pattern=pattern(text).pattern)


def one_of(*words: str) -> Meta:
    """A string that is one of `words`. The enumeration itself belongs to another package."""
    return Meta(pattern=rf"^(?:{'|'.join(map(re.escape, words))})\Z", extra_json_schema={"enum": list(words)})


def named_by(words: type[Enum]) -> Meta:
    """An object whose names are values of an enumeration."""
    return Meta(extra_json_schema={"propertyNames": {"enum": [word.value for word in words]}})


def about(text: str) -> Meta:
    """What a member is for, in the published schema."""
    return Meta(description=text)


Text: TypeAlias = Annotated[str, Meta(min_length=1)]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Digest: TypeAlias = Annotated[str, matching("^sha256:[0-9a-f]{64}$")]
# In a form it is an aware datetime, in UTC. Only members of the outermost object are instants.
Instant: TypeAlias = Annotated[
    datetime, Meta(tz=True, description="RFC 3339 in UTC.", extra_json_schema={"pattern": _INSTANT})
]


def instant_text(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds. `moment` is aware."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def instant_of(text: str) -> datetime:
    """The instant that a published text names, in UTC. Raises InvalidError."""
    if pattern(_INSTANT).search(text) is None:
        raise InvalidError(f"expected an instant in UTC such as 2026-01-31T12:00:00Z, got {text!r}")
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidError(f"expected an instant that exists, got {text!r}: {error}") from error


def written(form: Struct) -> dict[str, Any]:
    """The form as JSON values, its members in the order of the fields."""
    data: dict[str, Any] = msgspec.to_builtins(form, builtin_types=_AS_THEY_ARE)
    return {name: instant_text(value) if isinstance(value, datetime) else value for name, value in data.items()}


def json_of(form: Struct) -> dict[str, Any]:
    """The form as a reader of its JSON gets it: lists for tuples, copies for everything."""
    data: dict[str, Any] = json.loads(json.dumps(written(form)))
    return data


def read(data: Mapping[str, Any], form: type[AnyForm], *, instants: Iterable[str] = ()) -> AnyForm:
    """The form that JSON values hold; `instants` are the members that are instants. Raises InvalidError."""
    moments = {name: instant_of(data[name]) for name in instants if isinstance(data.get(name), str)}
    return msgspec.convert({**data, **moments}, form)


def definitions(forms: Iterable[type[Struct]]) -> dict[str, Any]:
    """The JSON Schema of each form and of what it refers to, by the name of its class, for `$defs`."""
    _, found = msgspec.json.schema_components(forms, ref_template="#/$defs/{name}")
    return {name: _plain(part) for name, part in found.items()}


def _plain(part: Any) -> Any:
    """A generated schema without what is of use only to msgspec."""
    if isinstance(part, list):
        return [_plain(each) for each in part]
    if not isinstance(part, dict):
        return part
    left_out = {"title", "format", "default", *(("pattern",) if "enum" in part else ())}
    kept: dict[str, Any] = {
        name: {each: _plain(schema) for each, schema in value.items()} if name == "properties" else _plain(value)
        for name, value in part.items()
        if name not in left_out
    }
    if "pattern" in kept:
        kept["pattern"] = kept["pattern"].replace(r"\Z", "$")
    if kept.get("additionalProperties") is False:
        # A default is for who makes the form; what is published has every member.
        kept["required"] = list(kept["properties"])
    return kept
