"""`specs/schemas/evidence.schema.json`, made from the types of the lines.

`python -m holdfast.reports.evidence.published > specs/schemas/evidence.schema.json` writes it again.
"""

from __future__ import annotations

import json
from typing import Any

from holdfast.reports.evidence.chain import link_of
from holdfast.reports.evidence.model import LINES
from holdfast.specs.typed import definitions


def evidence_schema() -> dict[str, Any]:
    """The JSON Schema of one line of evidence."""
    parts = definitions(LINES.values())
    lines = {kind: _chained(kind, parts.pop(form.__name__)) for kind, form in LINES.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://holdfast.dev/schemas/evidence.schema.json",
        "title": "run.jsonl: one line of evidence",
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


if __name__ == "__main__":
    print(json.dumps(evidence_schema(), indent=2, ensure_ascii=False))
