"""The committed encodings by a library that is not ours, and what the checks of the vectors find."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cbor2
import pytest

from holdfast.vectors.m5_log.committed import encoding_problems, encodings, signature_problems, signatures

# What is well-formed, and still not the one encoding of a value of an operation.
READABLE = {
    "bignum",
    "float",
    "indefinite length",
    "simple value",
    "tag",
    "number in more bytes than it needs",
    "length in more bytes than it needs",
    "keys out of order",
    "key twice",
    "key that no operation has",
}


def read(spelt: str) -> Any:
    try:
        return cbor2.loads(bytes.fromhex(spelt))
    except (cbor2.CBORDecodeError, ValueError):
        return cbor2.CBORDecodeError


def plain(value: Any) -> Any:
    """A `value` of the vectors as cbor2 reads it."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, found),) = value.items()
    if kind == "map":
        return {plain(key): plain(item) for key, item in found}
    return bytes.fromhex(found) if kind == "hex" else int(found)


def test_a_library_reads_every_accepted_encoding_as_its_value() -> None:
    accepted = [record for record in encodings() if "value" in record]
    assert len(accepted) == 37
    for record in accepted:
        assert read(record["cbor"]) == plain(record["value"]), record


def test_a_library_refuses_what_is_not_well_formed_and_reads_the_rest() -> None:
    refused = [record for record in encodings() if "why" in record]
    assert {record["why"] for record in refused} > READABLE
    for record in refused:
        assert (read(record["cbor"]) is not cbor2.CBORDecodeError) is (record["why"] in READABLE), record


def test_a_library_writes_other_bytes_for_numbers_and_lengths_that_are_too_long() -> None:
    longer = [record for record in encodings() if "more bytes" in record.get("why", "")]
    assert longer
    for record in longer:
        assert cbor2.dumps(read(record["cbor"])).hex() != record["cbor"], record


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"cbor": "1800", "value": {"integer": "0"}}, "1800: its value has the encoding 00"),
        ({"cbor": "f4", "value": None}, "f4: its value has the encoding f6"),
        ({"cbor": "00"}, "00: expected a value, or why there is none"),
        ({"cbor": "ff", "value": 1, "why": "break"}, "ff: expected a value, or why there is none"),
    ],
)
def test_a_wrong_encoding_is_a_problem(record: Mapping[str, Any], problem: str) -> None:
    assert list(encoding_problems([record])) == [problem]
    assert f"{record['cbor']}: stands there 2 times" in list(encoding_problems([record, record]))


def test_a_wrong_signature_is_a_problem() -> None:
    found = signatures()
    first, edge = found["rfc8032"][0], found["speccheck"][0]
    other = {**first, "message": "00"}
    assert len(list(signature_problems({**found, "rfc8032": [other]}))) == 2
    assert len(list(signature_problems({**found, "speccheck": [{**edge, "valid": True}]}))) == 1
    assert len(list(signature_problems({**found, "small_order": found["small_order"][1:]}))) == 1
