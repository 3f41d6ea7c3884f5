"""The steps by which the harness itself inspects or acts, each used correctly and against the actual state."""

from __future__ import annotations

import base64
import bz2
import contextlib
import gzip
import lzma
import os
import sqlite3
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.conformance.cases.record import NonConformance
from holdfast.conformance.cases.values import base64url
from holdfast.conformance.inspection import files, store
from holdfast.conformance.inspection.beyond import begin
from holdfast.conformance.inspection.database import nothing
from holdfast.conformance.inspection.files import MAX_FILE
from holdfast.conformance.inspection.helper import HELPER, Helper
from holdfast.conformance.steps.calls import state_of
from holdfast.conformance.suites.calyx_replay.data_at_rest import is_given
from holdfast.specs.model import Twin
from tests.harness.ledger import FOLDER, LEDGER, ONCE, case_of, ran, verdict
from tests.hostile.verify import holdfast, verify

pytestmark = pytest.mark.usefixtures("helper")

PUT = {"call": "put", "args": {"key": "one"}}
AGAIN = {"call": "put", "args": {"key": "one"}, "expect": {"outcome": "refused", "reason": "DUPLICATE"}}
HASH = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


def inspect(**expected: Any) -> dict[str, Any]:
    return {"inspect": "store", "expect": {"value": {key.replace("__", "."): value for key, value in expected.items()}}}


def test_the_harness_sees_schema_and_rows_of_the_database_itself() -> None:
    key = {"name": "key", "type": "TEXT", "notnull": True, "pk": 1, "hidden": 0}
    lower = {"name": "entry_lower", "unique": True, "partial": True, "origin": "c", "expressions": True}
    step = inspect(
        exists=True,
        error=None,
        journal_mode="wal",
        integrity="ok",
        tables__entry__columns={"$contains": key},
        tables__entry__indexes={"$contains": {**lower, "columns": [None]}},
        tables__log__strict=True,
        tables__kept__without_rowid=True,
        tables__entry__strict=False,
        triggers={"$contains": {"name": "no_zero", "table": "entry"}},
        rows__entry=[{"key": "one", "seen": None, "raw": None}],
        rows__log=[],
    )
    bound = {"inspect": "store", "bind": {"row": "value.rows.entry.0"}}
    assert verdict(PUT, step, bound, {"check": "$row.key", "equals": "one"}) == ("conforms", "")


