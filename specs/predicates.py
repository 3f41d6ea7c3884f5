"""Whether a value fits a schema, as a plain function: for hot paths, where only what does not fit is worth explaining.

The kinds of subschema that contracts are made of become a few comparisons; whatever else one says is left to
jsonschema, so that the answer is always that of a draft 2020-12 validator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from specs.pattern import pattern
from specs.schema import trusted_validator

Predicate = Callable[[Any], bool]

_DEFINITION = "#/$defs/"
# They say nothing about whether a value fits.
_SILENT = frozenset({"$schema", "$id", "$defs", "title", "description"})
_TEXT = frozenset({"type", "pattern", "minLength", "maxLength"})
_RECORD = frozenset({"type", "required", "properties", "additionalProperties"})


def predicate(schema: bool | Mapping[str, Any]) -> Predicate:  # noqa: FBT001 - a schema may be a boolean
    """The predicate of a schema that `specs.schema.check_schema` has passed."""
    return _Compiler(schema).compile(schema)


class _Compiler:
    def __init__(self, whole: bool | Mapping[str, Any]) -> None:  # noqa: FBT001
        self._definitions: Mapping[str, Any] = whole.get("$defs", {}) if isinstance(whole, Mapping) else {}
        self._within: tuple[str, ...] = ()

    def compile(self, part: Any) -> Predicate:
        says = part.keys() - _SILENT if isinstance(part, Mapping) else frozenset()
        name = str(part["$ref"]).removeprefix(_DEFINITION) if says == {"$ref"} else ""
        if name in self._definitions and name not in self._within:
            return self._named(name)
        if says == {"const"} and isinstance(part["const"], str):
            return _one_of([part["const"]])
        if says == {"enum"} and all(isinstance(value, str) for value in part["enum"]):
            return _one_of(part["enum"])
        if says <= _TEXT and says and part.get("type") == "string":
            return _text(part)
        if says <= _RECORD and says and part.get("type") == "object" and part.get("additionalProperties") is False:
            return self._record(part)
        return self._left_to_jsonschema(part)

    def _named(self, name: str) -> Predicate:
        outside, self._within = self._within, (*self._within, name)
        try:
            return self.compile(self._definitions[name])
        finally:
            self._within = outside

    def _record(self, part: Mapping[str, Any]) -> Predicate:
        required = frozenset(part.get("required", ()))
        members = {name: self.compile(member) for name, member in part.get("properties", {}).items()}

        def fits(value: Any) -> bool:
            return (
                isinstance(value, dict)
                and required <= value.keys()
                and all(name in members and members[name](member) for name, member in value.items())
            )

        return fits

    def _left_to_jsonschema(self, part: Any) -> Predicate:
        whole = {**part, "$defs": self._definitions} if isinstance(part, Mapping) else part
        return trusted_validator(whole).is_valid


def _one_of(texts: list[str]) -> Predicate:
    known = frozenset(texts)
    return lambda value: isinstance(value, str) and value in known


def _text(part: Mapping[str, Any]) -> Predicate:
    shortest, longest = part.get("minLength", 0), part.get("maxLength", sys.maxsize)
    # Not anchored, as JSON Schema has it.
    search = pattern(part.get("pattern", "")).search
    return lambda value: isinstance(value, str) and shortest <= len(value) <= longest and search(value) is not None
