"""The published JSON Schemas, by name, and one way to say why a value does not fit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from holdfast.specs.errors import SpecError
from holdfast.specs.predicates import Predicate, compiled


class Validator:
    """A draft 2020-12 schema that `check_schema` has passed. Nothing is compiled before the first value comes."""

    __slots__ = ("_predicate", "schema")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """`schema` is not changed any more."""
        self.schema = schema
        self._predicate: Predicate | None = None

    def is_valid(self, value: Any) -> bool:
        """Whether `value` fits."""
        if self._predicate is None:
            self._predicate = predicate(self.schema)
        return self._predicate(value)


@cache
def published_schema(name: str) -> Mapping[str, Any]:
    """The schema `specs/schemas/NAME.schema.json`."""
    resource = files("holdfast.specs").joinpath("schemas", f"{name}.schema.json")
    if not resource.is_file():
        raise SpecError(f"no published schema is called {name!r}")
    loaded: Mapping[str, Any] = json.loads(resource.read_text(encoding="utf-8"))
    return loaded


@cache
def published_validator(name: str) -> Validator:
    """The validator of the published schema `name`."""
    # That each of them is a schema is a test of the kit's own, not something to find out at every start.
    return trusted_validator(published_schema(name))


def compile_schema(schema: Mapping[str, Any], *, name: str) -> Validator:
    """Compile a draft 2020-12 schema. Raises SpecError when it is not one."""
    check_schema(schema, name=name)
    return trusted_validator(schema)


def check_schema(schema: Mapping[str, Any], *, name: str) -> None:
    """Raise SpecError if `schema` is no draft 2020-12 schema."""
    from holdfast.specs import draft

    draft.check(schema, name=name)


def trusted_validator(schema: Mapping[str, Any]) -> Validator:
    """A validator of a schema that `check_schema` has passed already, on its own or as part of a larger one."""
    return Validator(schema)


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
    return compiled(schema, otherwise=_fits)


def _fits(part: Any) -> Predicate:
    from holdfast.specs.draft import Draft

    return Draft(part).fits


def explain(validator: Validator, value: Any) -> str | None:
    """Why `value` does not fit, in one sentence with its place; None if it fits."""
    # Most values fit, and jsonschema takes a hundred times as long to say so.
    if validator.is_valid(value):
        return None
    from holdfast.specs.draft import Draft

    return Draft(validator.schema).problem(value)