REFUSED = {"expect": {"value": {"inserted": False}}}
NOWHERE: dict[str, Any] = {"expect": {"value": {"found": []}}}
THERE = {"expect": {"value": {"exists": True}}}
# What is found of a step: first of the ledger after a put, then of folders beside a link, then of a file with a word.
OTHERWISE: list[tuple[dict[str, Any], list[tuple[dict[str, Any], str, str]]]] = [
    (PUT, [
        (inspect(rows__entry={"$count": 2}), "lost_durability", "expected 2 elements, got 1"),
        ({**inspect(rows__entry=[]), "else": "state_leak"}, "state_leak", "value.rows.entry"),
        ({"inspect": "store", "bind": {"x": "value.rows.nothing"}}, "not_reached", "no value.rows.nothing"),
        ({"file": "data/none", "expect": {"value": {"exists": True}}}, "wrong_reason", "value.exists"),
        ({"file": "data/ledger.db", "expect": {"value": {"mode": "0400"}}}, "wrong_reason", "value.mode"),
        ({"file": "../secret", "expect": {"value": {"exists": False}}}, "kit_fault", "inside the workdir"),
        ({"place": "a/b", "content": "no base64!"}, "kit_fault", "base64url"),
        ({"place": "data", "content": "aGVsbG8"}, "not_reached", "Is a directory"),
        ({"insert": "entry", "row": {"key": "one"}}, "not_reached", "UNIQUE constraint failed"),
        ({"insert": "nothing", "row": {"key": "one"}}, "not_reached", "no such table"),
        ({"insert": "entry", "row": {"key": True}}, "kit_fault", "cannot hold"),
        ({"probe": "entry", "row": {"key": "two"}} | REFUSED, "wrong_reason", "value.inserted"),
        ({"probe": "entry", "row": {"none": "two"}} | REFUSED, "not_reached", "no column named none"),
        ({"probe": "entry", "row": {"key": "hush"}} | REFUSED, "not_reached", "not stored"),
        ({"copy": "../x", "to": "y"}, "kit_fault", "inside the workdir"),
        ({"copy": "data", "to": "../y"}, "kit_fault", "inside the workdir"),
        ({"copy": "data", "to": "data"}, "kit_fault", "none lies in the other"),
        ({"copy": "data", "to": "data/below"}, "kit_fault", "none lies in the other"),
        ({"copy": "data/ledger.db", "to": "data"}, "kit_fault", "none lies in the other"),
        ({"copy": "none", "to": "y"}, "not_reached", "No such file"),
        ({"copy": "data", "to": "y", "expect": {"value": {"files": 99}}}, "wrong_reason", "value.files"),
    ]),
    ({"place": "note", "content": {"$utf8": "abc"}}, [
        ({"tamper": "none", "delete": True}, "not_reached", "no file in the workdir"),
        ({"tamper": "note/below", "delete": True}, "not_reached", "no file in the workdir"),
        ({"tamper": "data", "delete": True}, "not_reached", "no plain file in the workdir but a folder"),
        ({"tamper": "note", "flip": 3}, "not_reached", "has no byte 3"),
        ({"tamper": "../note", "delete": True}, "kit_fault", "inside the workdir"),
        ({"tamper": "/etc/passwd", "flip": 0}, "kit_fault", "inside the workdir"),
    ]),
    ({"link": "linked", "to": "data"}, [
        ({"tree": "..", **THERE}, "kit_fault", "inside the workdir"),
        ({"tree": "data/../..", **THERE}, "kit_fault", "inside the workdir"),
        ({"tree": "/", **THERE}, "kit_fault", "inside the workdir"),
        ({"tree": "data", "expect": {"value": {"files": []}}}, "state_leak", "value.files"),
        ({"tree": "data/ledger.db", "expect": {"value": {"files": []}}}, "not_reached", "no folder"),
        ({"link": "../x", "to": "data"}, "kit_fault", "inside the workdir"),
        ({"link": "x", "to": "/etc/passwd"}, "kit_fault", "relative path"),
        ({"link": "x", "to": ""}, "kit_fault", "relative path"),
        ({"link": "x", "to": "../x"}, "kit_fault", "leaves the workdir"),
        ({"link": "a/x", "to": "b/../../../x"}, "kit_fault", "leaves the workdir"),
        ({"link": "data/ledger.db", "to": "x"}, "not_reached", "File exists"),
        ({"place": "linked/x", "content": ""}, "not_reached", "symbolic link"),
        ({"link": "linked/x", "to": "x"}, "not_reached", "symbolic link"),
    ]),
    ({"place": "in/x", "content": {"$utf8": "a canary"}}, [
        ({"search": "in", "for": ["canary"], **NOWHERE}, "state_leak", "value.found"),
        ({"search": "in", "for": ["canary"], **NOWHERE, "else": "fail_open"}, "fail_open", ""),
        ({"search": "none", "for": ["canary"], **NOWHERE}, "not_reached", "no such folder"),
        ({"search": "in/x", "for": ["canary"], **NOWHERE}, "not_reached", "no folder"),
        ({"search": "..", "for": ["canary"]}, "kit_fault", "inside the workdir"),
        ({"search": "in", "for": ["short"]}, "kit_fault", "by chance"),
        ({"search": "in", "for": []}, "kit_fault", "a list of what is searched for"),
        ({"search": "in", "for": [{"bytes": "no base64!"}]}, "kit_fault", "base64url"),
        ({"search": "in", "for": [{"hex": "00"}]}, "kit_fault", "expected a text, or bytes"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "step", "due", "words"), [(given, *row) for given, rows in OTHERWISE for row in rows]
)
def test_what_is_otherwise_is_found(given: dict[str, Any], step: dict[str, Any], due: str, words: str) -> None:
    found, detail = verdict(given, step)
    assert (found, words in detail) == (due, True), detail


def test_files_can_be_placed_and_seen() -> None:
    modes = {"exists": True, "kind": "folder", "mode": "0700", "ignored": False, "size": None}
    steps = (
        {"place": ".gitignore", "content": {"$utf8": "/runtime/\n*.log\n!kept.log\n"}},
        {"place": "runtime/deep/hello", "content": {"$utf8": "hello"}},
        {"file": "runtime/deep/hello", "expect": {"value": {"size": 5, "sha256": HASH, "ignored": True}}},
        {"file": "runtime", "expect": {"value": {"kind": "folder", "ignored": True}}},
        {"file": "runtime/not/there", "expect": {"value": {"exists": False, "ignored": True}}},
        {"file": "data", "expect": {"value": modes}},
        {"file": "data/a.log", "expect": {"value": {"ignored": True}}},
        {"file": "data/kept.log", "expect": {"value": {"ignored": False}}},
        {"place": "data/.gitignore", "content": {"$utf8": "!a.log\n"}},
        {"file": "data/a.log", "expect": {"value": {"ignored": False}}},
        {"file": "deep/runtime/x", "expect": {"value": {"ignored": False}}},
    )
    assert verdict(*steps) == ("conforms", "")


def test_the_bytes_of_a_small_file_are_shown() -> None:
    steps = (
        {"place": "small", "content": {"$hex": "ff 00"}},
        {
            "file": "small",
            "expect": {"value": {"bytes": {"$hex": "ff 00"}, "size": 2}},
            "bind": {"kept": "value.bytes"},
        },
        {"check": "$kept", "equals": {"$hex": "ff 00"}},
        {"tamper": "small", "flip": 1},
        {"file": "small", "expect": {"value": {"bytes": {"$hex": "ff ff"}}}},
        {"place": "empty", "content": ""},
        {"file": "empty", "expect": {"value": {"bytes": "", "size": 0}}},
        {"place": "most", "content": {"$utf8": {"$repeat": "x", "times": 65536}}},
        {"file": "most", "expect": {"value": {"bytes": {"$matches": "^eHh4"}, "size": 65536}}},
        {"place": "large", "content": {"$utf8": {"$repeat": "x", "times": 65537}}},
        {"file": "large", "expect": {"value": {"bytes": None, "size": 65537, "sha256": {"$any": True}}}},
        {"link": "linked", "to": "small"},
        {"file": "linked", "expect": {"value": {"kind": "link", "bytes": None, "sha256": None}}},
        {"file": "data", "expect": {"value": {"bytes": None}}},
        {"file": "none", "expect": {"value": {"bytes": None}}},
    )
    assert verdict(*steps) == ("conforms", "")


def test_everything_below_a_folder_is_listed_and_no_link_followed() -> None:
    below: list[dict[str, Any]] = [
        {"path": "deep/a", "kind": "folder", "size": None},
        {"path": "deep/a/b", "kind": "folder", "size": None},
        {"path": "deep/a/b/é", "kind": "file", "size": 5},
        {"path": "deep/a-", "kind": "file", "size": 0},
        {"path": "deep/up", "kind": "link", "size": None},
        {"path": "deep/x/lost", "kind": "link", "size": None},
    ]
    steps: tuple[dict[str, Any], ...] = (
        {"place": "deep/a/b/é", "content": {"$utf8": "hello"}},
        {"place": "deep/a-", "content": ""},
        {"link": "deep/up", "to": "../data"},
        {"link": "deep/x/lost", "to": "../../not/there"},
        {
            "tree": "deep",
            "expect": {"value": {"exists": True, "error": None, "files.3": below[2], "files": {"$count": 7}}},
            "bind": {"found": "value.files"},
        },
        *({"check": "$found", "matches": {"$contains": entry}} for entry in below),
        {"tree": ".", "expect": {"value": {"files": {"$contains": {"path": "data/ledger.db", "kind": "file"}}}}},
        {"tree": ".", "expect": {"value": {"files": {"$contains": below[0]}}}},
        {"tree": "none", "expect": {"value": {"exists": False, "error": None, "files": []}}},
        {"tree": "deep/a/b/none", "expect": {"value": {"exists": False}}},
        {"tree": "deep/up", "expect": {"value": {"exists": True, "error": {"$matches": "no folder"}}}},
        {"tree": "deep/a-", "expect": {"value": {"error": {"$matches": "Not a directory"}}}},
    )
    assert verdict(*steps) == ("conforms", "")


def test_a_folder_of_too_much_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number in range(10_001):
        (tmp_path / "many" / str(number)).touch()
    found = files.tree(tmp_path, "many")
    assert (found["exists"], found["files"]) == (True, [])
    assert "more than 10000" in found["error"]
    (tmp_path / "many" / "7").unlink()
    assert len(files.tree(tmp_path, "many")["files"]) == 10_000
    # Depth is no way around: paths as long as all of these together are too long to be shown.
    inner = tmp_path / "deep"
    inner.mkdir()
    at = os.open(inner, os.O_RDONLY)
    for _ in range(400):
        os.mkdir("x" * 200, dir_fd=at)
        below = os.open("x" * 200, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    assert "longer than" in files.tree(tmp_path, "deep")["error"]


SECRET = bytes(range(17, 49))
SPELLED = {
    "as it is": SECRET,
    "in hexadecimal": SECRET.hex().encode(),
    "in capitals": SECRET.hex().upper().encode(),
    "in UTF-16": SECRET.hex().encode("utf-16-le"),
    "as base64": base64.b64encode(SECRET),
    "as base64 without padding": base64.b64encode(SECRET).rstrip(b"="),
    "as base64 of a file name": base64.urlsafe_b64encode(SECRET),
    "as base64 with something before": base64.b64encode(b"k=" + SECRET),
}
LONG = b"before " * 50 + SECRET + b" behind"
WRITTEN = {name: b"\xff before " + spelled + b" behind" for name, spelled in SPELLED.items()} | {
    "packed by gzip": gzip.compress(LONG),
    "packed by zlib": zlib.compress(LONG),
    "packed by bzip2": bz2.compress(LONG),
    "packed by xz": lzma.compress(LONG),
    "a beginning of gzip": gzip.compress(LONG)[:-9],
}


@pytest.mark.parametrize("data", WRITTEN.values(), ids=WRITTEN)
def test_a_search_finds_a_secret_however_it_is_written(data: bytes) -> None:
    secret = {"bytes": {"$hex": SECRET.hex()}}
    steps = (
        {"place": "in/deep/x", "content": base64url(data)},
        {"search": "in", "for": ["nothing of it", secret], "expect": {"value": {"found": [{"path": "in/deep/x",
            "which": 1}], "files": 1, "bytes": len(data), "error": None}}},
    )  # fmt: skip
    assert verdict(*steps) == ("conforms", "")
    # The accepted neighbour: one byte of the secret is another.
    other = {"bytes": {"$hex": f"{SECRET[:-1].hex()}ff"}}
    assert verdict(steps[0], {"search": "in", "for": [other], "expect": {"value": {"found": []}}}) == ("conforms", "")


def test_a_search_reads_names_targets_of_links_and_every_file() -> None:
    steps: tuple[dict[str, Any], ...] = (
        {"place": "in/say canary", "content": ""},
        {"link": "in/link", "to": "canary in the mine"},
        {"place": "in/a/b/c", "content": {"$utf8": {"$repeat": "x", "times": 70000}}},
        {"place": "in/a/b/d", "content": {"$utf8": "a sparrow"}},
        {"place": "canary", "content": {"$utf8": "canary, beside the folder"}},
        {
            "search": "in",
            "for": ["canary", "sparrow"],
            "expect": {"value": {"files": 3, "bytes": 70009}},
            "bind": {"found": "value.found"},
        },
        {
            "check": "$found",
            "equals": [
                {"path": "in/a/b/d", "which": 1},
                {"path": "in/link", "which": 0},
                {"path": "in/say canary", "which": 0},
            ],
        },
    )
    assert verdict(*steps) == ("conforms", "")


def test_a_file_that_cannot_be_searched_is_no_file_without_it(tmp_path: Path) -> None:
    os.close(os.open(os.fsencode(tmp_path) + b"/\xff\xe9", os.O_CREAT | os.O_WRONLY))
    assert "not UTF-8" in files.search(tmp_path, ".", ["canary"])["error"]
    os.unlink(os.fsencode(tmp_path) + b"/\xff\xe9")
    (tmp_path / "half").write_bytes(b"canary" + bytes(MAX_FILE // 2))
    assert files.search(tmp_path, ".", ["canary"])["found"] == [{"path": "half", "which": 0}]
    (tmp_path / "other half").write_bytes(bytes(MAX_FILE // 2))
    found = files.search(tmp_path, ".", ["canary"])
    assert (found["files"], found["found"], "more than" in found["error"]) == (0, [], True)


@pytest.mark.parametrize(
    ("step", "change", "told"),
    [
        ({"link": "x", "to": "nowhere"}, {"to": "data"}, '{"to":"data"}'),
        ({"copy": "note", "to": "x"}, {"copy": "data"}, '{"files":3,'),
    ],
)
def test_a_twin_may_link_elsewhere_and_copy_something_else(step: Any, change: Any, told: str) -> None:
    kind, note = next(iter(step)), {"place": "note", "content": ""}
    twin = Twin("it", change, {"outcome": "refused", "reason": "DUPLICATE"}, "again")
    (result,) = ran(case_of(note, {**step, "label": "it"}, PUT, {**AGAIN, "label": "again"}, twin=twin))
    assert result.judgement.verdict.value == "conforms", result.judgement.detail
    said = [record.event["detail"] for record in result.twin if record.event and kind in record.action]
    assert said[0].startswith(told), said


def test_rows_can_be_inserted_and_probed() -> None:
    stored = {"expect": {"value": {"inserted": True, "error": None}}}
    steps = (
        PUT,
        {"insert": "entry", "row": {"key": "two", "seen": 1.5, "raw": {"blob": "00ff"}}},
        {"probe": "entry", "row": {"key": "two"}, **REFUSED},
        {"probe": "entry", "row": {"key": "two"}, "or_replace": True, **stored},
        {"probe": "entry", "row": {"key": "x" * 64}, **REFUSED},
        {"probe": "entry", "row": {"key": None}, **REFUSED},
        {"probe": "entry", "row": {"key": "zero"}, **REFUSED},
        {"probe": "entry", "rows": [{"key": "three"}, {"key": "THREE"}], **REFUSED},
        {"probe": "entry", "rows": [{"key": "three"}, {"key": "four"}], **stored},
        {"probe": "log", "row": {"n": "text", "what": "x"}, **REFUSED},
        inspect(rows__entry={"$count": 2}, rows__entry__1={"key": "two", "seen": 1.5, "raw": {"blob": "00ff"}}),
        {"call": "put", "args": {"key": "two"}, "expect": {"outcome": "refused", "reason": "DUPLICATE"}},
    )
    assert verdict(*steps) == ("conforms", "")


def test_a_row_that_the_store_refuses_to_hold_ends_the_case_well() -> None:
    row = {"insert": "entry", "row": {"key": "zero"}, "unstorable": "ends"}
    found, detail = verdict(PUT, row, inspect(rows__entry=[]))
    assert (found, "not zero" in detail) == ("conforms", True)
    # What fails for any other reason is no prevention.
    assert verdict({**row, "insert": "nothing"})[0] == "not_reached"
    # Where it can be stored the case goes on.
    assert verdict({**row, "row": {"key": "two"}}, inspect(rows__entry=[]))[0] == "state_leak"
    # A twin that changes the row shows that another one can be stored.
    step = {**row, "label": "stored", "row": {"key": "zero"}}
    twin = Twin("stored", {"row.key": "hush"}, {"outcome": "accepted"}, "put")
    case = case_of(step, {**PUT, "label": "put"}, twin=twin)
    (result,) = ran(case)
    assert result.judgement.verdict.value == "not_reached"
    (result,) = ran(replace(case, twin=replace(twin, change={"row.key": "two"})))
    assert result.judgement.verdict.value == "conforms"


# Inspections around refusals


def test_a_refusal_that_changed_nothing_is_seen_to() -> None:
    (result,) = ran(ONCE)
    assert result.judgement.verdict.value == "conforms"
    # No worker is used for the inspection.
    assert {record.worker for record in (*result.main, *result.twin)} == {0}


@pytest.mark.parametrize(
    ("flaw", "due", "words"),
    [
        ("leaks", "state_leak", "log 0 -> 1 rows"),
        ("stores nothing", "fail_open", "value.rows.entry"),
        ("link", "not_reached", "plain file (link)"),
        ("linked folder", "not_reached", "cannot be read"),
        ("fifo", "not_reached", "plain file"),
        ("folder", "not_reached", "plain file (folder)"),
        ("empty", "not_reached", "it is empty"),
        ("foreign", "not_reached", "not a database"),
        ("missing", "not_reached", "it is not there"),
        ("many rows", "not_reached", "more than 10000 rows"),
    ],
)
def test_an_adapter_that_says_all_the_right_things_is_not_believed(flaw: str, due: str, words: str) -> None:
    (result,) = ran(replace(ONCE, twin=None), flaw=flaw)
    found = result.judgement
    assert (found.verdict.value, words in found.detail) == (due, True), found.detail


@pytest.mark.parametrize(
    ("flaw", "placed", "due", "words"),
    [
        ("", "out/there", "conforms", ""),
        ("makes a folder", "out/there", "conforms", ""),
        ("litters", "out/there", "state_leak", "out holds other files: out/refused.tmp"),
        ("appends", "out/there", "state_leak", "out holds other files: out/there"),
        ("removes", "out/there", "state_leak", "out holds other files: out/there"),
        ("links", "out/there", "state_leak", "out holds other files: out/link"),
        ("", "out", "not_reached", "cannot be listed"),
    ],
)
def test_a_refusal_leaves_the_files_alone_that_the_contract_names(flaw: str, placed: str, due: str, words: str) -> None:
    assert LEDGER.inertness is not None
    contract = replace(LEDGER, inertness=replace(LEDGER.inertness, tree="out"))
    steps = {"place": placed, "content": ""}, PUT, AGAIN
    (result,) = ran(case_of(*steps), flaw=flaw, contract=contract)
    assert (result.judgement.verdict.value, words in result.judgement.detail) == (due, True), result.judgement.detail
    # A contract that names no folder does not inspect one.
    assert verdict(*steps, flaw=flaw) == ("conforms", "")


def test_a_twin_that_is_accepted_must_be_seen_to_change_the_store() -> None:
    (result,) = ran(replace(ONCE, then=()), flaw="stores nothing")
    assert result.judgement.verdict.value == "not_reached"
    assert "blind" in result.judgement.detail


@pytest.mark.parametrize("flaw", ["unknown function", "cyclic views", "long values", "looping trigger"])
def test_what_is_odd_in_a_database_does_not_keep_it_from_being_looked_into(flaw: str) -> None:
    expected: dict[str, Any] = {"error": None, "rows__entry": {"$contains": {"key": "one"}}}
    if flaw == "unknown function":
        expected |= {"integrity": {"$matches": "not checked: .*known_here"}, "rows__own": [{"x": 1}]}
    if flaw == "long values":
        digest = {"blob_sha256": "9192c25b734fcbadbe32dadc28089c60db0e39f90cc20ce2e5733f57261acc0c", "bytes": 100_000}
        expected["rows__entry"] = {"$contains": {"key": "big", "seen": 1.5, "raw": digest}}
        odd = {"key": "odd", "seen": {"real": "inf"}, "raw": {"blob": "00ff"}}
        whole = {"key": "whole", "seen": {"real": "2.0"}, "raw": 7}
        step = inspect(rows__entry={"$contains": odd}), inspect(rows__entry={"$contains": whole})
        assert verdict(*step, flaw=flaw) == ("conforms", "")
    assert verdict(PUT, inspect(**expected), flaw=flaw) == ("conforms", "")


def test_a_store_that_the_case_damaged_is_compared_by_its_bytes_and_no_other() -> None:
    digest = "ab" * 32
    damaged = nothing(exists=True, error="it is empty", digest=digest)
    assert state_of(damaged, "before", damaged=True) == {"unreadable": digest}
    assert state_of(nothing(exists=False, error=None), "before", damaged=True) == {"unreadable": "not there"}
    for value, spoilt in (
        (damaged, False),
        (nothing(exists=False, error=None), False),
        (nothing(exists=True, error="it is no plain file"), True),
    ):
        with pytest.raises(NonConformance, match="cannot be inspected"):
            state_of(value, "before", damaged=spoilt)


def test_a_case_may_damage_the_store_and_look_at_it() -> None:
    # Closed first: while the write-ahead log holds all pages, the database can be read from it alone.
    spoilt = PUT, {"restart": 0}, {"tamper": "data/ledger.db", "truncate": 50}
    assert verdict(*spoilt, inspect(exists=True, error={"$matches": "not a database|malformed"}))[0] == "conforms"
    assert verdict(*spoilt, inspect(exists=True))[0] == "not_reached"
    gone = {"tamper": "data/ledger.db", "delete": True}
    assert verdict(PUT, gone, inspect(exists=False))[0] == "conforms"
    assert verdict(PUT, gone, inspect(rows__nothing={"$absent": True})) == (
        "wrong_reason",
        "there is no database where the contract has it",
    )


def test_a_case_may_put_the_store_into_another_journal_mode_once_nobody_has_it_open() -> None:
    into: dict[str, dict[str, Any]] = {
        mode: {"tamper": "data/ledger.db", "journal_mode": mode} for mode in ("delete", "wal")
    }
    switched = PUT, {"kill": 0}, into["delete"], inspect(journal_mode="delete", rows__entry={"$count": 1})
    assert verdict(*switched, into["wal"], inspect(journal_mode="wal"), {"reopen": 0}, AGAIN)[0] == "conforms"
    assert verdict(PUT, {"kill": 0}, into["wal"], inspect(journal_mode="wal"))[0] == "conforms"
    gone = {"tamper": "data/ledger.db", "delete": True}
    assert verdict(PUT, {"kill": 0}, gone, into["delete"])[0] == "not_reached"
    # A worker has it open.
    assert verdict(PUT, into["delete"])[0] == "not_reached"
    text = {"place": "note.txt", "content": {"$utf8": "no database at all"}}, {**into["delete"], "tamper": "note.txt"}
    assert verdict(*text)[0] == "not_reached"


def test_a_whole_run_leaves_no_process_and_calls_nothing_self_reported(tmp_path: Path) -> None:
    adapter = (sys.executable, str(FOLDER / "adapter.py"))
    outcome = verify(adapter, cwd=tmp_path, contract="ledger", specs=FOLDER)
    assert outcome.exit == 0, outcome.stdout + outcome.stderr
    assert "self-reported" not in outcome.stdout
    details = [line["event"]["detail"] for line in outcome.exchanges if line["action"].startswith("inspect")]
    assert len(details) == 4
    explained = holdfast("explain", ONCE.id, temp=tmp_path, cwd=tmp_path, extra={"HOLDFAST_SPECS": str(FOLDER)})
    assert (explained.returncode, "inspect" in explained.stdout) == (0, True), explained.stderr


# Files that harm the process that opens them


def test_a_database_within_a_transaction_is_not_looked_into(workdir: Path) -> None:
    make(workdir, "CREATE TABLE t (x);")
    journal = workdir / "s.db-journal"
    journal.write_bytes(bytes.fromhex("d9d505f920a163d7") + bytes(500))
    value = store.inspect(workdir, "s.db")
    assert value["rows"] == {}
    assert "within a transaction" in value["error"]
    journal.write_bytes(bytes(100))
    assert store.inspect(workdir, "s.db")["error"] is None


@pytest.mark.parametrize(("times", "error"), [(1, None), (99, "it changed while it was copied, 6 times in a row")])
def test_a_database_that_changes_while_it_is_copied_is_copied_whole_or_not(
    workdir: Path, monkeypatch: pytest.MonkeyPatch, times: int, error: str | None
) -> None:
    make(workdir, "CREATE TABLE t (x);")
    read, left = files.read_plain, iter(range(times))

    def reading(folder: int, name: str, most: int) -> bytes:
        data = read(folder, name, most)
        if name == "s.db" and next(left, None) is not None:
            make(workdir, "INSERT INTO t VALUES (1);")
        return data

    monkeypatch.setattr(files, "read_plain", reading)
    value = store.inspect(workdir, "s.db")
    assert (value["error"], value["rows"]) == (error, {} if error else {"t": [{"x": 1}]})


def make(folder: Path, script: str) -> Path:
    with sqlite3.connect(folder / "s.db") as database:
        database.executescript(script)
    database.close()
    return folder


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    """A workdir inside a folder where scratch copies may go."""
    made = tmp_path / "work"
    made.mkdir()
    return made


def test_a_trigger_that_loops_is_ended_and_is_no_constraint(workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = """CREATE TABLE t (x); CREATE TRIGGER l AFTER INSERT ON t BEGIN
    INSERT INTO t SELECT x FROM
    (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) x FROM c);
    END;"""
    make(workdir, script)
    ask = HELPER.ask
    monkeypatch.setattr(HELPER, "ask", lambda op, **words: ask(op, seconds=0.5, **words))
    before = (workdir / "s.db").read_bytes()
    for value in (
        store.probe(workdir, "s.db", "t", [{"x": 1}], or_replace=False),
        store.insert(workdir, "s.db", "t", [{"x": 1}]),
    ):
        assert value == {"inserted": None, "error": "it took too long"}
    assert (workdir / "s.db").read_bytes() == before


def test_a_row_of_a_copy_can_be_changed_by_every_statement(workdir: Path) -> None:
    make(
        workdir,
        """CREATE TABLE t (x TEXT PRIMARY KEY NOT NULL CHECK (x NOT GLOB 'A*'), y);
        CREATE TRIGGER o BEFORE UPDATE ON t WHEN NEW.y = 3 BEGIN SELECT RAISE(IGNORE); END;
        INSERT INTO t VALUES ('there', 1);""",
    )

    def changed(to: dict[str, Any]) -> list[bool | None]:
        return [
            store.probe(workdir, "s.db", "t", [{"x": "new", "y": 2}], or_replace=False, change={"how": how, "to": to})[
                "inserted"
            ]
            for how in ("update", "update or replace", "upsert")
        ]

    before = (workdir / "s.db").read_bytes()
    assert changed({"x": "other"}) == [True, True, True]
    assert changed({"x": "A"}) == [False, False, False]
    assert changed({"x": None}) == [False, False, False]
    # The row that is in the way is replaced.
    assert changed({"x": "there"}) == [False, True, False]
    assert changed({"y": 3}) == [False, False, False], "what is passed over is not stored"
    assert changed({"none": 3}) == [None, None, None]
    assert (workdir / "s.db").read_bytes() == before


def test_looking_leaves_the_workdir_and_the_scratch_as_they_were(workdir: Path) -> None:
    make(workdir, "PRAGMA journal_mode=WAL; CREATE TABLE t (x); INSERT INTO t VALUES (9007199254740993);")

    def shown() -> list[Any]:
        states = [(path, os.stat(path, follow_symlinks=False)) for path in sorted(workdir.parent.rglob("*"))]
        return [(path, state.st_mode, state.st_size, state.st_mtime_ns) for path, state in states if path.is_file()]

    before = shown()
    value = store.inspect(workdir, "s.db")
    store.probe(workdir, "s.db", "t", [{"x": 1}], or_replace=False)
    assert value["rows"] == {"t": [{"x": {"integer": "9007199254740993"}}]}
    assert shown() == before
    assert sorted(path.name for path in workdir.parent.iterdir()) == ["work"]


def test_what_is_written_but_not_committed_is_not_seen(workdir: Path) -> None:
    make(workdir, "PRAGMA journal_mode=WAL; CREATE TABLE t (x);")
    database = sqlite3.connect(workdir / "s.db", isolation_level=None)
    database.execute("INSERT INTO t VALUES (1)")
    database.execute("BEGIN IMMEDIATE")
    database.execute("INSERT INTO t VALUES (2)")
    assert store.inspect(workdir, "s.db")["rows"] == {"t": [{"x": 1}]}
    busy = store.insert(workdir, "s.db", "t", [{"x": 3}])
    assert busy == {"inserted": None, "error": "database is locked"}
    database.close()


def test_the_same_bytes_are_read_once_and_a_row_in_the_log_alone_is_another_content(
    workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ask = list[str](), HELPER.ask

    def counted(op: str, **words: Any) -> Any:
        asked.append(op)
        return ask(op, **words)

    monkeypatch.setattr(HELPER, "ask", counted)
    folder = make(workdir, "PRAGMA journal_mode=WAL; CREATE TABLE t (x)")
    with contextlib.closing(sqlite3.connect(folder / "s.db")) as database:
        for count, expected in enumerate(([], [{"x": 1}], [{"x": 1}, {"x": 2}]), 1):
            if expected:
                database.execute("INSERT INTO t VALUES (?)", (count - 1,))
                database.commit()
            assert [store.inspect(workdir, "s.db")["rows"] for _ in range(2)] == [{"t": expected}] * 2
            assert len(asked) == count


def test_whoever_dies_of_a_request_is_replaced() -> None:
    helper = Helper()
    with pytest.raises(Exception, match="that opens it dies"):
        helper.ask("no such operation")
    assert helper.ask("ignored", path="a", folder=False, rules={"": "a"}) is True
    helper.close()


def test_only_the_very_files_that_the_harness_placed_count_as_its_own() -> None:
    given = ("runtime/list.json", "runtime/letters/")
    assert is_given("runtime/list.json", given)
    assert is_given("runtime/letters/one.json", given)
    assert not is_given("runtime/list.json.bak", given)
    assert not is_given("runtime/letters.db", given)


def test_the_temporary_folder_of_the_adapter_is_searched_with_the_whole_workdir(tmp_path: Path) -> None:
    workdir, temporary = tmp_path / "session-1", begin(tmp_path)
    (workdir / "kept").mkdir(parents=True)
    for name, mode in (("copy", 0o644), ("mine", 0o600)):
        (temporary / name).write_bytes(b"a secret")
        (temporary / name).chmod(mode)
    # A program that unpacks itself.
    (temporary / "unpacked").write_bytes(b"a secret" + bytes(2 << 20))
    found = files.remains(workdir, ".", ["a secret"])
    assert found["files"] == [
        {"path": "TMPDIR/copy", "mode": "0644", "open": True, "which": [0]},
        {"path": "TMPDIR/mine", "mode": "0600", "open": False, "which": [0]},
    ]
    searched = files.search(workdir, ".", ["a secret"])
    assert [each["path"] for each in searched["found"]] == ["TMPDIR/copy", "TMPDIR/mine"]
    # Of a folder in the workdir it is no part.
    assert files.remains(workdir, "kept", ["a secret"])["files"] == []
    assert [each["path"] for each in files.search(workdir, "TMPDIR", ["a secret"])["found"]] == [
        "TMPDIR/copy",
        "TMPDIR/mine",
    ]


def test_a_log_outside_of_the_workdir_is_found_by_what_stands_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, here, root = tmp_path / "home", tmp_path / "here", tmp_path / "holdfast-run"
    workdir = root / "session-1"
    for folder in (home / ".cache" / "app", here, workdir):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    (home / "older").write_bytes(b"a secret")
    os.utime(home / "older", (1, 1))
    begin(root)
    for file in (home / ".cache" / "app" / "log", here / "log", here / "other"):
        file.write_bytes(b"something else" if file.name == "other" else b"it says: a secret")
    (here / "log").chmod(0o600)
    assert files.remains(workdir, ".", ["a secret"])["files"] == [
        {"path": f"{here}/log", "mode": "0600", "open": False, "which": [0]},
        {"path": f"{home}/.cache/app/log", "mode": "0644", "open": True, "which": [0]},
    ]
    assert files.remains(workdir, ".", ["nothing of it"])["files"] == []
