"""The object format of the contract: the bytes that two machines exchange through a shared store.

Written without libsodium, which implementations use: HChaCha20 stands here, the AEADs below it are those of the library
`cryptography`. Offsets and lengths are bytes. Bytes that are no object, or do not open, are a ValueError.

    0   5   magic HXOBJ
    5   1   version 0
    6   1   algorithm: 1 XChaCha20-Poly1305, 2 AES-256-GCM
    7   4   H, the length of the header, unsigned, big-endian
    11  H   header, JSON
    …   N   nonce of the wrap, N = 24 or 12 by algorithm
    …   48  the object's key, sealed with the master key
    …   N   nonce of the payload
    …       payload, sealed with the object's key; both are bound to the bytes from 0 to the end of the header
"""

from __future__ import annotations

from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

MAGIC = b"HXOBJ"
VERSION = 0
PRELUDE = 11
KEY = 32
TAG = 16
WRAPPED = KEY + TAG
ALGORITHMS = {1: "xchacha20-poly1305", 2: "aes-256-gcm"}
BYTE = {name: number for number, name in ALGORITHMS.items()}
NONCE = {"xchacha20-poly1305": 24, "aes-256-gcm": 12}

_MASK = 0xFFFFFFFF
# RFC 8439 section 2.3: "expand 32-byte k", four words, little-endian.
_CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
_COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))


def _quarter_round(state: list[int], a: int, b: int, c: int, d: int) -> None:
    for target, other, turned, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[target] = (state[target] + state[other]) & _MASK
        mixed = state[turned] ^ state[target]
        state[turned] = (mixed << by | mixed >> (32 - by)) & _MASK


def hchacha20(key: bytes, nonce: bytes) -> bytes:
    """The subkey, 32 bytes, of a key of 32 and a nonce of 16 bytes (draft-irtf-cfrg-xchacha-03 section 2.2)."""
    if len(key) != KEY or len(nonce) != 16:
        raise ValueError(f"HChaCha20 takes a key of 32 and a nonce of 16 bytes, not {len(key)} and {len(nonce)}")
    words = [int.from_bytes((key + nonce)[at : at + 4], "little") for at in range(0, 48, 4)]
    state = [*_CONSTANTS, *words]
    for _ in range(10):
        for places in (*_COLUMNS, *_DIAGONALS):
            _quarter_round(state, *places)
    # The key words of the state are left out: only the first and the last row are given.
    return b"".join(word.to_bytes(4, "little") for word in (*state[:4], *state[12:]))


def seal(algorithm: str, key: bytes, nonce: bytes, plain: bytes, aad: bytes) -> bytes:
    """The ciphertext of `plain` with its tag of 16 bytes after."""
    cipher, short = _cipher(algorithm, key, nonce)
    return cipher.encrypt(short, plain, aad)


def unseal(algorithm: str, key: bytes, nonce: bytes, sealed: bytes, aad: bytes) -> bytes:
    """The sealed text. Raises ValueError if any byte was changed."""
    cipher, short = _cipher(algorithm, key, nonce)
    try:
        return cipher.decrypt(short, sealed, aad)
    except InvalidTag as error:
        raise ValueError("the tag does not fit: another key, nonce, header or ciphertext") from error


def _cipher(algorithm: str, key: bytes, nonce: bytes) -> tuple[AESGCM | ChaCha20Poly1305, bytes]:
    if algorithm not in NONCE:
        raise ValueError(f"no algorithm is called {algorithm!r}; known: {', '.join(NONCE)}")
    if len(nonce) != NONCE[algorithm]:
        raise ValueError(f"{algorithm} takes a nonce of {NONCE[algorithm]} bytes, not {len(nonce)}")
    if algorithm == "aes-256-gcm":
        return AESGCM(key), nonce
    # draft-irtf-cfrg-xchacha-03 section 2.3: the rest of the nonce, after four bytes of zero.
    return ChaCha20Poly1305(hchacha20(key, nonce[:16])), bytes(4) + nonce[16:]


@dataclass(frozen=True, slots=True)
class Parts:
    """An object taken apart; no part of it is proven to be genuine."""

    algorithm: str
    prelude: bytes
    header: bytes
    wrap_nonce: bytes
    wrapped_key: bytes
    nonce: bytes
    ciphertext: bytes

    @property
    def aad(self) -> bytes:
        """The associated data of both seals: every byte before the wrap."""
        return self.prelude + self.header

    def joined(self) -> bytes:
        """The object."""
        return self.aad + self.wrap_nonce + self.wrapped_key + self.nonce + self.ciphertext


def parts_of(data: bytes) -> Parts:
    """The parts of an object. Raises ValueError if there are none; magic and version are not checked."""
    if len(data) < PRELUDE or data[6] not in ALGORITHMS:
        raise ValueError("not an object: its prelude is not there, or names no known algorithm")
    algorithm = ALGORITHMS[data[6]]
    at = PRELUDE
    pieces = []
    for length in (int.from_bytes(data[7:11], "big"), NONCE[algorithm], WRAPPED, NONCE[algorithm]):
        pieces.append(data[at : at + length])
        at += length
    if len(data) < at:
        raise ValueError(f"not an object: it ends at {len(data)}, its payload would begin at {at}")
    header, wrap_nonce, wrapped_key, nonce = pieces
    return Parts(algorithm, data[:PRELUDE], header, wrap_nonce, wrapped_key, nonce, data[at:])


def object_key(parts: Parts, master: bytes) -> bytes:
    """The key of the object itself. Raises ValueError."""
    return unseal(parts.algorithm, master, parts.wrap_nonce, parts.wrapped_key, parts.aad)


def payload_of(parts: Parts, master: bytes) -> bytes:
    """The payload. Raises ValueError."""
    return unseal(parts.algorithm, object_key(parts, master), parts.nonce, parts.ciphertext, parts.aad)
