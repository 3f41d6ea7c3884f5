"""The two AEADs (source section 5), from PyNaCl and from cryptography, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from nacl import bindings
from nacl.exceptions import CryptoError

KEY_BYTES = 32
TAG_BYTES = 16
# A key of so many bytes, and a nonce of as many as its algorithm takes: neither is ever longer.
Key: TypeAlias = bytes
Nonce: TypeAlias = bytes


class UnauthenticError(Exception):
    """The tag does not fit key, nonce, associated data and ciphertext."""


class Algorithm(Protocol):
    """An AEAD with a key of 32 bytes whose tag of 16 bytes stands after the ciphertext."""

    number: int
    name: str
    nonce_bytes: int

    def encrypt(self, key: Key, nonce: Nonce, data: bytes, associated: bytes) -> bytes:
        """Ciphertext and tag."""

    def decrypt(self, key: Key, nonce: Nonce, data: bytes, associated: bytes) -> bytes:
        """The plain bytes. Raises UnauthenticError."""


class XChaCha20Poly1305:
    """Implements `Algorithm`; its nonce is long enough to be random without a limit on uses."""

    number, name = 1, "xchacha20-poly1305"
    nonce_bytes = bindings.crypto_aead_xchacha20poly1305_ietf_NPUBBYTES

    def encrypt(self, key: Key, nonce: Nonce, data: bytes, associated: bytes) -> bytes:
        """See `Algorithm`."""
        return bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(data, associated, nonce, key)

    def decrypt(self, key: Key, nonce: Nonce, data: bytes, associated: bytes) -> bytes:
        """See `Algorithm`."""
        try:
            return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(data, associated, nonce, key)
        except CryptoError as error:
            raise UnauthenticError("the tag does not fit") from error


class Aes256Gcm:
    """Implements `Algorithm`. Nonces are random: at most 2^32 objects are wrapped by one vault key."""

    number, name, nonce_bytes = 2, "aes-256-gcm", 12

    def encrypt(self, key: Key, nonce: Nonce, data: bytes, associated: bytes) -> bytes:
        """See `Algorithm`."""
        # Imported here, so that only its users wait for the import.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(key).encrypt(nonce, data, associated)

    def decrypt(self, key: Key, nonce: Nonce, data: bytes, associated: bytes) -> bytes:
        """See `Algorithm`."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            return AESGCM(key).decrypt(nonce, data, associated)
        except InvalidTag as error:
            raise UnauthenticError("the tag does not fit") from error


# The closed list, by the byte at offset 6 of an object and by `crypto.alg` in a header.
_KNOWN: tuple[Algorithm, ...] = (XChaCha20Poly1305(), Aes256Gcm())
BY_NUMBER: Mapping[int, Algorithm] = {each.number: each for each in _KNOWN}
BY_NAME: Mapping[str, Algorithm] = {each.name: each for each in _KNOWN}
