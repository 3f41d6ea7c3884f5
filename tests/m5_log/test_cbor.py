"""One value has one encoding, and only that is read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.reference_impl.m5_log.cbor import CborError, Map, Value, decode, encode
from holdfast.vectors.m5_log.committed import encodings

DEPTH = 8
ACCEPTED = [vector for vector in encodings() if "value" in vector]
REFUSED = [vector for vector in encodings() if "why" in vector]
# RFC 8949 section 4.2.1 has these keys, and arrays as keys besides, which no operation has.
BYTEWISE = "a60a00186400200061620062616100f400"
LENGTH_FIRST = "a60a002000f40018640061620062616100"


def value_of(listed: Any) -> Value:
    if isinstance(listed, list):
        return tuple(value_of(item) for item in listed)
    if isinstance(listed, dict):
        if "hex" in listed:
            return bytes.fromhex(listed["hex"])
        if "integer" in listed:
            return int(listed["integer"])
        return Map(tuple((value_of(key), value_of(item)) for key, item in listed["map"]))
    found: Value = listed
    return found


def refuses(data: bytes) -> None:
    with pytest.raises(CborError):
        decode(data, max_depth=DEPTH)


@pytest.mark.parametrize("vector", ACCEPTED, ids=lambda vector: vector["cbor"][:24])
def test_vectors_of_the_rfc_are_read_and_written(vector: dict[str, Any]) -> None:
    data, value = bytes.fromhex(vector["cbor"]), value_of(vector["value"])
    assert decode(data, max_depth=DEPTH) == value
    assert encode(value) == data


@pytest.mark.parametrize("vector", REFUSED, ids=lambda vector: f"{vector['why']}-{vector['cbor'][:24]}")
def test_vectors_of_the_rfc_that_no_operation_may_hold_are_refused(vector: dict[str, Any]) -> None:
    refuses(bytes.fromhex(vector["cbor"]))


@pytest.mark.parametrize("vector", ACCEPTED, ids=lambda vector: vector["cbor"][:24])
def test_every_beginning_of_an_encoding_is_refused(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["cbor"])
    for length in range(len(data)):
        refuses(data[:length])
    refuses(data + b"\x00")


@pytest.mark.parametrize("major", range(7))
def test_reserved_and_indefinite_lengths_are_refused(major: int) -> None:
    for info in range(28, 32):
        for behind in (b"", b"\x00", b"\xff", b"\x40\xff", b"\x60\xff"):
            refuses(bytes([major << 5 | info]) + behind)


def test_simple_values_in_two_bytes_are_refused() -> None:
    for number in range(256):
        refuses(bytes([0xF8, number]))


@pytest.mark.parametrize("major", range(6))
@pytest.mark.parametrize("number", [0, 1, 23, 24, 255, 256, 65535, 65536, 2**32 - 1])
def test_an_argument_in_more_bytes_than_it_needs_is_refused(major: int, number: int) -> None:
    for code, width, least in ((24, 1, 24), (25, 2, 256), (26, 4, 65536), (27, 8, 2**32)):
        if number < least:
            # Behind it lies what a lenient reader would take for the content.
            refuses(bytes([major << 5 | code]) + number.to_bytes(width, "big") + bytes(min(number, 999)))


@pytest.mark.parametrize(
    "data", ["5bffffffffffffffff", "7bffffffffffffffff", "9bffffffffffffffff", "bbffffffffffffffff"]
)
def test_a_length_beyond_the_data_is_refused_at_once(data: str) -> None:
    refuses(bytes.fromhex(data))


def test_keys_lie_in_the_bytewise_order_of_their_encodings() -> None:
    value = decode(bytes.fromhex(BYTEWISE), max_depth=DEPTH)
    assert isinstance(value, Map)
    assert [key for key, _ in value.pairs] == [10, 100, -1, "b", "aa", False]
    assert encode(value) == bytes.fromhex(BYTEWISE)
    refuses(bytes.fromhex(LENGTH_FIRST))


def test_a_key_twice_is_refused() -> None:
    refuses(bytes.fromhex("a201000100"))
    refuses(bytes.fromhex("a2616100616101"))


def test_one_and_true_are_two_keys() -> None:
    data = bytes.fromhex("a20100f500")
    value = decode(data, max_depth=DEPTH)
    assert value == Map(((1, 0), (True, 0)))
    assert encode(value) == data


@pytest.mark.parametrize("data", ["a18000", "a1a000", "a1f600"])
def test_arrays_maps_and_null_are_no_keys(data: str) -> None:
    refuses(bytes.fromhex(data))


@pytest.mark.parametrize("data", ["61ff", "62c328", "63eda080", "64f4908080", "62c080", "61c3"])
def test_text_that_is_not_utf8_is_refused(data: str) -> None:
    refuses(bytes.fromhex(data))


def test_what_lies_deeper_than_allowed_is_refused() -> None:
    assert decode(b"\x81" * DEPTH + b"\x00", max_depth=DEPTH) is not None
    refuses(b"\x81" * (DEPTH + 1) + b"\x00")
    refuses(b"\xa1\x00" * (DEPTH + 1) + b"\x00")


keys = st.one_of(st.integers(-(2**64), 2**64 - 1), st.binary(max_size=6), st.text(max_size=6), st.booleans())
values = st.recursive(
    st.one_of(keys, st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(tuple),
        st.lists(st.tuples(keys, inner), max_size=4, unique_by=lambda pair: encode(pair[0])).map(
            lambda pairs: Map(tuple(sorted(pairs, key=lambda pair: encode(pair[0]))))
        ),
    ),
    max_leaves=12,
)


@given(values)
def test_what_is_written_is_read_back(value: Value) -> None:
    assert decode(encode(value), max_depth=16) == value


@given(st.binary(max_size=12))
def test_what_is_read_is_written_back_byte_for_byte(data: bytes) -> None:
    try:
        value = decode(data, max_depth=DEPTH)
    except CborError:
        return
    assert encode(value) == data
