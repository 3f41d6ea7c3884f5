"""The canonicaliser by itself: the examples of the RFC, refusals with their places, the standard library beside it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.reference_impl.jcs.factory import REFERENCE
from holdfast.reference_impl.jcs.terms import Profile, Reason, Refusal

CORE = REFERENCE.build(Profile.CORE)
STRICT = REFERENCE.build(Profile.I_JSON_STRICT)
SAFE = REFERENCE.build(Profile.SAFE_INT)


@pytest.mark.parametrize(
    ("document", "reason", "offset"),
    [
        (b"", Reason.SYNTAX, 0),
        (b"[1,]", Reason.SYNTAX, 3),
        (b"[01]", Reason.SYNTAX, 2),
        (b'{"a":1,"b"}', Reason.SYNTAX, 10),
        (b"[1] x", Reason.SYNTAX, 4),
        (b'["\xe2\x82\xac\x01"]', Reason.SYNTAX, 5),
        (b'["\xe2\x82\xac\\q"]', Reason.SYNTAX, 5),
        (b'["\\u12"]', Reason.SYNTAX, 2),
        (b'["never closed', Reason.SYNTAX, 14),
        (b'["abc\xff"]', Reason.INVALID_UTF8, 5),
        (b"\xef\xbb\xbf[]", Reason.BYTE_ORDER_MARK, 0),
        (b'{"\xc3\xa9":1,"\\u00e9":2}', Reason.DUPLICATE_NAME, 8),
        (b'[{"a":1,"a":1}]', Reason.DUPLICATE_NAME, 8),
        (b'["\xf0\x9f\x98\x80\\ud800"]', Reason.LONE_SURROGATE, 6),
        (b"[1, -1e400]", Reason.NUMBER_OUT_OF_RANGE, 4),
    ],
)
def test_a_refusal_names_the_byte_where_the_defect_is(document: bytes, reason: Reason, offset: int) -> None:
    assert CORE.canonicalise(document) == Refusal(reason, offset)
    assert CORE.verify(document) == Refusal(reason, offset)


@pytest.mark.parametrize(
    ("document", "offset"),
    [(b'{ "a":1}', 1), (b'{"a":1}\n', 7), (b"[1.0]", 2), (b'{"b":1,"a":2}', 2), (b"1e2", 1)],
)
def test_verify_names_the_byte_where_document_and_canonical_form_part(document: bytes, offset: int) -> None:
    assert CORE.verify(document) == Refusal(Reason.NOT_CANONICAL, offset)


# Beside the standard library, whose parser is as strict as ours with the right options.


class StrangeError(ValueError):
    """JSON to the standard library, and not to I-JSON."""


def as_the_library_reads(document: bytes) -> Any:
    """The value of `document`. Raises ValueError for what core refuses."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise StrangeError("duplicate name")
        return found

    def constant(text: str) -> None:
        raise StrangeError(text)

    def number(text: str) -> float:
        value = float(text)
        if value in (float("inf"), float("-inf")):
            raise StrangeError(text)
        return value

    value = json.loads(
        document.decode("utf-8"),
        object_pairs_hook=members,
        parse_constant=constant,
        parse_int=number,
        parse_float=number,
    )
    # Raises UnicodeEncodeError, which is a ValueError, for a lone surrogate.
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_a_valid_document_is_read_as_the_standard_library_reads_it(
    value: Any, indent: int | None, ascii_: bool
) -> None:
    document = json.dumps(value, indent=indent, ensure_ascii=ascii_).encode("utf-8")
    expected = as_the_library_reads(document)
    assert CORE.reader.read(document) == expected
    canonical = CORE.canonicalise(document)
    assert isinstance(canonical, bytes)
    assert as_the_library_reads(canonical) == expected
    assert CORE.canonicalise(canonical) == canonical
    assert CORE.verify(canonical) is None


_PIECES = st.sampled_from(
    [*'{}[]:,"\\/01-+.eE_a \t\n\0\x01\u00e9\ufeff\u2028\u0661', "9" * 20, "1e999", "true", "null", "NaN", "/*"]
) | st.sampled_from(["\\u", "\\ud83d", "\\ude00", "\\u0061", '"a":', '"a":1', '{"a":1,', "[", "]"])
_EDITS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 3), _PIECES), min_size=1, max_size=4)


@settings(max_examples=150)
@given(VALUES, _EDITS, st.booleans())
def test_what_is_accepted_of_spoilt_documents_is_what_the_standard_library_accepts(
    value: Any, edits: list[tuple[int, int, str]], ascii_: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_)
    for place, dropped, piece in edits:
        at = place % (len(text) + 1)
        text = text[:at] + piece + text[at + dropped :]
    document = text.encode("utf-8")
    answer = CORE.canonicalise(document)
    try:
        expected = as_the_library_reads(document)
    except ValueError:
        assert isinstance(answer, Refusal)
        assert 0 <= answer.offset <= len(document)
    else:
        assert isinstance(answer, bytes)
        assert as_the_library_reads(answer) == expected


@given(st.binary(max_size=40))
def test_any_bytes_get_an_answer(document: bytes) -> None:
    answer = CORE.canonicalise(document)
    if isinstance(answer, Refusal):
        assert CORE.verify(document) == answer
    else:
        assert as_the_library_reads(document) == as_the_library_reads(answer)


@given(VALUES)
def test_a_strict_profile_only_refuses(value: Any) -> None:
    document = json.dumps(value).encode("utf-8")
    core = CORE.canonicalise(document)
    for canonicaliser in (STRICT, SAFE):
        answer = canonicaliser.canonicalise(document)
        assert isinstance(answer, Refusal) or answer == core
        if isinstance(answer, bytes):
            assert canonicaliser.canonicalise(answer) == answer
