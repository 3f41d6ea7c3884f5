"""Protocol v1 on the wire: encodes requests, reads answers, and names the ways in which an answer is invalid.

The table of messages is in `docs/adapter-protocol.md`; the schemas are `specs/schemas/protocol-*.schema.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.conformance.verdict import FailureMode
from holdfast.specs import schema, strictjson
from holdfast.specs.errors import StrictJsonError

PROTOCOL = 1
# One line, with its newline. A larger answer is garbage: a reader must be able to limit its memory.
MAX_LINE = 1024 * 1024
# Evidence wraps an answer in a line, and later requests contain parts of it. Strict JSON limits the depth of all these.
# Half of that limit leaves room.
MAX_DEPTH = strictjson.MAX_DEPTH // 2


class KitFaultError(Exception):
    """holdfast itself broke a rule; never the adapter's fault."""


@dataclass(frozen=True, slots=True)
class Event:
    """Why there is no answer: `kind` is crash, hang, garbage or eof; `detail` is for people."""

    kind: FailureMode
    detail: str

    def as_json(self) -> dict[str, Any]:
        """The form kept as evidence."""
        return {"kind": self.kind.value, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back for one request: an answer (without its id) or an event, never both; neither, if it is awaited."""

    answer: Mapping[str, Any] | None
    event: Event | None
    sent_us: int
    received_us: int | None


def encode_request(request: Mapping[str, Any]) -> bytes:
    """One request as a line. Raises KitFaultError if it breaks the protocol's own schema."""
    problem = schema.explain(schema.published_validator("protocol-request"), request)
    if problem is not None:
        raise KitFaultError(f"holdfast built a request that breaks the protocol: {problem}")
    line = strictjson.canonical(request) + b"\n"
    if len(line) > MAX_LINE:
        raise KitFaultError(f"holdfast built a request of {len(line)} bytes; a line holds at most {MAX_LINE}")
    return line


def _shown(line: bytes) -> str:
    return repr(line[:160].decode("utf-8", "replace").rstrip("\n"))


def decode_answer(line: bytes, *, expected_id: str, hello: bool = False) -> Mapping[str, Any] | Event:
    """Read one answer line to the request `expected_id`; anything but a valid answer is an Event of garbage."""
    try:
        value = strictjson.loads(line.removesuffix(b"\n"), max_depth=MAX_DEPTH)
    except StrictJsonError as error:
        return Event(FailureMode.GARBAGE, f"expected one JSON object on the line, got {_shown(line)}: {error}")
    if not isinstance(value, dict):
        return Event(FailureMode.GARBAGE, f"expected a JSON object, got {_shown(line)}")
    if value.get("id") != expected_id:
        return Event(
            FailureMode.GARBAGE,
            f"expected the answer to request {expected_id!r}, got id {value.get('id')!r}; "
            "each request is answered once, in order",
        )
    name = "protocol-hello" if hello else "protocol-answer"
    problem = schema.explain(schema.published_validator(name), value)
    if problem is not None:
        return Event(FailureMode.GARBAGE, f"the answer does not fit {name}.schema.json {problem}; got {_shown(line)}")
    return {key: part for key, part in value.items() if key != "id"}
