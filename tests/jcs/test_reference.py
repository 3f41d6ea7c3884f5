"""The canonicaliser by itself: the examples of the RFC, refusals with their places, the standard library beside it."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.reference_impl.jcs.factory import REFERENCE
from holdfast.reference_impl.jcs.terms import Profile, Reason, Refusal, check_reasons, load_limits
from holdfast.reference_impl.jcs.writer import Writer
from holdfast.reference_impl.terms import TermsError

CORE = REFERENCE.build(Profile.CORE)
STRICT = REFERENCE.build(Profile.I_JSON_STRICT)
SAFE = REFERENCE.build(Profile.SAFE_INT)

# RFC 8785 appendix B: the bits of a double and its text.
APPENDIX_B = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


def double(bits: str) -> float:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert isinstance(value, float)
    return value


@pytest.mark.parametrize(("bits", "text"), APPENDIX_B.items())
def test_numbers_of_appendix_b_are_written_as_there(bits: str, text: str) -> None:
    assert Writer().number(double(bits)) == text
    assert CORE.canonicalise(f"[{text}]".encode()) == f"[{text}]".encode()
    assert CORE.canonicalise(repr(double(bits)).encode()) == text.encode()


def test_the_example_of_section_3_2_2_comes_out_as_there() -> None:
    document = rb"""{
  "numbers": [333333333.33333329, 1E30, 4.50,
              2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}"""
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert CORE.canonicalise(document) == expected.encode()


def test_the_example_of_section_3_2_3_is_in_its_order() -> None:
    document = rb'{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}'
    assert (
        CORE.canonicalise(document) == '{"\\r":2,"1":4,"\x80":6,"\xf6":7,"\u20ac":1,"\U0001f600":5,"\ufb33":3}'.encode()
    )


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


@pytest.mark.parametrize(
    ("canonicaliser", "document", "reason"),
    [
        (STRICT, b'["\\ufffe"]', Reason.NONCHARACTER),
        (STRICT, b'{"\\ufdd0":1}', Reason.NONCHARACTER),
        (STRICT, b"[3.141592653589793238]", Reason.NUMBER_TOO_PRECISE),
        (STRICT, b"[1e-400]", Reason.NUMBER_UNDERFLOW),
        (SAFE, b"[9007199254740992]", Reason.UNSAFE_INTEGER),
        (SAFE, b"[-1e20]", Reason.UNSAFE_INTEGER),
    ],
)
def test_a_strict_profile_refuses_what_the_others_accept(canonicaliser: Any, document: bytes, reason: Reason) -> None:
    refusal = canonicaliser.canonicalise(document)
    assert isinstance(refusal, Refusal)
    assert refusal.reason is reason
    others = [other for other in (CORE, STRICT, SAFE) if other is not canonicaliser]
    assert all(isinstance(other.canonicalise(document), bytes) for other in others)


def test_a_hundred_thousand_levels_are_canonicalised_and_the_next_is_refused() -> None:
    limit = load_limits().max_depth
    deep = b"[" * limit + b"]" * limit
    assert CORE.canonicalise(deep) == deep
    assert CORE.canonicalise(b"[" + deep + b"]") == Refusal(Reason.DEPTH_EXCEEDED, limit)
    assert CORE.canonicalise(b"[" * limit) == Refusal(Reason.SYNTAX, limit)


def test_deep_objects_are_written_without_running_out_of_stack() -> None:
    deep = b'{"b":[' * 5_000 + b"0" + b'],"a":1}' * 5_000
    canonical = CORE.canonicalise(deep)
    assert isinstance(canonical, bytes)
    assert canonical.startswith(b'{"a":1,"b":[{"a":1')
    assert CORE.canonicalise(canonical) == canonical


def test_reasons_that_the_contract_does_not_have_are_an_error() -> None:
    with pytest.raises(TermsError, match="NOT_CANONICAL"):
        check_reasons(["SYNTAX"])


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


@settings(max_examples=400)
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
