"""Committed records: they come back as they were written, and what is damaged is not read."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import holdfast.vectors.committed
from holdfast.specs.errors import SpecError
from holdfast.vectors.committed import files, fingerprint_records, jcs_records
from holdfast.vectors.fingerprints import load as load_fingerprints
from holdfast.vectors.fingerprints.record import read as read_fingerprints
from holdfast.vectors.fingerprints.record import write as write_fingerprints
from holdfast.vectors.record import Canonical, Refused, load, read, write
from holdfast.vectors.taxonomy import Category, Profile

LINE = write(jcs_records()[:1])


def _changed(**members: object) -> bytes:
    return json.dumps({**json.loads(LINE), **members}).encode() + b"\n"


def test_what_is_loaded_is_what_the_program_makes() -> None:
    assert load() == jcs_records()
    assert load_fingerprints() == tuple(record for page in fingerprint_records().values() for record in page)


def test_records_come_back_as_they_were_written() -> None:
    assert tuple(read(write(jcs_records()), place="here")) == jcs_records()
    for page in fingerprint_records().values():
        assert tuple(read_fingerprints(write_fingerprints(page), place="here")) == page


def test_there_are_a_few_hundred_records_in_every_category_and_they_are_small() -> None:
    assert len(load()) > 400
    assert {record.category for record in load()} == set(Category)
    assert sum(map(len, files().values())) < 1_000_000


def test_every_document_of_the_contested_topics_has_an_answer_in_each_profile() -> None:
    by_id = {record.id: record for record in load()}
    assert by_id["P5-two-to-53"].expected[Profile.SAFE_INT] == Refused("UNSAFE_INTEGER")
    assert by_id["P5-two-to-53"].expected[Profile.CORE] == Canonical(b"[9007199254740992]")
    assert by_id["P4-pi-long"].expected[Profile.I_JSON_STRICT] == Refused("NUMBER_TOO_PRECISE")
    assert by_id["P8-nonchar-ffff"].refused_by == Profile.I_JSON_STRICT.bit
    assert by_id["N1-plain"].refused_by == sum(profile.bit for profile in Profile)
    assert by_id["N1-plain"].canonical is None


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (LINE[:-1], "cut off"),
        (b"", "cut off"),
        (b"\n", "expected one JSON object"),
        (b"{}\n", "required"),
        (LINE.replace(b'"id"', b'"id": "P1-x", "id"'), "duplicate"),
        (_changed(document="5B"), "does not match"),
        (_changed(document="5"), "does not match"),
        (_changed(document="5b5d\n"), "does not match"),
        (_changed(category="P99"), "is not one of"),
        (_changed(surprise=1), "surprise"),
        (_changed(kills=["a", "a"]), "non-unique"),
        (_changed(expected={"core": {"canonical": "5b5d"}}), "required"),
        (_changed(note=""), "note"),
    ],
)
def test_a_damaged_line_is_an_error_that_names_its_place(data: bytes, told: str) -> None:
    with pytest.raises(SpecError, match=told) as raised:
        read(data, place="file.jsonl")
    assert str(raised.value).startswith("file.jsonl")


def test_a_set_that_is_not_there_is_an_error() -> None:
    with pytest.raises(SpecError, match="found none"):
        load("nowhere")


def test_a_damaged_fingerprint_line_is_an_error() -> None:
    line = write_fingerprints(fingerprint_records()["mesh"][:1])
    for data, told in ((line[:-1], "cut off"), (b"[]\n", "object"), (line.replace(b'"preimage"', b'"pre"'), "pre")):
        with pytest.raises(SpecError, match=told):
            read_fingerprints(data, place="file.jsonl")


def test_the_program_that_makes_the_vectors_calls_no_canonicaliser() -> None:
    allowed = {
        "__future__",
        "base64",
        "collections",
        "dataclasses",
        "hashlib",
        "itertools",
        "pathlib",
        "typing",
        "holdfast.vectors",
    }
    for path in Path(next(iter(holdfast.vectors.committed.__path__))).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found = {f"{node.module}.{alias.name}" for alias in node.names}
            else:
                continue
            assert {_package(name) for name in found} <= allowed, path.name


def _package(name: str) -> str:
    """The package of a module: of the kit's own the one below `holdfast`."""
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] == "holdfast" else parts[0]
