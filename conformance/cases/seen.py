"""What the harness saw or did itself, as it is written down: RFC 8785 JSON in the detail of a record's event. Pure."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Any

from holdfast.conformance.cases.action import Verb
from holdfast.conformance.inspection.files import shown
from holdfast.reports.evidence.redact import MARK
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.schema import Validator, explain, published_schema
from holdfast.specs.strictjson import canonical, loads

# The verbs whose record tells a value, by the name of the step.
TELLING = {
    verb.value: verb
    for verb in (
        Verb.INSPECT, Verb.FILE, Verb.TREE, Verb.SEARCH, Verb.PLACE, Verb.LINK, Verb.COPY, Verb.INSERT, Verb.PROBE,
    )
}  # fmt: skip


class SeenError(Exception):
    """A detail that is not what the harness writes down."""


@cache
def _validator(verb: Verb) -> Validator:
    definitions = published_schema("inspection")["$defs"]
    return Validator({"$defs": definitions, "$ref": f"#/$defs/{verb.value}"})


def written(value: Mapping[str, Any]) -> str:
    """The detail that tells `value`."""
    return canonical(value).decode("utf-8")


def read(verb: Verb, detail: object, operand: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The value that a detail tells. Raises SeenError.

    With the action's operand it is held to that, too: what was placed, linked or copied is what the case says.
    """
    try:
        value = loads(detail) if isinstance(detail, str) else None
        if not isinstance(value, dict) or written(value) != detail:
            raise SeenError("its detail is not the RFC 8785 form of an object")
    except StrictJsonError as error:
        raise SeenError(f"its detail is not JSON: {error}") from error
    problem = explain(_validator(verb), value) or _contradiction(verb, value)
    if problem is None and operand is not None:
        problem = _other(verb, value, operand)
    if problem is not None:
        raise SeenError(f"its detail is no value of {verb.value}: {problem}")
    return value


def _other(verb: Verb, value: Mapping[str, Any], operand: Mapping[str, Any]) -> str | None:
    """What is not as the action has it."""
    if verb is Verb.PLACE and value["sha256"] != digest_of(operand):
        return "other bytes were placed than the case has"
    if verb is Verb.LINK and value["to"] != operand["to"]:
        return "the link leads elsewhere than the case has it"
    if verb is Verb.COPY and value["to"] != operand["to"]:
        return "the copy lies elsewhere than the case has it"
    if verb in {Verb.TREE, Verb.SEARCH}:
        under = "" if operand["path"] == "." else f"{shown(operand['path'])}/"
        rows = value["files" if verb is Verb.TREE else "found"]
        if not all(entry["path"].startswith(under) for entry in rows):
            return "a path does not lie below the folder that the case asks for"
    if verb is Verb.SEARCH and any(entry["which"] >= len(operand["for"]) for entry in value["found"]):
        return "something was found that the case does not search for"
    return None


def _contradiction(verb: Verb, value: Mapping[str, Any]) -> str | None:
    """What the schema cannot say."""
    if verb in {Verb.INSERT, Verb.PROBE} and (value["inserted"] is True) is not (value["error"] is None):
        return "an error stands beside a row that was inserted, or none beside one that was not"
    if verb is Verb.FILE:
        return _file_contradiction(value)
    if verb is Verb.TREE:
        paths = [entry["path"] for entry in value["files"]]
        if paths != sorted(set(paths)):
            return "its paths are not sorted, or not unique"
        if paths and (value["error"] is not None or not value["exists"]):
            return "a folder that was not listed has files"
    if verb is Verb.SEARCH:
        found = [(entry["path"], entry["which"]) for entry in value["found"]]
        if found != sorted(set(found)):
            return "what was found is not sorted, or not unique"
        if value["error"] is not None and (found or value["files"] or value["bytes"]):
            return "a search that came to nothing has found something"
    if verb is Verb.INSPECT:
        readable = value["exists"] and value["error"] is None
        if not readable and (value["tables"] or value["rows"] or value["triggers"]):
            return "a database that could not be read has contents"
        if readable and None in (value["digest"], value["journal_mode"], value["integrity"]):
            return "a database that was read lacks its digest, journal_mode or integrity"
        if not value["exists"] and value["error"] is not None:
            return "a database that is not there has an error"
        if not value["rows"].keys() <= value["tables"].keys():
            return "there are rows of no table"
    return None


def _file_contradiction(value: Mapping[str, Any]) -> str | None:
    told = [part for part in ("kind", "mode", "size", "sha256", "bytes") if value[part] is not None]
    if not value["exists"] and told:
        return "a file that is not there has properties"
    if value["bytes"] in {None, MARK}:
        return None
    try:
        data = _decoded(value["bytes"])
    except ValueError as error:
        return str(error)
    if (len(data), hashlib.sha256(data).hexdigest()) != (value["size"], value["sha256"]):
        return "its bytes are not those of its size and digest"
    return None


def content_of(operand: Mapping[str, Any]) -> bytes:
    """The bytes that a `place` step writes. Raises ValueError for what is not base64url without padding."""
    text = operand["content"]
    if not isinstance(text, str):
        raise ValueError(f"expected bytes as base64url, got {type(text).__name__}")
    return _decoded(text)


def _decoded(text: str) -> bytes:
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii") != text:
        raise ValueError(f"not base64url without padding: {text[:40]!r}")
    return data


def digest_of(operand: Mapping[str, Any]) -> str:
    """The SHA-256 of what a `place` step writes."""
    return hashlib.sha256(content_of(operand)).hexdigest()
