"""Verifies who signed: Ed25519 (RFC 8032), in the strict form that the contract pins."""

from __future__ import annotations

from nacl.exceptions import CryptoError
from nacl.signing import VerifyKey

from holdfast.reference_impl.m5_log.terms import Key

KEY_BYTES, SIGNATURE_BYTES = 32, 64


def valid(key: Key, message: bytes, signature: bytes) -> bool:
    """Whether these bytes are `key`'s signature of `message`, by libsodium. Never raises.

    It wants S below the group's order, a canonical key not of small order, R compared as bytes. A less strict check
    lets a stranger make a second valid signature, or a key for which any signature is valid.
    """
    try:
        VerifyKey(key).verify(message, signature)
    except CryptoError:
        return False
    return True
