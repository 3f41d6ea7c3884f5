"""What the cases send is what they say it is."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from holdfast.reference_impl.m5_log.cbor import CborError, decode, encode
from holdfast.vectors.m5_log import derive, encoding
from tests.m5_log.logs import draft

values = st.recursive(
    st.one_of(st.integers(-(2**64), 2**64 - 1), st.text(max_size=6), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=30), inner, max_size=4)),
    max_leaves=12,
).filter(lambda value: not (isinstance(value, dict) and value.keys() == {"cbor"}))


@given(values)
def test_values_are_encoded_as_the_reference_encodes_them(value: Any) -> None:
    assert encoding.value(value) == encode(value)


@pytest.mark.parametrize("number", [0, 23, 24, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**64 - 1])
def test_heads_are_the_shortest(number: int) -> None:
    assert encoding.head(0, number) == encode(number)
    assert encoding.value(-1 - number) == encode(-1 - number)


def test_an_encoding_stands_where_it_is_put() -> None:
    assert encoding.value({"a": {"cbor": "1817"}}) == bytes.fromhex("a161611817")
    with pytest.raises(CborError):
        decode(encoding.value({"cbor": "1817"}), max_depth=1)
    with pytest.raises(ValueError, match="may hold"):
        encoding.value(1.5)


def parts_of(spelt: str) -> tuple[bytes, bytes]:
    body, signature = cast("Sequence[Any]", decode(derive.decoded(spelt), max_depth=4))
    return body, signature


def test_an_operation_is_signed_by_its_author_over_its_body() -> None:
    body, signature = parts_of(derive.op(draft()))
    Ed25519PublicKey.from_public_bytes(derive.key_of("alice")).verify(signature, body)


def test_the_neutral_element_signs_for_a_library_that_does_not_refuse_it() -> None:
    body, signature = parts_of(derive.small_order(draft()))
    Ed25519PublicKey.from_public_bytes(b"\x01" + bytes(31)).verify(signature, body)


def test_a_malleated_signature_differs_in_its_scalar_alone() -> None:
    spelt = derive.op(draft())
    before, after = derive.decoded(spelt), derive.decoded(derive.malleated(spelt))
    assert before[:-32] == after[:-32]
    order = 2**252 + 27742317777372353535851937790883648493
    assert int.from_bytes(after[-32:], "little") - int.from_bytes(before[-32:], "little") == order


@pytest.mark.parametrize("how", ["padded", "spare-bits", "blank", "newline"])
def test_another_spelling_of_a_credential_has_another_hash(how: str) -> None:
    says = {"issuer": "iss", "subject": "bob", "role": "r", "scope": ["t"], "nbf": 1, "exp": 2}
    spelt = derive.credential(says)
    other = derive.respelt({"credential": spelt, "how": how})
    assert derive.cred_hash(spelt) == hashlib.sha256(derive.decoded(spelt)).hexdigest() != derive.cred_hash(other)


def test_a_draft_with_an_unknown_member_is_refused() -> None:
    with pytest.raises(ValueError, match="typo"):
        derive.op({**draft(), "typo": 1})
    with pytest.raises(ValueError, match="typo"):
        derive.credential({"typo": 1})


def test_rows_are_joined_of_their_parts() -> None:
    parts = [{"hex": "00ff"}, {"text": "a"}, {"number": 258}, {"hlc": [1, 2]}, {"base64url": "AQ"}]
    expected = b"\x00\xffa" + (258).to_bytes(8, "big") + derive.hlc(1, 2) + b"\x01"
    assert derive.decoded(derive.row({"parts": parts})) == expected
