"""Short entries mean what they are in full, and one that cannot be written in full is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.specs.errors import SpecError
from holdfast.specs.registry import contracts
from holdfast.specs.schema import explain, published_validator
from holdfast.specs.short import in_full
from holdfast.specs.yamlfile import parse_yaml, read_yaml

from .conftest import Change, Spoilt

AGAIN = "a-second-put-of-a-key-is-refused"


def full(text: str) -> Any:
    """What the file of this text is in full."""
    return in_full(parse_yaml(text, name="x"), "x.yaml")


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (
            "{forms: {put: {call: put, args: {key: <key>}}}, cases: [{given: [{use: put, key: $a}]}]}",
            "{cases: [{given: [{call: put, args: {key: $a}}]}]}",
        ),
        (
            "{forms: {put: {call: put}}, cases: [{given: [put], when: [{use: put, worker: 1, expect: new}]}]}",
            "{cases: [{given: [{call: put}], when: [{call: put, worker: 1, expect: new}]}]}",
        ),
        (
            "{forms: {two: [{call: put}, {call: <other>}]}, cases: [{when: [{use: two, other: get}, {kill: 0}]}]}",
            "{cases: [{when: [{call: put}, {call: get}, {kill: 0}]}]}",
        ),
        (
            "{forms: {put: {call: put, args: {<member>: 'a <n> b'}}}, cases: [{then: [{use: put, member: m, n: 3}]}]}",
            "{cases: [{then: [{call: put, args: {m: 'a 3 b'}}]}]}",
        ),
        (
            "{cases: [{when: [{call: put, each: [{args: {key: a}}, {args: {key: b}}]}]}]}",
            "{cases: [{when: [{call: put, args: {key: a}}, {call: put, args: {key: b}}]}]}",
        ),
        (
            "{forms: {a: {call: <name>}, b: [{use: a, name: put}, {use: a, name: <last>}]}, "
            "cases: [{each: [{id: x}, {id: y}], given: [{use: b, last: get}]}]}",
            "{cases: [{id: x, given: [{call: put}, {call: get}]}, {id: y, given: [{call: put}, {call: get}]}]}",
        ),
        (
            "{forms: {c: {id: t/<name>, when: [{call: put, args: <args>}]}}, "
            "cases: [{use: c, each: [{name: x, args: {a: 1}}, {name: y, args: {}, title: z}]}]}",
            "{cases: [{id: t/x, when: [{call: put, args: {a: 1}}]}, "
            "{id: t/y, when: [{call: put, args: {}}], title: z}]}",
        ),
        (
            "{forms: {put: {call: put, args: {a: 1, <more>: }}}, "
            "cases: [{when: [put, {use: put, more: {b: 2, c: 3}}]}]}",
            "{cases: [{when: [{call: put, args: {a: 1}}, {call: put, args: {a: 1, b: 2, c: 3}}]}]}",
        ),
        (
            "{forms: {s: {title: <t>, given: [{call: put}]}}, sweeps: {one: {use: s, t: x}}}",
            "{sweeps: {one: {title: x, given: [{call: put}]}}}",
        ),
        (
            "{values: {use: x, each: [1]}, cases: [{args: {use: y}}]}",
            "{values: {use: x, each: [1]}, cases: [{args: {use: y}}]}",
        ),
    ],
)
def test_a_short_entry_is_written_in_full(short: str, long: str) -> None:
    assert full(short) == parse_yaml(long, name="x")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{cases: [{id: a/b/c, given: [put]}]}", "cases/0 (a/b/c): unknown form 'put'; known: none"),
        ("{forms: {puts: {call: put}}, cases: [{given: [put]}]}", "did you mean puts"),
        (
            "{forms: {put: {call: <x>}}, cases: [{given: [put]}]}",
            "form 'put': expected x, got nothing; fill every hole",
        ),
        ("{forms: {put: {call: <x>}}, cases: [{given: [{use: put, y: 1}]}]}", "expected x, got y"),
        (
            "{forms: {put: {call: put}}, cases: [{given: [{use: put, call: get}]}]}",
            "call is there already",
        ),
        ("{forms: {put: [{call: put}]}, cases: [{given: [{use: put, y: 1}]}]}", "no more than its holes, got y"),
        ("{forms: {put: {call: 'a <x>'}}, cases: [{given: [{use: put, x: [1]}]}]}", "x: expected a text or an integer"),
        ("{forms: {put: {call: put, <x>: }}, cases: [{given: [{use: put, x: 1}]}]}", "x: expected members, such as"),
        ("{forms: {put: {call: put, <x>: }}, cases: [{given: [{use: put, x: {call: 1}}]}]}", "call is there already"),
        ("{forms: {a: {use: a}}, cases: [{given: [a]}]}", "unknown form 'a'"),
        ("{forms: 3}", "forms: expected the entries by their names, got 3"),
        ("{cases: [{each: 3}]}", "each: expected a list of what differs"),
        ("{cases: [{id: x, each: [{id: y}]}]}", "cases/0 (x): id is there already, got 'y'"),
        ("{sweeps: {one: {use: s}}}", "sweeps/one: unknown form 's'"),
        ("{forms: {s: [{a: 1}, {b: 1}]}, sweeps: {one: {use: s}}}", "sweeps/one: expected one entry, got 2"),
    ],
)
def test_what_cannot_be_written_in_full_is_named_with_its_place(text: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        full(text)
    assert str(caught.value).startswith("x.yaml: ")
    assert words in str(caught.value)


def shorten(toy: Spoilt) -> None:
    """A case is written by forms."""
    case = toy.case(AGAIN)
    toy.once["forms"] = {
        "shelved": case["given"],
        "again": {part: case.pop(part) for part in ("title", "when", "given")},
    }
    toy.once["forms"]["again"]["given"] = ["shelved"]
    case["use"] = "again"


def without_kinds(toy: Spoilt) -> None:
    """No case says the kind that follows from its twin."""
    for case in (*toy.once["cases"], *toy.hard["cases"]):
        if case["kind"] == ("refusal" if "twin" in case else "behaviour"):
            case.pop("kind")


def say_all(toy: Spoilt) -> None:
    """A clause says what goes without saying, and a case names its clause, which follows from its topic."""
    toy.clause("TOY-01").update(level="MUST", basis="explicit", proof="run")
    toy.case(AGAIN)["id"] = f"toy/01/{AGAIN}"
    part = {
        "type": "object",
        "additionalProperties": False,
        "required": ["members"],
        "properties": {"members": {"enum": [{"members": 1}]}, "note": {"type": "string"}},
    }
    toy.methods["$defs"]["entry"] = part
    toy.methods["observations"]["state"]["result"] = {"anyOf": [part, {"type": "object"}]}


def say_little(toy: Spoilt) -> None:
    """What follows is not said, and a closed object of a schema is a list of its members."""
    for part in ("level", "basis", "proof"):
        toy.clause("TOY-01").pop(part)
    toy.case(AGAIN).pop("clause")
    members = {"members": {"members": {"enum": [{"members": 1}]}, "note?": {"type": "string"}}}
    toy.methods["$defs"]["entry"] = members
    toy.methods["observations"]["state"]["result"] = {"anyOf": [members, {"type": "object"}]}


@pytest.mark.parametrize("change", [shorten, without_kinds, say_little])
def test_a_contract_is_the_same_in_both_ways(change: Change, toy: Spoilt) -> None:
    say_all(toy)
    before = toy.read()
    change(toy)
    after = toy.read()
    assert (after.digest, after.cases_digest, after.cases) == (before.digest, before.cases_digest, before.cases)
    assert after.clauses == before.clauses


def test_a_case_whose_topic_names_no_clause_says_one(toy: Spoilt) -> None:
    toy.case(AGAIN).update(id=f"toy/none/{AGAIN}")
    toy.case(AGAIN).pop("clause")
    with pytest.raises(SpecError, match="a clause whose id ends with 'none', got none; say `clause: ID`"):
        toy.read()


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"members": ["a"]}, "members: expected a schema for each name"),
        ({"members": {}, "properties": {"a": {}}}, "properties is there already"),
    ],
)
def test_a_closed_object_that_is_none_is_refused_with_its_file(toy: Spoilt, schema: Any, words: str) -> None:
    toy.methods["observations"]["state"]["result"] = schema
    with pytest.raises(SpecError, match=r"methods\.yaml: ") as caught:
        toy.read()
    assert words in str(caught.value)


def test_forms_of_a_contract_are_known_in_all_of_its_files(toy: Spoilt) -> None:
    toy.once["values"] = {"kept": 1, "mine": 2}
    before = toy.read()
    toy.once["values"] = {"use": "what is kept", "mine": 2}
    forms = {"contract": "toy", "forms": {"what is kept": {"kept": 1}, "shelved": toy.case(AGAIN)["given"]}}
    (toy.folder / "forms.yaml").write_text(json.dumps(forms), encoding="utf-8")
    toy.case(AGAIN)["given"] = ["shelved"]
    after = toy.read()
    assert (after.cases_digest, after.cases) == (before.cases_digest, before.cases)
    toy.once["forms"] = {"shelved": []}
    with pytest.raises(SpecError, match=r"once\.yaml: form 'shelved' is one of forms\.yaml"):
        toy.read()


@pytest.mark.parametrize(
    ("name", "path"),
    [
        (schema, path)
        for one in contracts().values()
        for schema, pattern in (
            ("cases", "cases/*.yaml"),
            ("neighbours", "neighbours.yaml"),
            ("automatic", "automatic.yaml"),
            ("forms", "forms.yaml"),
        )
        for path in sorted(one.folder.glob(pattern))
    ],
    ids=lambda part: "" if isinstance(part, str) else f"{part.parent.parent.name}/{part.stem}",
)
def test_a_shipped_file_fits_the_published_schema_as_it_is_written(name: str, path: Path) -> None:
    assert explain(published_validator(name), read_yaml(path)) is None


def test_the_published_schema_refuses_what_is_neither_short_nor_full(toy: Spoilt) -> None:
    file = json.loads(json.dumps(toy.once))
    file["cases"][0].pop("title")
    assert "title" in str(explain(published_validator("cases"), file))
    file["cases"][0]["use"] = "a form"
    assert explain(published_validator("cases"), file) is None
