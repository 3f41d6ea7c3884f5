"""What is an operation, and what is none."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from holdfast.reference_impl.m5_log.factory import REFERENCE
from holdfast.reference_impl.m5_log.operations import OpCodec, packed, unpacked
from holdfast.reference_impl.m5_log.signatures import Signatures
from holdfast.reference_impl.m5_log.terms import Reason, RefusedError
from holdfast.vectors.m5_log import derive
from tests.m5_log.logs import Draft, draft, raw_of

CODEC = OpCodec(REFERENCE.settings({}), Signatures())
PARENTS = [hashlib.sha256(number.to_bytes(2, "big")).hexdigest() for number in range(257)]


def refused(raw: bytes, reason: Reason, declared: bytes | None = None) -> None:
    with pytest.raises(RefusedError) as caught:
        CODEC.accept(raw, declared)
    assert caught.value.reason is reason


def test_an_operation_keeps_the_bytes_that_came() -> None:
    made = draft(7, parents=PARENTS[:2], by="bob", value={"a": [1, None, True]})
    raw = raw_of({**made, "payload": {"key": "k", "value": 1}})
    operation = CODEC.accept(raw)
    assert operation.raw == raw
    assert operation.op_id == hashlib.sha256(raw).digest()
    assert operation.author == derive.key_of("bob")
    assert [parent.hex() for parent in operation.parents] == PARENTS[:2]
    assert operation.milliseconds == 7


def test_parents_stand_in_the_order_of_the_author() -> None:
    reverse = sorted(PARENTS[:5], reverse=True)
    assert [parent.hex() for parent in CODEC.accept(raw_of(draft(parents=reverse))).parents] == reverse


def test_edges_are_unpacked_as_they_were_packed() -> None:
    parents = tuple(bytes.fromhex(parent) for parent in PARENTS[:3])
    assert unpacked(packed(parents)) == parents
    assert unpacked(b"") == ()
    with pytest.raises(ValueError, match="multiple"):
        unpacked(bytes(33))


@pytest.mark.parametrize(
    "value",
    [
        {"cbor": "1817"},
        {"cbor": "5f4101ff"},
        {"cbor": "a201000100"},
        {"cbor": "a202000100"},
        {"cbor": "f93c00"},
        {"cbor": "fb7ff8000000000001"},
        {"cbor": "c100"},
        {"cbor": "f7"},
        {"cbor": "c249010000000000000000"},
        {"cbor": "62c328"},
        {"cbor": "a60a002000f40018640061620062616100"},
    ],
    ids=lambda value: value["cbor"],
)
def test_what_is_not_canonical_is_refused_although_it_is_signed(value: Any) -> None:
    refused(raw_of({**draft(), "payload": {"key": "k", "value": value}}), Reason.NON_CANONICAL)


def test_bytes_behind_an_operation_or_its_body_are_refused() -> None:
    refused(raw_of({**draft(), "tail": "00"}), Reason.NON_CANONICAL)
    refused(raw_of({**draft(), "body_tail": "00"}), Reason.NON_CANONICAL)
    refused(b"", Reason.NON_CANONICAL)


@pytest.mark.parametrize(
    "change",
    [
        {"members": {"hlc": {"cbor": "4b" + "00" * 11}}},
        {"members": {"hlc": 5}},
        {"members": {"author": {"cbor": "581f" + "00" * 31}}},
        {"members": {"format": "ecac:v2"}},
        {"members": {"kind": "delete"}},
        {"members": {"kind": 1}},
        {"members": {"parents": "none"}},
        {"members": {"parents": {"cbor": "814161"}}},
        {"members": {"payload": []}},
        {"members": {"extra": 1}},
        {"drop": ["parents"]},
        {"drop": ["hlc"]},
        {"payload": {"key": "k"}},
        {"payload": {"key": "", "value": 1}},
        {"payload": {"key": "k" * 256, "value": 1}},
        {"payload": {"key": "k", "value": 1, "more": 1}},
        {"payload": {"key": "k", "value": 1, "tag": None}},
        {"kind": "add", "payload": {"key": "k", "amount": 2**31}},
        {"kind": "add", "payload": {"key": "k", "amount": True}},
        {"kind": "grant", "payload": {"subject": "bob", "role": "r", "tag": "t"}},
        {"kind": "revoke", "payload": {"subject": {"cbor": "41ff"}, "role": "r", "tag": "t"}},
        {"kind": "credential", "payload": {"credential": 7}},
    ],
    ids=str,
)
def test_what_is_no_operation_is_refused_although_it_is_signed(change: Draft) -> None:
    refused(raw_of({**draft(), **change}), Reason.OP_MALFORMED)


def test_a_map_with_a_key_that_is_no_text_is_no_body() -> None:
    body = bytes.fromhex("a10000")
    signature = bytes(64)
    refused(b"\x82" + bytes([0x43]) + body + b"\x58\x40" + signature, Reason.OP_MALFORMED)


def test_a_parent_twice_is_refused_and_so_are_too_many() -> None:
    refused(raw_of(draft(parents=[PARENTS[0], PARENTS[1], PARENTS[0]])), Reason.OP_MALFORMED)
    refused(raw_of(draft(parents=PARENTS)), Reason.OP_MALFORMED)
    assert len(CODEC.accept(raw_of(draft(parents=PARENTS[:256]))).parents) == 256


def test_an_operation_that_is_too_long_is_refused() -> None:
    refused(raw_of({**draft(), "payload": {"key": "k", "value": "x" * 70_000}}), Reason.OP_MALFORMED)


def test_another_declared_id_is_refused() -> None:
    raw = raw_of(draft())
    refused(raw, Reason.OP_ID_MISMATCH, bytes(32))
    assert CODEC.accept(raw, hashlib.sha256(raw).digest()).raw == raw


def test_only_the_author_signs() -> None:
    spelt = derive.op(draft())
    refused(raw_of({**draft(), "signer": "mallory"}), Reason.SIGNATURE_INVALID)
    refused(derive.decoded(derive.malleated(spelt)), Reason.SIGNATURE_INVALID)
    refused(derive.decoded(derive.small_order(draft())), Reason.SIGNATURE_INVALID)
    refused(derive.decoded(derive.unsigned(spelt)), Reason.OP_MALFORMED)


def test_no_changed_bit_of_an_operation_is_accepted() -> None:
    raw = raw_of(draft())
    for at in range(len(raw)):
        for bit in range(8):
            changed = bytearray(raw)
            changed[at] ^= 1 << bit
            with pytest.raises(RefusedError):
                CODEC.accept(bytes(changed))


def test_a_file_is_an_array_of_byte_strings_and_nothing_else() -> None:
    first, second = derive.op(draft(1)), derive.op(draft(2))
    assert CODEC.batch(derive.decoded(derive.batch([first, second]))) == [derive.decoded(first), derive.decoded(second)]
    assert CODEC.batch(b"\x80") == []
    for raw in (b"", b"\x80\x00", derive.decoded(derive.batch([first]))[:-1]):
        with pytest.raises(RefusedError) as caught:
            CODEC.batch(raw)
        assert caught.value.reason is Reason.NON_CANONICAL
    for raw in (b"\x00", b"\x81\x00", b"\xa0"):
        with pytest.raises(RefusedError) as caught:
            CODEC.batch(raw)
        assert caught.value.reason is Reason.OP_MALFORMED
