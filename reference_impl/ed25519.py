"""Verifies who signed: Ed25519 (RFC 8032), in the strict form that contracts pin."""

from __future__ import annotations

from typing import TypeAlias

from nacl.exceptions import CryptoError
from nacl.signing import VerifyKey

KEY_BYTES, SIGNATURE_BYTES = 32, 64
# So many bytes, as they have been read: neither is ever longer.
Key: TypeAlias = bytes
Signature: TypeAlias = bytes


def valid(key: Key, message: bytes, signature: Signature) -> bool:
    """Whether these bytes are `key`'s signature of `message`, by libsodium. Never raises.

    It wants S below the group's order, a canonical key not of small order, R compared as bytes. A less strict check
    lets a stranger make a second valid signature, and so a second key, or a key for which any signature is valid.
    """
    try:
        VerifyKey(key).verify(message, signature)
    except CryptoError:
        return False
    return True
