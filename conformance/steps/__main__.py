"""Writes the published schemas of steps again, from their parts: `python -m holdfast.conformance.steps [FOLDER]`.

In `cases.schema.json` the kinds of steps, in `inspection.schema.json` the values that they report.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.conformance.steps import kinds
from holdfast.specs.schema import published_schema

_PREFIX = "step_"


def composed() -> dict[str, dict[str, Any]]:
    """The published schemas by their names, with the parts of steps as their files have them."""
    return {"cases": _cases(), "inspection": _inspection()}


def _cases() -> dict[str, Any]:
    schema = dict(published_schema("cases"))
    others = {name: part for name, part in schema["$defs"].items() if not name.startswith(_PREFIX) and name != "step"}
    # What `holdfast.specs.consistency` checks of such a step beyond its form.
    facts = {name: {f"x-{fact}": said for fact, said in kind.facts.items()} for name, kind in kinds().items()}
    steps = {f"{_PREFIX}{name}": {**kind.form, **facts[name]} for name, kind in kinds().items()}
    step = {
        "type": "object",
        "oneOf": [{"required": [name]} for name in kinds()],
        "dependentSchemas": {name: {"$ref": f"#/$defs/{_PREFIX}{name}"} for name in kinds()},
    }
    return {**schema, "$defs": {**steps, "step": step, **others}}


def _inspection() -> dict[str, Any]:
    reports = {name: kind.report for name, kind in kinds().items() if kind.report is not None}
    definitions = {name: part for report in reports.values() for name, part in report.definitions.items()}
    values = {name: report.schema for name, report in reports.items()}
    return {**published_schema("inspection"), "$defs": {**definitions, **values}}


def text_of(schema: Mapping[str, Any]) -> str:
    """A schema as its file has it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main(folder: Path) -> None:
    """Write each schema into the folder."""
    for name, schema in composed().items():
        (folder / f"{name}.schema.json").write_text(text_of(schema), encoding="utf-8")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(Path(given[0]) if given else Path(__file__).resolve().parents[2] / "specs" / "schemas")
