"""What the leaves of a method's arguments are: each schema of methods.yaml says it in the annotation `x-leaf`.

    target: {type: string, maxLength: 1024, x-leaf: {kind: path, normal: rs4a.normal_target}}

A path names a leaf: `request.canonical_target`; `batch.events.*.seq` is one of the members of an array. After a slash
it goes on inside an encoded text: `envelope/header.msg_id` (`inside` of the leaf `envelope`). An object may be a leaf
beside its members, for what is written around them; `.` is the object of all arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from holdfast.specs.entry import Entry, Text, text
from holdfast.specs.errors import SpecError
from holdfast.specs.schema import Validator

ANNOTATION = "x-leaf"
# The path of the object of all arguments.
ROOT = "."
# The kinds of value; `vectors/neighbours/catalogue.yaml` has near misses of each.
LeafKind = Literal[
    "base64url", "blob", "boolean", "constant", "document", "duration", "hex", "identifier", "instant", "integer",
    "key", "object", "path", "text", "token", "uuid",
]  # fmt: skip
_REFERENCE = "#/$defs/"


class Leaf(Entry, frozen=True):
    """What the annotation says.

    `normal` is the derivation of the value's normal form: two values with one normal form are the same. It raises
    ValueError for what is no value of this kind. Without it each value is its own normal form. `inside` is the member
    of `$defs` that says what an encoded text holds.
    """

    kind: LeafKind
    normal: Annotated[str, text(r"^[a-z][a-z0-9]*\.[a-z][a-z0-9_]*$")] | None = None
    inside: Text | None = None


@dataclass(frozen=True, slots=True)
class SchemaLeaf:
    """One leaf of a schema: its path, what it is (None: it does not say), and its own schema."""

    path: str
    leaf: Leaf | None
    schema: Mapping[str, Any]

    @property
    def encoded(self) -> bool:
        """Whether it lies inside an encoded text."""
        return "/" in self.path

    def validator(self) -> Validator:
        """Whether a value fits this leaf alone."""
        return Validator(self.schema)


def leaves(schema: Mapping[str, Any]) -> tuple[SchemaLeaf, ...]:
    """Every leaf of a schema, `$defs` included. Raises SpecError for a malformed annotation."""
    return tuple(_walk(schema, schema.get("$defs", {}), ""))


def _walk(schema: Any, shared: Mapping[str, Any], path: str) -> Iterator[SchemaLeaf]:
    if not isinstance(schema, Mapping):
        return
    whole = resolved(schema, shared, path)
    leaf = _leaf(whole, path)
    nested = [(name, member) for name, member in whole.get("properties", {}).items()]
    nested += [("*", whole[more]) for more in ("items", "additionalProperties") if isinstance(whole.get(more), Mapping)]
    if leaf is not None or (path and not nested):
        # An encoded document is a text, regardless of the schema of its content.
        document = leaf is not None and leaf.kind == "document"
        yield SchemaLeaf(path or ROOT, leaf, {"type": "string"} if document else {**whole, "$defs": shared})
    for name, member in nested:
        yield from _walk(member, shared, f"{path}{_joint(path)}{name}")
    if leaf is not None and leaf.inside is not None:
        yield from _walk({"$ref": f"{_REFERENCE}{leaf.inside}"}, shared, f"{path}/")


def _joint(path: str) -> str:
    return "" if not path or path.endswith("/") else "."


def resolved(schema: Mapping[str, Any], shared: Mapping[str, Any], path: str = "") -> Mapping[str, Any]:
    """A schema after its references, with what stands beside them. Raises SpecError for one that leads nowhere."""
    while "$ref" in schema:
        name = schema["$ref"].removeprefix(_REFERENCE)
        if name not in shared:
            raise SpecError(f"leaf {path}: {schema['$ref']} is not among the $defs of methods.yaml")
        schema = {**shared[name], **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def _leaf(schema: Mapping[str, Any], path: str) -> Leaf | None:
    if ANNOTATION not in schema:
        return None
    try:
        return msgspec.convert(schema[ANNOTATION], Leaf)
    except msgspec.ValidationError as error:
        raise SpecError(f"leaf {path}: {ANNOTATION} {schema[ANNOTATION]!r}: {error}") from error
