"""What a template says of a contract: its methods, and the types of their arguments in each language."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.specs import Contract, Method
from holdfast.specs.leaves import resolved
from holdfast.specs.model import Group

# What a member is, and what it is called in each language.
_KINDS = ("string", "integer", "number", "boolean", "array", "object", "any")
_TYPES: Mapping[str, Sequence[str]] = {
    "python": ("str", "int", "float", "bool", "list[Any]", "dict[str, Any]", "Any"),
    "node": ("string", "number", "number", "boolean", "any[]", "Record<string, any>", "any"),
    "go": ("string", "int64", "float64", "bool", "[]any", "map[string]any", "any"),
    "rust": ("String", "i64", "f64", "bool", "Vec<Value>", "Value", "Value"),
    "java": ("String", "Long", "Double", "Boolean", "List<Object>", "Map<String, Object>", "Object"),
}
LANGUAGES = tuple(_TYPES)


@dataclass(frozen=True, slots=True)
class Member:
    """An argument: its name on the wire, its type, and whether it may be left out."""

    name: str
    type: str
    optional: bool

    @property
    def camel(self) -> str:
        """Its name as a type or an exported field has it."""
        return camel(self.name)


@dataclass(frozen=True, slots=True)
class View:
    """One method as a template sees it."""

    name: str
    group: str
    title: str
    effects: Sequence[str]
    reasons: Sequence[str]
    members: Sequence[Member]
    result: Sequence[str]

    @property
    def camel(self) -> str:
        """Its name as a type."""
        return camel(self.name)

    @property
    def python(self) -> str:
        """Its name as a method of Python has it."""
        return f"{self.name}_" if keyword.iskeyword(self.name) else self.name


def methods_of(contract: Contract, roles: Collection[str]) -> Sequence[Method]:
    """The methods of these roles and of no role, in the order of the contract."""
    return [method for method in contract.methods.values() if method.role is None or method.role in roles]


def missing_of(contract: Contract, roles: Collection[str]) -> Mapping[str, str]:
    """What is not claimed at first: each of these methods, and the roles that are no part of it."""
    others = {name: "not a part of it" for name in contract.roles if name not in roles}
    return {**{method.name: "not there yet" for method in methods_of(contract, roles)}, **others}


def views_of(contract: Contract, language: str, roles: Collection[str]) -> Sequence[View]:
    """Its methods, as a template of this language sees them."""
    return [_view(method, language) for method in methods_of(contract, roles)]


def schemas_of(contract: Contract, roles: Collection[str]) -> Mapping[str, Any]:
    """The schema of each method's arguments, its group and its reasons, for a program that checks what it is sent."""
    return {
        method.name: {
            "group": method.group.value,
            "reasons": list(method.reasons),
            "args": _plain(method.args.schema),
        }
        for method in methods_of(contract, roles)
    }


def _view(method: Method, language: str) -> View:
    shared = method.args.schema.get("$defs", {})
    schema = resolved(method.args.schema, shared)
    required = schema.get("required", ())
    types = dict(zip(_KINDS, _TYPES[language], strict=True))
    members = [
        Member(name, types[_kind(part, shared)], name not in required)
        for name, part in schema.get("properties", {}).items()
    ]
    answer: Mapping[str, Any] = {} if method.result is None else method.result.schema
    result = resolved(answer, answer.get("$defs", {}))
    return View(
        method.name,
        method.group.value,
        method.title,
        method.effects if method.group is Group.OPERATION else (),
        method.reasons,
        members,
        tuple(result.get("properties", {})),
    )


def _kind(part: Any, shared: Mapping[str, Any]) -> str:
    part = resolved(part, shared) if isinstance(part, Mapping) else {}
    kind = part.get("type", "any")
    if "enum" in part and all(isinstance(each, str) for each in part["enum"]):
        return "string"
    return kind if isinstance(kind, str) and kind in _KINDS else "any"


def _plain(part: Any) -> Any:
    """A schema without what is for the kit alone."""
    if isinstance(part, Mapping):
        return {name: _plain(each) for name, each in part.items() if name != "x-leaf"}
    if isinstance(part, list | tuple):
        return [_plain(each) for each in part]
    return part


def camel(name: str) -> str:
    """`hold_at` as `HoldAt`."""
    return "".join(word.capitalize() for word in re.split(r"[_-]", name))
