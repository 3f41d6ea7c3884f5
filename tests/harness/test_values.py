"""Values in cases: names, holes, copies, random suffixes, times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as replace_case

from holdfast.conformance.cases.values import (
    CaseError,
    Scope,
    at_path,
    drop_path,
    is_missing,
    put_path,
    shift,
)
from holdfast.conformance.verdict import Verdict
from tests.harness.play import Player, toy_case

NOW = "2026-01-01T00:00:00Z"
SUBMISSION = {"request": {"id": "r-${rand:r}", "at": "${now}", "tags": ["a", "b"]}, "n": 7}
SCOPE = Scope(
    seed="s", case="toy/a/b", side="main", opened=NOW, now=NOW,
    defined={"submission": SUBMISSION, "name": "plain", "number": 12, "alias": "$name", "later": "${now+60s}"},
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        ("text", "text"),
        ("$name", "plain"),
        ("$alias", "plain"),
        ("$number", 12),
        ("$submission.n", 7),
        ("$submission.request.tags.1", "b"),
        ("<${name}>", "<plain>"),
        ("${number}", "12"),
        ("${submission.n} of ${name}", "7 of plain"),
        ("$$", "$"),
        ("$$name", "$name"),
        ("5$$ and ${name}", "5$ and plain"),
        ("a $name inside", "a $name inside"),
        ("^x$", "^x$"),
        (None, None),
        (True, True),
        (["$name", {"a": ["$number"]}], ["plain", {"a": [12]}]),
        ({"$repeat": "ab", "times": 3}, "ababab"),
        ({"$repeat": "$name", "times": 2}, "plainplain"),
        ({"$utf8": ""}, ""),
        ({"$utf8": '{"\u20ac":1}'}, "eyLigqwiOjF9"),
        ({"$utf8": "<${name}>"}, "PHBsYWluPg"),
        ({"$utf8": {"$repeat": "[", "times": 3}}, "W1tb"),
        ({"$hex": "ff fe5b 00"}, "__5bAA"),
        ({"a": [{"$hex": "5b5d"}]}, {"a": ["W10"]}),
    ],
)
def test_a_value_is_resolved(value: Any, resolved: Any) -> None:
    assert SCOPE.resolve(value) == resolved


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("$nobody", "unknown name $nobody; known here: alias, later, name"),
        ("${nobody}", "unknown name $nobody"),
        ("$submission.request.nothing", "leads nowhere"),
        ("$submission.request.tags.2", "leads nowhere"),
        ("$name.length", "leads nowhere"),
        ("$no-such-name", "is no name"),
        ("$Name", "is no name"),
        ("$ 5", "is no name"),
        ("${submission}", "no text and no number"),
        ("<${submission.request.tags}>", "no text and no number"),
        ({"$from": "nobody"}, "unknown name"),
        ({"$from": "$submission", "set": {"other.x": 1}}, "no such place"),
        ({"$from": "$submission", "set": {"request.tags.9": 1}}, "no such place"),
        ({"$from": "$submission", "drop": ["request.nothing"]}, "no such member"),
        ({"$from": "$submission", "drop": ["request.tags.0"]}, "no such member"),
        ({"$utf8": 5}, "$utf8 takes text, not 5"),
        ({"$utf8": "\ud800"}, "surrogates not allowed"),
        ({"$hex": "5"}, "$hex '5'"),
        ({"$hex": "0x"}, "$hex '0x'"),
        ({"$hex": "5b", "$utf8": "]"}, "nothing beside it"),
        ("${now+5x}", "expected an instant, or a span"),
        ("${now+999999999999d}", "expected an instant, or a span"),
    ],
)
def test_a_value_without_a_meaning_is_an_error_of_the_case(value: Any, words: str) -> None:
    with pytest.raises(CaseError) as caught:
        SCOPE.resolve(value)
    assert words in str(caught.value)


def test_a_name_that_is_defined_by_itself_is_an_error_with_its_way() -> None:
    scope = replace(SCOPE, defined={"a": "$b", "b": ["${c}"], "c": {"$from": "a"}})
    with pytest.raises(CaseError, match=r"\$a is defined by itself: a -> b -> c -> a"):
        scope.resolve("$a")


def test_a_copy_is_changed_and_its_source_is_not() -> None:
    changed = {"$from": "$submission", "set": {"request.id": "$name", "n": [1], "new": None}, "drop": ["request.tags"]}
    resolved = SCOPE.resolve(changed)
    assert resolved == {"request": {"id": "plain", "at": NOW}, "n": [1], "new": None}
    assert SCOPE.resolve("$submission.request.tags") == ["a", "b"]
    assert SCOPE.resolve({"$from": "submission.request", "set": {"tags.0": "z"}})["tags"] == ["z", "b"]


def test_a_resolved_value_shares_nothing_with_its_source() -> None:
    scope = SCOPE.bind("got", {"rows": [1]})
    first = scope.resolve({"x": "$got"})
    first["x"]["rows"].append(2)
    assert scope.resolve("$got") == {"rows": [1]}


def test_what_an_answer_brought_is_not_resolved_again() -> None:
    scope = SCOPE.bind("n1", "$name").bind("n2", {"$from": "submission"}).bind("n3", "${rand:x}")
    assert scope.resolve(["$n1", "$n2", "$n3", "${n1}"]) == ["$name", {"$from": "submission"}, "${rand:x}", "$name"]


def test_a_bound_name_goes_before_a_defined_one_and_a_scope_never_changes() -> None:
    assert SCOPE.bind("name", "bound").resolve("$alias") == "bound"
    assert SCOPE.resolve("$alias") == "plain"


@pytest.mark.parametrize(
    ("hole", "instant"),
    [
        ("${now}", "2026-01-01T01:00:00Z"),
        ("${now+60s}", "2026-01-01T01:01:00Z"),
        ("${now-1h}", "2026-01-01T00:00:00Z"),
        ("${now-2d}", "2025-12-30T01:00:00Z"),
        ("${now+1m}", "2026-01-01T01:01:00Z"),
        ("${now+0.5s}", "2026-01-01T01:00:00.500000Z"),
        ("at ${now-0s}!", "at 2026-01-01T01:00:00Z!"),
    ],
)
def test_now_is_the_clock_of_the_step(hole: str, instant: str) -> None:
    assert SCOPE.at("2026-01-01T01:00:00Z").resolve(hole) == instant


def test_values_keep_the_time_at_which_the_session_was_opened() -> None:
    later = SCOPE.at("2026-01-01T01:00:00Z")
    assert later.resolve("$submission.request.at") == NOW
    assert later.resolve("$later") == "2026-01-01T00:01:00Z"
    assert later.resolve({"$from": "submission", "set": {"request.at": "${now}"}})["request"]["at"] == (
        "2026-01-01T01:00:00Z"
    )


@pytest.mark.parametrize(
    ("step", "to"),
    [("+300s", "2026-01-01T00:05:00Z"), ("-1d", "2025-12-31T00:00:00Z"), ("2027-02-03T04:05:06Z",) * 2],
)
def test_the_clock_is_moved_by_a_span_or_to_an_instant(step: str, to: str) -> None:
    assert shift(NOW, step) == to


@pytest.mark.parametrize("step", ["tomorrow", "+5", "+5w", "5s", "", "+s", "+1.1234567s"])
def test_a_step_of_the_clock_without_a_meaning_is_an_error_of_the_case(step: str) -> None:
    with pytest.raises(CaseError, match="expected an instant, or a span"):
        shift(NOW, step)


def test_paths_lead_through_objects_and_arrays() -> None:
    value = {"a": [{"b": 1}], "": 0}
    assert at_path(value, "a.0.b") == 1
    assert at_path(value, "") == value
    for nowhere in ("b", "a.1", "a.x", "a.-1", "a.0.b.c"):
        assert is_missing(at_path(value, nowhere))
    put_path(value, "a.0.c", 2)
    drop_path(value, "a.0.b")
    assert value["a"] == [{"c": 2}]


def test_an_answer_that_a_case_cannot_go_on_with_is_no_fault_of_the_kit() -> None:
    asked = {"observe": "state", "bind": {"rows": "value.entry"}}
    for unusable in ("<${rows}>", {"$hex": "$rows"}, "$rows.0.nothing", "$beside"):
        case = toy_case("a-put-key-stands-on-the-shelf", when=(asked, {"check": unusable, "equals": "x"}))
        found = Player().play(replace_case(case, values={**case.values, "beside": ["<${rows}>"]}))
        assert found.verdict is Verdict.NOT_REACHED
        assert "what the adapter answered" in found.detail
    case = toy_case("a-put-key-stands-on-the-shelf", when=(asked, {"check": "${nobody}", "equals": "x"}))
    assert Player().play(case).verdict is Verdict.KIT_FAULT
