"""The documents of the jcs suite: a disguise keeps the value, and the helpers say what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import base64url
from holdfast.conformance.run.documents import VERDICT_OF
from holdfast.conformance.suites.jcs.documents import disguised, drawn, same_value, value_of
from holdfast.conformance.suites.jcs.judging import Part, canonicalised, part_of
from holdfast.conformance.verdict import Verdict
from holdfast.vectors.jcs.frames import Answered, Status
from holdfast.vectors.jcs.spark.tally import Meaning, disagreement
from holdfast.vectors.record import Canonical, Refused, load
from holdfast.vectors.taxonomy import Profile


@given(st.integers(0, 2**32))
def test_a_disguise_is_json_and_keeps_the_value(seed: int) -> None:
    value = drawn(Random(seed))
    document = disguised(value, Random(seed))
    assert same_value(json.loads(document.decode("utf-8"), parse_int=float), value)
    assert document == disguised(value, Random(seed)), "a disguise is fixed by its seed"


def test_drawn_values_are_of_every_kind_and_fixed_by_their_seed() -> None:
    values = [drawn(Random(seed)) for seed in range(300)]
    assert {type(value) for value in values} == {type(None), bool, float, str, list, dict}
    assert str(values) == str([drawn(Random(seed)) for seed in range(300)])
    text = "".join(value for value in values if isinstance(value, str))
    assert all(
        any(low <= ord(one) <= high for one in text) for low, high in ((0, 31), (0x80, 0x7FF), (0x10000, 0x10FFFF))
    )
    assert not any(0xD800 <= ord(one) <= 0xDFFF for one in text)


def test_disguises_differ() -> None:
    value = {"a": [1.5, "x/\n", None, True], "b": {}, "\u20ac": 1e21}
    assert len({disguised(value, Random(seed)) for seed in range(50)}) > 45


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ({"a": 1.0, "b": [None]}, {"b": [None], "a": 1.0}, True),
        (0.0, -0.0, True),
        (True, 1.0, False),
        (["a", "b"], ["b", "a"], False),
        ([1.0], [1.0, 2.0], False),
        # Their bytes are judged apart.
        ([1.0, 2.0], [2.0, 1.0], True),
        ([], {}, True),
        ([], {"a": []}, False),
        ({"a": 1.0}, {"a": 1.0, "b": 1.0}, False),
        ("e\u0301", "\u00e9", False),
    ],
)
def test_values_are_compared_as_json_has_them(left: Any, right: Any, same: bool) -> None:
    assert same_value(left, right) is same


def test_the_value_of_what_is_no_json_is_an_error() -> None:
    for broken in (b"[1", b"\xff", b"None"):
        with pytest.raises(ValueError, match=r"."):
            value_of(broken)


@pytest.mark.parametrize(
    ("due", "given", "part"),
    [
        (b"[1]", b"[1.0]", Part.NUMBER),
        (b"[2.5]", b"[2,5]", Part.NUMBER),
        (b"[0]", b"[-0]", Part.NUMBER),
        (b"[1]", b"[null]", Part.NUMBER),
        (b'["\\n"]', b'["\\u000a"]', Part.STRING),
        ('["\u00e9"]'.encode(), b'["\\u00e9"]', Part.STRING),
        (b'{"a":1,"b":2}', b'{"b":2,"a":1}', Part.ORDER),
        (b"[1,2]", b"[2,1]", Part.ORDER),
        (b"[1,2]", b"[1, 2]", Part.FORM),
        (b"[1]", b"[1]\n", Part.FORM),
        (b'"a"', b'\xef\xbb\xbf"a"', Part.FORM),
        (b"{}", b"[]", Part.FORM),
        (b'{"a":{},"b":[]}', b'{"a":[],"b":[]}', Part.FORM),
        (b'{"a":null,"b":1}', b'{"b":1}', Part.FORM),
        (b"[true]", b"[True]", Part.FORM),
    ],
)
def test_wrong_bytes_are_those_of_the_part_where_they_begin(due: bytes, given: bytes, part: Part) -> None:
    assert part_of(due, given) is part


@pytest.mark.parametrize("finding", [each for each in Meaning if each is not Meaning.NO_VERDICT])
def test_an_answer_has_one_verdict_in_a_run_of_the_contract_and_in_one_of_vectors(finding: Meaning) -> None:
    is_refused = finding is Meaning.ACCEPTED
    due = Refused("SYNTAX") if is_refused else Canonical(b"[1]")
    body = b"[1.0]" if finding is Meaning.WRONG_BYTES else b"[1]"
    given = Answered(Status.REFUSED, b"SYNTAX") if finding is Meaning.OVER_REFUSAL else Answered(Status.CANONICAL, body)
    expected = Answered(Status.REFUSED, b"SYNTAX") if is_refused else Answered(Status.CANONICAL, b"[1]")
    assert disagreement(expected, given) is finding
    answer = Answer("accepted", "new", None, {"canonical": base64url(body)}, None)
    if given.status is Status.REFUSED:
        answer = Answer("refused", None, "SYNTAX", None, None)
    session: Any = SimpleNamespace(call=lambda *_: answer)
    record = replace(load("jcs")[0], expected={Profile.CORE: due})
    found = [each.verdict for each in canonicalised(Profile.CORE, session, record, 0)]
    assert (found or [Verdict.CONFORMS]) == [VERDICT_OF[finding]]
