"""The canonicaliser by itself: the byte that a refusal names, which no case asks for."""

from __future__ import annotations

from enum import Enum

import pytest

from holdfast.reference_impl.jcs.canonicaliser import Canonicaliser
from holdfast.reference_impl.jcs.terms import Profile, Reason, Refusal

CORE = Canonicaliser(Profile.CORE)


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
def test_a_refusal_names_the_byte_where_the_defect_is(document: bytes, reason: Enum, offset: int) -> None:
    assert CORE.canonicalise(document) == Refusal(reason, offset)
    assert CORE.verify(document) == Refusal(reason, offset)


@pytest.mark.parametrize(
    ("document", "offset"),
    [(b'{ "a":1}', 1), (b'{"a":1}\n', 7), (b"[1.0]", 2), (b'{"b":1,"a":2}', 2), (b"1e2", 1)],
)
def test_verify_names_the_byte_where_document_and_canonical_form_part(document: bytes, offset: int) -> None:
    assert CORE.verify(document) == Refusal(Reason.NOT_CANONICAL, offset)
