"""Whether a value fits a schema, as a plain function: for hot paths, where only what does not fit is worth explaining.

The kinds of subschema that contracts are made of become a few comparisons; whatever else one says is left to
jsonschema, so that the answer is always that of a draft 2020-12 validator.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from holdfast.specs.pattern import pattern

Predicate = Callable[[Any], bool]

_DEFINITION = "#/$defs/"
# They say nothing about whether a value fits.
_SILENT = frozenset({"$schema", "$id", "$defs", "title", "description"})
_TEXT = frozenset({"type", "pattern", "minLength", "maxLength"})
_NUMBER = frozenset({"type", "minimum", "maximum"})
_LIST = frozenset({"type", "items", "minItems", "maxItems", "uniqueItems"})
_RECORD = frozenset(
    {"type", "required", "properties", "additionalProperties", "propertyNames", "minProperties", "maxProperties"}
)
# Each of them asks for something by itself, whatever stands beside it.
_COMBINING = frozenset({"anyOf", "oneOf", "dependentSchemas", "if", "then", "else"})
_NOTHING = frozenset({"null", "boolean"})


def compiled(schema: bool | Mapping[str, Any], *, otherwise: Callable[[Any], Predicate]) -> Predicate:  # noqa: FBT001
    """The predicate of a schema that `holdfast.specs.schema.check_schema` has passed.

    `otherwise` makes that of a part which is not of the kinds that are known here.
    """
    return _Compiler(schema, otherwise).compile(schema)


# These ask what their neighbours have seen.
_LOOKING_BESIDE = frozenset({"unevaluatedProperties", "unevaluatedItems"})


class _Compiler:
    def __init__(self, whole: bool | Mapping[str, Any], otherwise: Callable[[Any], Predicate]) -> None:  # noqa: FBT001
        self._definitions: Mapping[str, Any] = whole.get("$defs", {}) if isinstance(whole, Mapping) else {}
        self._otherwise = otherwise
        self._within: tuple[str, ...] = ()

    def compile(self, part: Any) -> Predicate:
        if isinstance(part, bool) or not part.keys() - _SILENT:
            return (lambda _: part) if isinstance(part, bool) else (lambda _: True)
        says = part.keys() - _SILENT
        name = str(part["$ref"]).removeprefix(_DEFINITION) if says == {"$ref"} else ""
        if name in self._definitions and name not in self._within:
            return self._named(name)
        if says == {"const"} and isinstance(part["const"], str):
            return _one_of([part["const"]])
        if says == {"enum"} and all(isinstance(value, str) for value in part["enum"]):
            return _one_of(part["enum"])
        if says & _COMBINING and not says & _LOOKING_BESIDE:
            return self._combined(part)
        if says == {"required"}:
            named = frozenset(part["required"])
            return lambda value: not isinstance(value, dict) or named <= value.keys()
        if says == {"pattern"}:
            search = pattern(part["pattern"]).search
            return lambda value: not isinstance(value, str) or search(value) is not None
        kinds = part.get("type")
        if isinstance(kinds, list) and kinds:
            several = [self._of_type({**part, "type": kind}, says) for kind in kinds]
            if None not in several:
                return lambda value: any(fits(value) for fits in several if fits is not None)
        found = self._of_type(part, says) if isinstance(kinds, str) else None
        return self._left(part) if found is None else found

    def _of_type(self, part: Mapping[str, Any], says: Collection[str]) -> Predicate | None:
        """That of a part with one type; None if it says more than is known here."""
        kind, said = part["type"], frozenset(says)
        if kind == "string" and said <= _TEXT:
            return _text(part)
        if kind in {"integer", "number"} and said <= _NUMBER:
            return _number(part)
        if kind in _NOTHING and said == {"type"}:
            return _is_null if kind == "null" else _is_boolean
        if kind == "array" and said <= _LIST:
            return self._list(part)
        if kind == "object" and said <= _RECORD:
            return self._record(part)
        return None

    def _combined(self, part: Mapping[str, Any]) -> Predicate:
        parts = [self.compile({word: said for word, said in part.items() if word not in _COMBINING})]
        if "anyOf" in part:
            parts.append(self._some_of(part["anyOf"], any))
        if "oneOf" in part:
            parts.append(self._some_of(part["oneOf"], lambda fitting: sum(fitting) == 1))
        if "dependentSchemas" in part:
            parts.append(self._depending(part["dependentSchemas"]))
        if "if" in part:
            condition, then, other = (self.compile(part.get(word, True)) for word in ("if", "then", "else"))
            parts.append(lambda value: then(value) if condition(value) else other(value))
        return lambda value: all(fits(value) for fits in parts)

    def _some_of(self, choices: Sequence[Any], how: Callable[[Iterable[bool]], bool]) -> Predicate:
        fitting = [self.compile(choice) for choice in choices]
        return lambda value: how(fits(value) for fits in fitting)

    def _depending(self, choices: Mapping[str, Any]) -> Predicate:
        wanted = {name: self.compile(choice) for name, choice in choices.items()}
        return lambda value: not isinstance(value, dict) or all(wanted[name](value) for name in value if name in wanted)

    def _named(self, name: str) -> Predicate:
        outside, self._within = self._within, (*self._within, name)
        try:
            return self.compile(self._definitions[name])
        finally:
            self._within = outside

    def _list(self, part: Mapping[str, Any]) -> Predicate:
        element = self.compile(part.get("items", True))
        least, most = part.get("minItems", 0), part.get("maxItems", sys.maxsize)
        distinct = self._distinct() if part.get("uniqueItems", False) else None

        def fits(value: Any) -> bool:
            return (
                isinstance(value, list)
                and least <= len(value) <= most
                and all(map(element, value))
                and (distinct is None or distinct(value))
            )

        return fits

    def _distinct(self) -> Predicate:
        @cache
        def otherwise() -> Predicate:
            return self._otherwise({"uniqueItems": True})

        def fits(value: list[Any]) -> bool:
            # Equality of anything but text is JSON's, in which 1 is 1.0 and not true.
            if all(isinstance(member, str) for member in value):
                return len(set(value)) == len(value)
            return otherwise()(value)

        return fits

    def _record(self, part: Mapping[str, Any]) -> Predicate:
        required = frozenset(part.get("required", ()))
        members = {name: self.compile(member) for name, member in part.get("properties", {}).items()}
        other = self.compile(part.get("additionalProperties", True))
        named = self.compile(part.get("propertyNames", True))
        least, most = part.get("minProperties", 0), part.get("maxProperties", sys.maxsize)

        def fits(value: Any) -> bool:
            return (
                isinstance(value, dict)
                and least <= len(value) <= most
                and required <= value.keys()
                and all(map(named, value))
                and all(members.get(name, other)(member) for name, member in value.items())
            )

        return fits

    def _left(self, part: Any) -> Predicate:
        return self._otherwise({**part, "$defs": self._definitions})


def _one_of(texts: list[str]) -> Predicate:
    known = frozenset(texts)
    return lambda value: isinstance(value, str) and value in known


def _text(part: Mapping[str, Any]) -> Predicate:
    shortest, longest = part.get("minLength", 0), part.get("maxLength", sys.maxsize)
    # Not anchored, as JSON Schema has it.
    search = pattern(part.get("pattern", "")).search
    return lambda value: isinstance(value, str) and shortest <= len(value) <= longest and search(value) is not None


def _number(part: Mapping[str, Any]) -> Predicate:
    least, most = part.get("minimum", -math.inf), part.get("maximum", math.inf)
    whole = part["type"] == "integer"

    def fits(value: Any) -> bool:
        # In JSON Schema 1.0 is an integer, and true is no number.
        counts = isinstance(value, int) or (isinstance(value, float) and (not whole or value.is_integer()))
        return counts and not isinstance(value, bool) and bool(least <= value <= most)

    return fits


def _is_null(value: Any) -> bool:
    return value is None


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)
