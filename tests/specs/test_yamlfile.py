"""YAML as holdfast reads it: the values of JSON, and no text whose value differs from its appearance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.specs import SpecError
from holdfast.specs.yamlfile import parse_yaml, read_yaml


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        *((word, word) for word in "NO no Yes on OFF y n True FALSE Null NULL".split()),
        *((word, word) for word in "2026-01-01 2026-01-01T00:00:00Z 1:30 190:20:30 1e5 .inf -.INF .nan".split()),
        *((word, word) for word in "1_000 0o17 0x1F 012 +1 = <<".split()),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("-12", -12),
        ("9007199254740991", 2**53 - 1),
        ("0.5", 0.5),
        ("-1.5e3", -1500.0),
        ("'true'", "true"),
        ('"12"', "12"),
        ("a & b", "a & b"),
        ("a *b* c!", "a *b* c!"),
        ("'!x'", "!x"),
    ],
)
def test_a_scalar_is_what_it_looks_like(scalar: str, value: Any) -> None:
    read = parse_yaml(f"a: {scalar}\n", name="f")["a"]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: {x: 1, x: 2}", ("line 2, column 11", "duplicate key 'x'")),
        ("a: 1\na: 1", ("line 2, column 1", "duplicate key 'a'")),
        ("a: 1\n1: x", ("line 2, column 1", "key 1 is not text", "quotes")),
        ("true: x", ("line 1, column 1", "key True is not text")),
        ("~: x", ("key None is not text",)),
        ("? [a]\n: x", ("is not text",)),
        ("a: !!str 5", ("line 1, column 4", "a tag")),
        ("a:\n  - !!timestamp 2026-01-01", ("line 2, column 5", "a tag")),
        ("a: !!python/object/apply:os.system ['true']", ("line 1, column 4", "a tag")),
        ("a: !own {b: 1}", ("a tag",)),
        ("a: !!binary aGk=", ("a tag",)),
        ("!!set {a}", ("line 1, column 1", "a tag")),
        ("{a: !!set {b}}", ("a tag",)),
        ("[!!str 5]", ("a tag",)),
        ("%TAG ! x\n---\na: 1", ("a directive",)),
        ("a: &x [1]\nb: *x", ("line 1, column 4", "an anchor")),
        ("a: &x [*x]", ("an anchor",)),
        ("a: 9007199254740992", ("line 1, column 4", "out of the range of JSON")),
        ("a: 1.5e400", ("line 1, column 4", "out of the range of JSON")),
        ("a: " + "9" * 5000, ("out of the range of JSON",)),
        ("a: [", ("line 2, column 1",)),
        ("a: b: c", ("line 1, column 5",)),
        ("\ta: 1", ("line 1, column 1",)),
        ("--- 1\n--- 2", ("line 2, column 1", "another document")),
        ('a: "\\ud800"', ("line 1, column 7",)),
        ("a: \x07", ("f:",)),
        ("[" * 20_000, ("f",)),
    ],
)
def test_what_json_cannot_say_is_refused_with_its_place(text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(SpecError) as caught:
        parse_yaml(text, name="f")
    missing = [word for word in ("f", *words) if word not in str(caught.value)]
    assert not missing, str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"none\.yaml: expected a YAML file, found nothing"):
        read_yaml(tmp_path / "none.yaml")


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bytes.yaml"
    path.write_bytes(b"a: \xff")
    with pytest.raises(SpecError, match=r"bytes\.yaml: cannot be read"):
        read_yaml(path)
    with pytest.raises(SpecError, match=tmp_path.name):
        read_yaml(tmp_path)
