"""The bytes of an object (source section 5): prelude, clear header, wrapped key, encrypted payload.

```
offset 0   5 bytes   magic HXOBJ
offset 5   1 byte    version, 0
offset 6   1 byte    algorithm
offset 7   4 bytes   H, length of the header, big-endian
offset 11  H bytes   header
           N bytes   nonce of the wrap, N by the algorithm
          48 bytes   the object's key under the vault key, with its tag
           N bytes   nonce of the payload
           rest      the payload under the object's key, with its tag
```

Associated data of both is everything up to the end of the header, exactly as it was read.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.reference_impl.hx_sync import algorithms, header
from holdfast.reference_impl.hx_sync.algorithms import KEY_BYTES, TAG_BYTES, Algorithm, Key, Nonce
from holdfast.reference_impl.hx_sync.header import Header, MalformedError
from holdfast.reference_impl.hx_sync.settings import Settings
from holdfast.reference_impl.hx_sync.terms import Kind

MAGIC, VERSION = b"HXOBJ", 0
_PRELUDE = struct.Struct(">5sBBI")
_WRAPPED_BYTES = KEY_BYTES + TAG_BYTES


@dataclass(frozen=True, slots=True)
class Sealed:
    """An object taken apart, with its header checked. `clear` is prelude and header as they were read."""

    header: Header
    algorithm: Algorithm
    clear: bytes
    wrap_nonce: Nonce
    wrapped: bytes
    nonce: Nonce
    body: bytes


def seal(settings: Settings, master: Key, kind: Kind, own: Mapping[str, Any], payload: bytes) -> bytes:
    """An object with the members `own` in its header."""
    algorithm = algorithms.BY_NAME[settings.algorithm]
    written = header.write(kind, settings.vault_id, algorithm.name, own)
    clear = _PRELUDE.pack(MAGIC, VERSION, algorithm.number, len(written)) + written
    # This object is encrypted with it, and nothing else.
    key = secrets.token_bytes(KEY_BYTES)
    return clear + _encrypted(algorithm, master, key, clear) + _encrypted(algorithm, key, payload, clear)


def _encrypted(algorithm: Algorithm, key: Key, data: bytes, clear: bytes) -> bytes:
    """A nonce, random for each use, and the data under the key."""
    nonce = secrets.token_bytes(algorithm.nonce_bytes)
    return nonce + algorithm.encrypt(key, nonce, data, clear)


def take_apart(raw: bytes, *, max_header_bytes: int) -> Sealed:
    """Check everything that can be checked without a key. Raises MalformedError."""
    try:
        magic, version, number, length = _PRELUDE.unpack_from(raw)
    except struct.error as error:
        raise MalformedError(f"expected at least {_PRELUDE.size} bytes, got {len(raw)}") from error
    if magic != MAGIC:
        raise MalformedError("expected HXOBJ at the beginning")
    if version != VERSION:
        raise MalformedError(f"expected version {VERSION}, got {version}")
    algorithm = algorithms.BY_NUMBER.get(number)
    if algorithm is None:
        raise MalformedError(f"expected the number of a known algorithm, got {number}")
    if length > max_header_bytes:
        raise MalformedError(f"expected a header of at most {max_header_bytes} bytes, got {length}")
    end = _PRELUDE.size + length
    found = header.read(raw[_PRELUDE.size : end], algorithm.name)
    size = algorithm.nonce_bytes
    wrapped, nonce, body = end + size, end + size + _WRAPPED_BYTES, end + 2 * size + _WRAPPED_BYTES
    if len(raw) < body + TAG_BYTES:
        raise MalformedError(f"expected at least {body + TAG_BYTES} bytes, got {len(raw)}")
    return Sealed(found, algorithm, raw[:end], raw[end:wrapped], raw[wrapped:nonce], raw[nonce:body], raw[body:])


def unwrap(master: Key, sealed: Sealed) -> Key:
    """The object's key. Raises UnauthenticError."""
    return sealed.algorithm.decrypt(master, sealed.wrap_nonce, sealed.wrapped, sealed.clear)


def decrypt(key: Key, sealed: Sealed) -> bytes:
    """The payload under the object's key. Raises UnauthenticError."""
    return sealed.algorithm.decrypt(key, sealed.nonce, sealed.body, sealed.clear)
