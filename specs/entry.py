"""What the types of all files share: an entry of a file, and the kinds of text that stand in them.

The published schema of a file is made from its types (`holdfast.specs.publish`) and judges it. A pattern is written
here and judged there, so that it has one dialect (`holdfast.specs.schema`).
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

# The mark of a member that says where an entry stands, such as its key: the loader adds it, no file holds it.
PLACE = "x-place"
# And of a member that the loader adds where a file leaves it out.
FILLED = "x-filled"


class Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping in a file. A member whose default is None may be absent; it is never null."""


def text(pattern: str) -> Meta:
    """A text that fits a pattern of ECMA 262."""
    return Meta(extra_json_schema={"pattern": pattern})


def by_hand(definition: str) -> Meta:
    """A value whose schema is written by hand, in the `$defs` of the published schema."""
    return Meta(extra_json_schema={"$ref": f"#/$defs/{definition}"})


PlacedMeta = Meta(extra_json_schema={PLACE: True})
FilledMeta = Meta(extra_json_schema={FILLED: True})
Placed = Annotated[str, PlacedMeta]
Text = Annotated[str, Meta(min_length=1)]
Title = Annotated[str, Meta(min_length=12)]
Name = Annotated[str, text("^[a-z][a-z0-9_]*$")]
RoleName = Annotated[str, text("^[a-z][a-z0-9]*([_-][a-z0-9]+)*$")]
ValueName = Annotated[str, text("^[a-z_][a-z0-9_]*$")]
Label = Annotated[str, text("^[a-z][a-z0-9_-]*$")]
ContractName = Annotated[str, text("^[a-z][a-z0-9]*(-[a-z0-9]+)*$")]
Version = Annotated[str, text(r"^[0-9]+\.[0-9]+\.[0-9]+$")]
# A dotted path to a member; a number is a place in a list.
MemberPath = Annotated[str, text(r"^[a-z0-9_]+(\.[a-z0-9_]+)*$")]
ReasonName = Annotated[str, text("^[A-Z][A-Z0-9_]*$")]
ClauseId = Annotated[str, text("^[A-Z][A-Z0-9]*(-[A-Za-z0-9.]+)+$")]
CaseId = Annotated[str, text("^[a-z][a-z0-9-]*(/[a-z0-9][a-z0-9-]*){2,3}$")]
# An operation, or a provocation that runs an operator's command and the command's first word.
RowName = Annotated[str, text("^[a-z][a-z0-9_]*( [a-z][a-z0-9-]*)?$")]
# An attack, and where it has one its subject: a leaf, a parameter, a rival or a reason.
CellName = Annotated[str, text("^[a-z]+(-[a-z]+)*( [^ ].*)?$")]
Digest = Annotated[str, text("^sha256:[0-9a-f]{64}$")]
DISTINCT = Meta(extra_json_schema={"uniqueItems": True})
