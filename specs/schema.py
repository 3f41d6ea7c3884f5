"""The published JSON Schemas, by name, and one way to say why a value does not fit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from specs.errors import SpecError
from specs.pattern import found
from specs.predicates import Predicate, compiled


def _fits_pattern(_validator: Validator, operand: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not found(operand, value):
        yield ValidationError(f"{value!r} does not match {operand!r}")


# jsonschema hands patterns to Python as they are, and Python's `$` lets a newline pass at the end.
_Validator = extend(Draft202012Validator, {"pattern": _fits_pattern})  # type: ignore[no-untyped-call]


@cache
def published_schema(name: str) -> Mapping[str, Any]:
    """The schema `specs/schemas/NAME.schema.json`."""
    resource = files("specs").joinpath("schemas", f"{name}.schema.json")
    if not resource.is_file():
        raise SpecError(f"no published schema is called {name!r}")
    loaded: Mapping[str, Any] = json.loads(resource.read_text(encoding="utf-8"))
    return loaded


@cache
def published_validator(name: str) -> Validator:
    """A compiled validator of the published schema `name`."""
    # That each of them is a schema is a test of the kit's own, not something to find out at every start.
    return trusted_validator(published_schema(name))


def compile_schema(schema: Mapping[str, Any], *, name: str) -> Validator:
    """Compile a draft 2020-12 schema. Raises SpecError when it is not one."""
    check_schema(schema, name=name)
    return trusted_validator(schema)


def check_schema(schema: Mapping[str, Any], *, name: str) -> None:
    """Raise SpecError if `schema` is no draft 2020-12 schema."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        place = "/".join(str(part) for part in error.absolute_path)
        raise SpecError(f"{name}: not a JSON Schema: at {place}: {error.message}") from error


def trusted_validator(schema: Mapping[str, Any]) -> Validator:
    """A validator of a schema that `check_schema` has passed already, on its own or as part of a larger one."""
    validator: Validator = _Validator(schema)
    return validator


class Variants:
    """A published schema that says, for each value of one member, what the whole object looks like.

    Such a schema tries every `if` on every object. Here the branch is looked up instead, so that a message on a hot
    path costs one branch; whatever does not fit is explained by the schema as it is published.
    """

    def __init__(self, schema: Mapping[str, Any], *, name: str) -> None:
        """Raises SpecError if `schema` says anything beyond its branches."""
        self._whole = trusted_validator(schema)
        self._required = frozenset(schema.get("required", ()))
        self._branches: dict[str, Predicate] = {}
        members = tuple(schema.get("properties", ()))
        beyond = schema.keys() - {"$schema", "$id", "title", "description", "type", "required", "properties", "allOf"}
        if schema.get("type") != "object" or len(members) != 1 or beyond or members[0] not in self._required:
            raise SpecError(f"{name}: expected an object told apart by one required member, and nothing else")
        self._member = members[0]
        for branch in schema["allOf"]:
            condition = branch["if"]
            if branch.keys() != {"if", "then"} or condition["properties"].keys() != {self._member}:
                raise SpecError(f"{name}: expected each part of allOf to look at {self._member} alone")
            self._branches[condition["properties"][self._member]["const"]] = predicate(
                {"type": "object", **branch["then"]}
            )
        if schema["properties"][self._member] != {"enum": list(self._branches)}:
            raise SpecError(f"{name}: expected a branch for each value of {self._member}, in order")

    def explain(self, value: Any) -> str | None:
        """Like the function of that name: why `value` does not fit; None if it fits."""
        if isinstance(value, dict) and self._required <= value.keys():
            kind = value[self._member]
            branch = self._branches.get(kind) if isinstance(kind, str) else None
            if branch is not None and branch(value):
                return None
        return explain(self._whole, value)


@cache
def published_variants(name: str) -> Variants:
    """The variants of the published schema `name`."""
    return Variants(published_schema(name), name=f"{name}.schema.json")


def predicate(schema: bool | Mapping[str, Any]) -> Predicate:  # noqa: FBT001 - a schema may be a boolean
    """Whether a value fits a schema that `check_schema` has passed, as a plain function."""
    return compiled(schema, otherwise=lambda part: trusted_validator(part).is_valid)


def explain(validator: Validator, value: Any) -> str | None:
    """Why `value` does not fit, in one sentence with its place; None if it fits."""
    if _quick(_Same(validator))(value):
        return None
    error = best_match(validator.iter_errors(value))
    return None if error is None else _sentence(error)


class _Same:
    """A validator as a key: jsonschema's compare by content and have no hash."""

    __slots__ = ("validator",)

    def __init__(self, validator: Validator) -> None:
        self.validator = validator

    def __hash__(self) -> int:
        return id(self.validator)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.validator is self.validator


@lru_cache(maxsize=1024)
def _quick(same: _Same) -> Predicate:
    # Most values fit, and jsonschema takes a hundred times as long to say so.
    schema: Mapping[str, Any] = same.validator.schema  # type: ignore[assignment]
    return predicate(schema)


def _sentence(error: ValidationError) -> str:
    place = "/".join(str(part) for part in error.absolute_path) or "the whole value"
    message = error.message if len(error.message) <= 300 else error.message[:300] + "…"
    return f"at {place}: {message}"
