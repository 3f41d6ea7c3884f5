"""The published schemas of a contract's files, made from their types: `python -m holdfast.specs.publish` writes them.

Definitions whose names begin with a capital come from types. The others are written by hand in the published schema:
they are of values that stay as they are written, such as the steps of a case.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.specs.automatic import Automatic
from holdfast.specs.entry import FILLED, PLACE, Entry
from holdfast.specs.faults import FaultFile
from holdfast.specs.matrix import Matrix
from holdfast.specs.model import CaseFile, ContractFile, FormFile, MethodFile
from holdfast.specs.mutants import Mutants
from holdfast.specs.neighbours import NeighbourFile
from holdfast.specs.schema import SCHEMAS, published_schema
from holdfast.specs.short import LISTS, PLACES, STEPS

FILES: Mapping[str, type[Entry]] = {
    "contract": ContractFile,
    "methods": MethodFile,
    "cases": CaseFile,
    "forms": FormFile,
    "faults": FaultFile,
    "neighbours": NeighbourFile,
    "planted": Mutants,
    "automatic": Automatic,
    "matrix": Matrix,
}

# What `holdfast.specs.short` writes in full: an entry that uses a form, or stands for several.
_SHORT: Mapping[str, Any] = {
    "full": {"not": {"anyOf": [{"type": "string"}, {"required": ["use"]}, {"required": ["each"]}]}},
    "short": {
        "type": "object",
        "properties": {
            "use": {"type": "string", "description": "The name of a form; the other members fill its holes."},
            "each": {
                "type": "array",
                "items": {"type": "object"},
                "minItems": 1,
                "description": "What differs between the entries for which this one stands.",
            },
        },
    },
}


def schema_of(name: str) -> dict[str, Any]:
    """The schema of the file `name`: what its types say, and the definitions that are written by hand."""
    file = FILES[name]
    made = msgspec.json.schema(file, schema_hook=lambda _: {"type": "object"})["$defs"]
    definitions = {key: _published(value) for key, value in sorted(made.items())}
    root = definitions.pop(file.__name__)
    by_hand = {key: value for key, value in published_schema(name)["$defs"].items() if key[0].islower()}
    definitions = by_hand | dict(_SHORT) | definitions
    said = json.dumps([root, definitions])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://holdfast.dev/schemas/{name}.schema.json",
        "title": root.pop("description").rstrip("."),
        **root,
        "$defs": {key: value for key, value in definitions.items() if f'#/$defs/{key}"' in said},
    }


def _published(made: Any) -> Any:
    """A schema without the names of classes, and without what an entry does not say itself."""
    if isinstance(made, list | tuple):
        return [_published(part) for part in made]
    if isinstance(made, str):
        return inspect.cleandoc(made)
    if not isinstance(made, dict):
        return made
    if str(made.get("$ref", "")).removeprefix("#/$defs/")[:1].islower():
        # What is written by hand says itself of which type it is.
        return {key: _published(made[key]) for key in ("description", "$ref") if key in made}
    published = {key: _published(value) for key, value in made.items() if key not in ("title", FILLED)}
    if "properties" in made:
        members = {name: part for name, part in made["properties"].items() if PLACE not in part}
        published["properties"] = {name: _short(name, _published(_absent(part))) for name, part in members.items()}
        published["required"] = [name for name in made["required"] if FILLED not in members.get(name, {FILLED: 0})]
    return published


def _short(name: str, member: dict[str, Any]) -> dict[str, Any]:
    """A member whose entries may be short, as the loader takes it before they are in full."""
    inner = "items" if name in LISTS else "additionalProperties" if name in PLACES else ""
    if inner not in member:
        return member
    form: Any = {"$ref": "#/$defs/short"}
    if name in STEPS:
        form = {"anyOf": [form, {"type": "string", "description": "The name of a form."}]}
    return {**member, inner: {"if": {"$ref": "#/$defs/full"}, "then": member[inner], "else": form}}


def _absent(member: dict[str, Any]) -> dict[str, Any]:
    """A member that may be absent, without the null that stands for its absence."""
    if member.get("default", ...) is not None:
        return member
    rest = {key: value for key, value in member.items() if key not in ("default", "anyOf")}
    choices = [choice for choice in member.get("anyOf", ()) if choice != {"type": "null"}]
    return rest | (choices[0] if len(choices) == 1 else {"anyOf": choices} if choices else {})


def write() -> None:
    """Write each of the schemas to its file."""
    for name in FILES:
        text = json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n"
        (SCHEMAS / f"{name}.schema.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
