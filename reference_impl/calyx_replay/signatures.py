"""Verifies who signed an envelope: Ed25519 (RFC 8032), in its strict form.

libsodium's check: S below the group's order, a canonical key not of small order, R compared as bytes. A less strict
check lets a stranger make a second valid signature of the same mail, and so a second key.
"""

from __future__ import annotations

from nacl.exceptions import BadSignatureError, CryptoError
from nacl.signing import VerifyKey

from holdfast.reference_impl.calyx_replay.codec import Envelope

SIGNATURE_BYTES = 64


def valid(envelope: Envelope) -> bool:
    """Whether the signature is the sender's over everything but it Never raises."""
    if len(envelope.signature) != SIGNATURE_BYTES:
        return False
    return verify(envelope.sender_key, envelope.signed, envelope.signature)


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether these 64 bytes are `key`'s signature of `message`. Never raises."""
    try:
        VerifyKey(key).verify(message, signature)
    except (BadSignatureError, CryptoError, ValueError):
        return False
    return True
