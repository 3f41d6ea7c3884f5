"""The parts of the schemas of steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

METHOD: Schema = {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"}
LABEL: Schema = {"type": "string", "pattern": "^[a-z][a-z0-9_-]*$"}
NAME = "^[a-z_][a-z0-9_]*$"
WORKER: Schema = {"type": "integer", "minimum": 0, "maximum": 63}
TEXT: Schema = {"type": "string", "minLength": 1}
PATH: Schema = {"type": "string", "minLength": 1, "maxLength": 4096}
ANYTHING: Schema = {}
ELSE: Schema = {"enum": ["fail_open", "state_leak", "lost_durability", "wrong_reason", "over_refusal"]}
CONFIG: Schema = {
    "type": "object",
    "additionalProperties": {"type": "string"},
    "propertyNames": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"},
}
EXPECT: Schema = {"$ref": "#/$defs/expect"}
# The members that every step may have, of an adapter and of the harness itself.
LABELLED: Mapping[str, Schema] = {"label": LABEL}
JUDGED: Mapping[str, Schema] = {**LABELLED, "else": ELSE}
OF_A_WORKER: Mapping[str, Schema] = {"worker": WORKER, **JUDGED}
BIND: Schema = {
    "type": "object",
    "additionalProperties": {"type": "string", "minLength": 1},
    "propertyNames": {"pattern": NAME},
}
# A step whose record reports a value.
REPORTED: Mapping[str, Schema] = {
    "bind": {
        "type": "object",
        "additionalProperties": {"type": "string", "pattern": "^value(?:\\.|$)"},
        "propertyNames": {"pattern": NAME},
    },
    "expect": {"$ref": "#/$defs/expect_seen"},
    **JUDGED,
}


def form(properties: Mapping[str, Schema], required: tuple[str, ...], **more: Any) -> Schema:
    """The schema of a step with these members."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: dict(part) for name, part in properties.items()},
        "required": list(required),
        **more,
    }


def one_of(*names: str) -> list[Schema]:
    """Exactly one of these members."""
    return [{"required": [name]} for name in names]


def value_form(**properties: Schema) -> Schema:
    """The schema of a value that a record reports; every member is there."""
    return form(properties, tuple(properties))
