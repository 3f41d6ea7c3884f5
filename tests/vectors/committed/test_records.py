"""Committed records: what is there, and that what is damaged is not read."""

from __future__ import annotations

import json

import pytest

from holdfast.specs.errors import SpecError
from holdfast.vectors.fingerprints import load as load_fingerprints
from holdfast.vectors.fingerprints.record import read as read_fingerprints
from holdfast.vectors.lint import FOLDER
from holdfast.vectors.record import load, read
from holdfast.vectors.taxonomy import Category


def _first(name: str) -> bytes:
    return (FOLDER / name).read_bytes().splitlines(keepends=True)[0]


LINE = _first("jcs/data/P1.jsonl")


def _changed(**members: object) -> bytes:
    return json.dumps({**json.loads(LINE), **members}).encode() + b"\n"


def test_there_are_a_few_hundred_records_in_every_category_and_they_are_small() -> None:
    assert len(load()) > 400
    assert {record.category for record in load()} == set(Category)
    assert sum(path.stat().st_size for path in FOLDER.glob("*/data/*.jsonl")) < 1_000_000


def test_both_contracts_have_fingerprints_that_are_due_and_refusals() -> None:
    for contract in ("mesh-delivery", "rs4a-replay"):
        assert {record.sha256 is None for record in load_fingerprints() if record.contract == contract} == {True, False}


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
    line = _first("mesh_delivery/data/fingerprints.jsonl")
    for data, told in ((line[:-1], "cut off"), (b"[]\n", "object"), (line.replace(b'"preimage"', b'"pre"'), "pre")):
        with pytest.raises(SpecError, match=told):
            read_fingerprints(data, place="file.jsonl")
