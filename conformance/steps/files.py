"""Steps about the files of a workdir: describe, list and search them, put and damage them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any

from holdfast.conformance.cases.forms import (
    ANYTHING,
    JUDGED,
    OF_A_WORKER,
    PATH,
    REPORTED,
    TEXT,
    form,
    one_of,
    value_form,
)
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.report import Report, folder_of, has_error, of_case, path_of
from holdfast.conformance.cases.session import Action, Local, SessionScript, must_be_done
from holdfast.conformance.cases.values import CaseError, decoded
from holdfast.conformance.inspection import changing, files, store
from holdfast.conformance.steps import kind, reported
from holdfast.reports.evidence.redact import MARK
from holdfast.vectors.canaries import spellings

_COUNT = {"type": "integer", "minimum": 0}
_MODE = {"pattern": "^[0-7]{4}$"}
_SHA256 = {"pattern": "^[0-9a-f]{64}$"}
_MAYBE_TEXT = {"type": ["string", "null"]}
_OF_A_FILE = ("kind", "mode", "size", "sha256", "bytes")


def _contradiction_file(value: Mapping[str, Any]) -> str | None:
    if not value["exists"] and any(value[part] is not None for part in _OF_A_FILE):
        return "a file that is not there has properties"
    if value["bytes"] in {None, MARK}:
        return None
    try:
        data = decoded(value["bytes"])
    except ValueError as error:
        return str(error)
    if (len(data), hashlib.sha256(data).hexdigest()) != (value["size"], value["sha256"]):
        return "its bytes are not those of its size and digest"
    return None


FILE = Report(
    name="file",
    do=lambda workdir, operand: store.facts(workdir, operand["path"]),
    schema=value_form(
        exists={"type": "boolean"},
        kind={"enum": ["file", "folder", "link", "other", None]},
        mode=_MAYBE_TEXT | _MODE,
        size={"type": ["integer", "null"], "minimum": 0},
        sha256=_MAYBE_TEXT | _SHA256,
        bytes={
            "description": "base64url; three asterisks where a secret stood in them",
            "type": ["string", "null"],
            "pattern": "^(?:[A-Za-z0-9_-]*|\\*\\*\\*)$",
            "maxLength": 87382,
        },
        ignored={"type": "boolean"},
    ),
    contradiction=_contradiction_file,
)

# Describe a file in the workdir.
_FILE_STEP = reported(
    FILE,
    form({"file": PATH, **REPORTED}, ("file",)),
    lambda reading, step: {"path": path_of("file", step, reading)},
    reports=True,
)


def _contradiction_tree(value: Mapping[str, Any]) -> str | None:
    if unsorted := _unsorted(value["files"]):
        return unsorted
    if value["files"] and (value["error"] is not None or not value["exists"]):
        return "a folder that was not listed has files"
    return None


def _unsorted(entries: list[Mapping[str, Any]]) -> str | None:
    paths = [entry["path"] for entry in entries]
    return None if paths == sorted(set(paths)) else "its paths are not sorted, or not unique"


def _outside(entries: list[Mapping[str, Any]], operand: Mapping[str, Any]) -> str | None:
    """An error if an entry does not lie below the folder of the operand; None if each does."""
    under = "" if operand["path"] == "." else f"{files.shown(operand['path'])}/"
    if all(entry["path"].startswith(under) for entry in entries):
        return None
    return "a path does not lie below the folder that the case asks for"


LIST = Report(
    name="tree",
    do=lambda workdir, operand: files.tree(workdir, operand["path"]),
    schema=value_form(
        exists={"type": "boolean"},
        error=_MAYBE_TEXT,
        files={
            "type": "array",
            "maxItems": 10000,
            "items": value_form(
                path=TEXT,
                kind={"enum": ["file", "folder", "link", "other"]},
                size={"type": ["integer", "null"], "minimum": 0},
            ),
        },
    ),
    contradiction=_contradiction_tree,
    difference=lambda value, operand: _outside(value["files"], operand),
    rows={"files": "state_leak"},
)

# List everything below a folder of the workdir.
_TREE_STEP = reported(
    LIST,
    form({"tree": PATH, **REPORTED}, ("tree",)),
    lambda reading, step: {"path": folder_of("tree", step, reading)},
    is_blind=has_error,
    reports=True,
)


def _contradiction_search(value: Mapping[str, Any]) -> str | None:
    found = [(entry["path"], entry["which"]) for entry in value["found"]]
    if found != sorted(set(found)):
        return "what was found is not sorted, or not unique"
    if value["error"] is not None and (found or value["files"] or value["bytes"]):
        return "a search that came to nothing has found something"
    return None


def _difference_search(value: Mapping[str, Any], operand: Mapping[str, Any]) -> str | None:
    if any(entry["which"] >= len(operand["for"]) for entry in value["found"]):
        return _outside(value["found"], operand) or "something was found that the case does not search for"
    return _outside(value["found"], operand)


SEARCH = Report(
    name="search",
    do=lambda workdir, operand: files.search(workdir, operand["path"], operand["for"]),
    schema=value_form(
        error=_MAYBE_TEXT,
        files=_COUNT,
        bytes=_COUNT,
        found={"type": "array", "maxItems": 10000, "items": value_form(path=TEXT, which=_COUNT)},
    ),
    contradiction=_contradiction_search,
    difference=_difference_search,
    rows={"found": "state_leak"},
)


def _searching(name: str, reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, Any]:
    """The operand of a step of this kind. Raises CaseError."""
    path, wanted = folder_of(name, step, reading), reading.state.scope.resolve(step["for"])
    return {"path": path, "for": wanted_of(wanted)}


def wanted_of(wanted: Any) -> list[Any]:
    """What is searched for: texts, or bytes as {bytes: base64url}. Raises CaseError."""
    if not wanted or not isinstance(wanted, list):
        raise CaseError(f"search: expected a list of what is searched for, got {wanted!r}")
    with of_case("search"):
        for canary in wanted:
            spellings(canary)
    return wanted


# Find the files below a folder of the workdir in which texts or bytes can be read.
_SEARCH_STEP = reported(
    SEARCH,
    form({"search": PATH, "for": ANYTHING, **REPORTED}, ("search", "for")),
    partial(_searching, "search"),
    is_blind=has_error,
    reports=True,
)


def _contradiction_remains(value: Mapping[str, Any]) -> str | None:
    if unsorted := _unsorted(value["files"]):
        return unsorted
    if any(entry["which"] != sorted(set(entry["which"])) for entry in value["files"]):
        return "what was found is not sorted, or not unique"
    return "a folder that could not be read has files" if value["files"] and value["error"] is not None else None


def _difference_remains(value: Mapping[str, Any], operand: Mapping[str, Any]) -> str | None:
    if any(which >= len(operand["for"]) for entry in value["files"] for which in entry["which"]):
        return "something was found that the case does not search for"
    return _outside(value["files"], operand)


REMAINS = Report(
    name="remains",
    do=lambda workdir, operand: files.remains(workdir, operand["path"], operand["for"]),
    schema=value_form(
        error=_MAYBE_TEXT,
        files={
            "type": "array",
            "maxItems": 10000,
            "items": value_form(
                path=TEXT,
                mode={"type": "string"} | _MODE,
                open={"type": "boolean"},
                which={"type": "array", "items": _COUNT},
            ),
        },
    ),
    contradiction=_contradiction_remains,
    difference=_difference_remains,
)

# What lies below a folder of the workdir, who may read it, and which texts or bytes can be read there.
_REMAINS_STEP = reported(
    REMAINS,
    form({"remains": PATH, "for": ANYTHING, **REPORTED}, ("remains", "for")),
    partial(_searching, "remains"),
    is_blind=has_error,
    reports=True,
)


def _difference_place(value: Mapping[str, Any], operand: Mapping[str, Any]) -> str | None:
    placed = hashlib.sha256(decoded(operand["content"])).hexdigest()
    return None if value["sha256"] == placed else "other bytes were placed than the case has"


PLACE = Report(
    name="place",
    do=lambda workdir, operand: changing.place(
        workdir, operand["path"], decoded(operand["content"]), operand.get("times", "now")
    ),
    schema=value_form(size=_COUNT, sha256={"type": "string"} | _SHA256),
    difference=_difference_place,
)


def _operand_place(reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, Any]:
    path, content = path_of("place", step, reading), reading.state.scope.resolve(step["content"])
    with of_case("place"):
        decoded(content)
    reading.touches(path)
    return {"path": path, "content": content}


# Write a file with given bytes into the workdir.
_PLACE_STEP = reported(
    PLACE, form({"place": PATH, "content": ANYTHING, **JUDGED}, ("place", "content")), _operand_place
)


LINK = Report(
    name="link",
    do=lambda workdir, operand: changing.link(workdir, operand["path"], operand["to"]),
    schema=value_form(to=TEXT),
    difference=lambda value, operand: (
        None if value["to"] == operand["to"] else "the link leads elsewhere than the case has it"
    ),
)


def _operand_link(reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, Any]:
    path = path_of("link", step, reading)
    with of_case("link"):
        target = changing.target_of(path, str(reading.state.scope.resolve(step["to"])))
    reading.touches(path)
    return {"path": path, "to": target}


# Make a symbolic link at an empty place in the workdir.
_LINK_STEP = reported(LINK, form({"link": PATH, "to": PATH, **JUDGED}, ("link", "to")), _operand_link)


COPY = Report(
    name="copy",
    do=lambda workdir, operand: changing.copy(workdir, operand["path"], operand["to"], move=operand.get("move", False)),
    schema=value_form(
        to=TEXT,
        files={"description": "How many plain files were copied.", "type": "integer", "minimum": 0},
        size={"description": "Their bytes.", "type": "integer", "minimum": 0},
    ),
    difference=lambda value, operand: (
        None if value["to"] == operand["to"] else "the copy lies elsewhere than the case has it"
    ),
)


def _operand_copy(reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, Any]:
    path, to = path_of("copy", step, reading), str(reading.state.scope.resolve(step["to"]))
    with of_case("copy"):
        changing.apart(path, to)
    reading.touches(to)
    if "move" in step:
        reading.touches(path)
    return {"path": path, "to": to, **({"move": True} if "move" in step else {})}


# Copy a file or folder of the workdir over another place in it, or move it there.
_COPY_STEP = reported(
    COPY,
    form({"copy": PATH, "to": PATH, "move": {"const": True}, **REPORTED}, ("copy", "to")),
    _operand_copy,
    reports=True,
)


_CHANGES: Mapping[str, Mapping[str, Any]] = {
    "flip": _COUNT,
    "truncate": _COUNT,
    "delete": {"const": True},
    "journal_mode": {"enum": ["delete", "wal"]},
}

# The last word of a suite test's note that it cuts a file.
CUT = "cut"

TAMPER = Local("tamper", lambda driver, action: store.tamper(driver.workdir, action.operand["tamper"], action.operand))


@kind(form({"tamper": TEXT, **_CHANGES, **OF_A_WORKER}, ("tamper",), oneOf=one_of(*_CHANGES)))
def tamper(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    """Damage, cut or remove a file of the workdir, or put the store into another journal mode."""
    path = path_of("tamper", step, reading)
    reading.touches(path)
    operand = {"tamper": path, **{name: step[name] for name in _CHANGES if name in step}}
    (record,) = yield Action(TAMPER, note, operand=operand)
    must_be_done(record)
