"""Ed25519 by the criteria that the contract pins."""

from __future__ import annotations

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from holdfast.reference_impl.m5_log.signatures import Signatures
from holdfast.vectors.m5_log import curve
from holdfast.vectors.m5_log.edges import NAMES, SOUND, edge


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
