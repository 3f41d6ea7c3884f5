"""Ed25519 by the criteria that the contract pins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from nacl.signing import SigningKey

from holdfast.reference_impl.m5_log.signatures import Signatures

VECTORS = json.loads((Path(__file__).parent / "data/ed25519.json").read_text(encoding="utf-8"))
ORDER = 2**252 + 27742317777372353535851937790883648493


def valid(vector: dict[str, Any]) -> bool:
    key, message, signature = (bytes.fromhex(vector[name]) for name in ("pub_key", "message", "signature"))
    return Signatures().valid(key, message, signature)


@pytest.mark.parametrize("vector", VECTORS["rfc8032"], ids=lambda vector: vector["message"][:8] or "empty")
def test_vectors_of_the_rfc_verify(vector: dict[str, Any]) -> None:
    assert valid(vector)


@pytest.mark.parametrize("vector", VECTORS["rfc8032"], ids=lambda vector: vector["message"][:8] or "empty")
def test_two_libraries_sign_as_the_rfc_does(vector: dict[str, Any]) -> None:
    seed, message = bytes.fromhex(vector["seed"]), bytes.fromhex(vector["message"])
    assert Ed25519PrivateKey.from_private_bytes(seed).sign(message).hex() == vector["signature"]
    assert SigningKey(seed).sign(message).signature.hex() == vector["signature"]


@pytest.mark.parametrize("vector", VECTORS["rfc8032"], ids=lambda vector: vector["message"][:8] or "empty")
def test_no_signature_survives_a_changed_bit(vector: dict[str, Any]) -> None:
    for name in ("pub_key", "signature"):
        raw = bytes.fromhex(vector[name])
        for at in range(len(raw)):
            changed = raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]
            assert not valid({**vector, name: changed.hex()})


@pytest.mark.parametrize("vector", VECTORS["rfc8032"], ids=lambda vector: vector["message"][:8] or "empty")
def test_s_beyond_the_order_of_the_group_is_refused(vector: dict[str, Any]) -> None:
    raw = bytes.fromhex(vector["signature"])
    beyond = int.from_bytes(raw[32:], "little") + ORDER
    assert not valid({**vector, "signature": (raw[:32] + beyond.to_bytes(32, "little")).hex()})


@pytest.mark.parametrize("vector", VECTORS["speccheck"], ids=lambda vector: vector["what"])
def test_edge_cases_are_decided_as_the_contract_pins_them(vector: dict[str, Any]) -> None:
    assert valid(vector) is vector["valid"]


@pytest.mark.parametrize("key", VECTORS["small_order"])
def test_a_key_of_small_order_signs_nothing(key: str) -> None:
    for point in VECTORS["small_order"]:
        assert not valid({"pub_key": key, "message": "00", "signature": point + "00" * 32})


@pytest.mark.parametrize(("key", "signature"), [(31, 64), (33, 64), (32, 0), (32, 63), (32, 65)])
def test_another_length_is_no_signature(key: int, signature: int) -> None:
    assert not Signatures().valid(bytes(key), b"", bytes(signature))
