"""Ed25519 by the criteria that the contract pins."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from nacl.signing import SigningKey

from holdfast.reference_impl.m5_log.signatures import Signatures
from holdfast.vectors.m5_log import curve
from holdfast.vectors.m5_log.committed import signatures
from holdfast.vectors.m5_log.edges import NAMES, SOUND, edge

VECTORS = signatures()
ORDER = curve.L


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


def body_of(key: bytes) -> bytes:
    return b"a body that names " + key


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_edges_are_decided_by_libsodium_as_by_the_curve(name: str, seed: int) -> None:
    signed = edge(name, bytes([seed]) * 31 + b"s", body_of)
    assert signed.body == body_of(signed.key)
    due = name == SOUND
    assert curve.valid(signed.key, signed.body, signed.signature) is due
    assert Signatures().valid(signed.key, signed.body, signed.signature) is due


def equal(key: bytes, message: bytes, signature: bytes, cofactor: int) -> bool:
    """Whether the equation of RFC 8032 section 5.1.7 holds, and nothing more."""
    r, s = curve.decode(signature[:32]), int.from_bytes(signature[32:], "little")
    h = curve.challenge(key, signature[:32], message) % curve.L
    return cofactor * (s * curve.BASE) == cofactor * (r + h * curve.decode(key))


@pytest.mark.parametrize("name", NAMES)
def test_edges_satisfy_the_equation_and_are_refused_for_something_else(name: str) -> None:
    signed = edge(name, b"seed".ljust(32), body_of)
    parts = (signed.key, signed.body, signed.signature)
    assert equal(*parts, cofactor=8)
    assert equal(*parts, cofactor=1) is ("cofactor only" not in name)


def test_an_edge_is_that_of_its_seed() -> None:
    first, again, other = (
        edge(SOUND, seed, body_of) for seed in (b"a" * 31 + b"b", b"a" * 31 + b"b", b"c" * 31 + b"d")
    )
    assert first == again != other


def test_openssl_accepts_some_edges_so_that_they_are_worth_asking() -> None:
    accepted = set()
    for name in NAMES:
        signed = edge(name, b"seed".ljust(32), body_of)
        try:
            Ed25519PublicKey.from_public_bytes(signed.key).verify(signed.signature, signed.body)
        except (InvalidSignature, ValueError):
            continue
        accepted.add(name)
    assert len(accepted) == 8
    assert SOUND in accepted
