"""The place of a line in the chain: the members that the writer adds to it; and the schema of a line with them.

`python -c "from holdfast.reports.evidence import chain; print(chain.published())"` prints what is published of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Struct

from holdfast.reports.evidence.model import LINES
from holdfast.specs import strictjson
from holdfast.specs.typed import Digest, about, definitions


class First(Struct, frozen=True):
    """The header has no line before it."""

    prev: None


class Link(Struct, frozen=True):
    """Every other line names the SHA-256 of the raw bytes of the line before, without its newline."""

    prev: Digest


class Seal(Link, frozen=True):
    """The footer has no line after it, so that it carries a digest of its own."""

    seal: Annotated[Digest, about("Of the RFC 8785 form of this line without `seal`.")]


LINKS: Mapping[str, type[First | Link]] = {"header": First, "footer": Seal}


def link_of(kind: str) -> type[First | Link]:
    """The members that the chain adds to a line of this type."""
    return LINKS.get(kind, Link)


def unlinked(line: Mapping[str, Any]) -> dict[str, Any]:
    """A line without its place in the chain."""
    added = link_of(line["type"]).__struct_fields__
    return {name: value for name, value in line.items() if name not in added}


def sealed(line: Mapping[str, Any]) -> dict[str, Any]:
    """A footer with its `prev`, and the digest of all of it as `seal`: so no field of the last line is free either."""
    bare = {name: value for name, value in line.items() if name != "seal"}
    return {**bare, "seal": strictjson.digest(bare)}


def evidence_schema() -> dict[str, Any]:
    """The JSON Schema of one line of evidence."""
    parts = definitions(LINES.values())
    lines = {kind: _chained(kind, parts.pop(form.__name__)) for kind, form in LINES.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://holdfast.dev/schemas/evidence.schema.json",
        "title": "run.jsonl.zst: one line of evidence",
        "description": "`prev` is the SHA-256 of the raw bytes of the line before, without its newline.",
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"enum": list(lines)}},
        "allOf": [
            {
                "if": {"properties": {"type": {"const": kind}}, "required": ["type"]},
                "then": {"$ref": f"#/$defs/{kind}"},
            }
            for kind in lines
        ],
        "$defs": {**lines, **parts},
    }


def _chained(kind: str, line: dict[str, Any]) -> dict[str, Any]:
    link = link_of(kind)
    added = definitions([link])[link.__name__]["properties"]
    return {
        **line,
        "properties": {**line["properties"], **added},
        "required": [*line["required"], *added],
    }


def published() -> str:
    """The text of the published schema."""
    return json.dumps(evidence_schema(), indent=2, ensure_ascii=False)
