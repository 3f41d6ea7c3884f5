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

from holdfast.reference_impl.hx_sync.algorithms import KEY_BYTES, TAG_BYTES, Algorithm, Algorithms, Key, Nonce
from holdfast.reference_impl.hx_sync.header import Header, Headers, MalformedError
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


class Nonces:
    """Where nonces and keys of objects come from."""

    def nonce(self, size: int) -> bytes:
        """A nonce, random for each use."""
        return secrets.token_bytes(size)

    def object_key(self) -> bytes:
        """A key that one object is encrypted with and nothing else."""
        return secrets.token_bytes(KEY_BYTES)


class Envelope:
    """Makes objects and opens them."""

    def __init__(self, settings: Settings, algorithms: Algorithms, headers: Headers, nonces: Nonces) -> None:
        self._settings = settings
        self._numbers = algorithms.by_number()
        self._names = algorithms.by_name()
        self._headers = headers
        self._nonces = nonces

    # Making

    def seal(self, master: Key, kind: Kind, own: Mapping[str, Any], payload: bytes) -> bytes:
        """An object with the members `own` in its header."""
        algorithm = self._names[self._settings.algorithm]
        header = self._headers.write(kind, self._settings.vault_id, algorithm.name, own)
        clear = _PRELUDE.pack(MAGIC, VERSION, algorithm.number, len(header)) + header
        key = self._nonces.object_key()
        return clear + self.wrap(algorithm, master, key, clear) + self.encrypt(algorithm, key, payload, clear)

    def wrap(self, algorithm: Algorithm, master: Key, key: Key, clear: bytes) -> bytes:
        """Nonce and the object's key under the vault key."""
        nonce = self._nonces.nonce(algorithm.nonce_bytes)
        return nonce + algorithm.encrypt(master, nonce, key, self.associated(clear))

    def encrypt(self, algorithm: Algorithm, key: Key, payload: bytes, clear: bytes) -> bytes:
        """Nonce and the payload under the object's key."""
        nonce = self._nonces.nonce(algorithm.nonce_bytes)
        return nonce + algorithm.encrypt(key, nonce, payload, self.associated(clear))

    def associated(self, clear: bytes) -> bytes:
        """The associated data of both tags: the very bytes of the object, never another spelling of them."""
        return clear

    # Opening

    def take_apart(self, raw: bytes) -> Sealed:
        """Check everything that can be checked without a key. Raises MalformedError."""
        algorithm, length = self.prelude(raw)
        end = _PRELUDE.size + length
        header = self._headers.read(raw[_PRELUDE.size : end], algorithm.name)
        size = algorithm.nonce_bytes
        wrapped, nonce, body = end + size, end + size + _WRAPPED_BYTES, end + 2 * size + _WRAPPED_BYTES
        if len(raw) < body + TAG_BYTES:
            raise MalformedError(f"expected at least {body + TAG_BYTES} bytes, got {len(raw)}")
        return Sealed(header, algorithm, raw[:end], raw[end:wrapped], raw[wrapped:nonce], raw[nonce:body], raw[body:])

    def prelude(self, raw: bytes) -> tuple[Algorithm, int]:
        """Algorithm and length of the header. Raises MalformedError."""
        try:
            magic, version, number, length = _PRELUDE.unpack_from(raw)
        except struct.error as error:
            raise MalformedError(f"expected at least {_PRELUDE.size} bytes, got {len(raw)}") from error
        self.check_prelude(magic, version)
        algorithm = self.algorithm(number)
        if length > self._settings.max_header_bytes:
            raise MalformedError(f"expected a header of at most {self._settings.max_header_bytes} bytes, got {length}")
        return algorithm, length

    def algorithm(self, number: int) -> Algorithm:
        """The one of this number. Raises MalformedError."""
        if number not in self._numbers:
            raise MalformedError(f"expected the number of a known algorithm, got {number}")
        return self._numbers[number]

    def check_prelude(self, magic: bytes, version: int) -> None:
        """Raises MalformedError."""
        if magic != MAGIC:
            raise MalformedError("expected HXOBJ at the beginning")
        if version != VERSION:
            raise MalformedError(f"expected version {VERSION}, got {version}")

    def open(self, master: Key, sealed: Sealed) -> bytes:
        """The payload. Raises UnauthenticError."""
        key = self.unwrap(master, sealed)
        return self.decrypt(key, sealed)

    def unwrap(self, master: Key, sealed: Sealed) -> bytes:
        """The object's key. Raises UnauthenticError."""
        associated = self.associated(sealed.clear)
        return sealed.algorithm.decrypt(master, sealed.wrap_nonce, sealed.wrapped, associated)

    def decrypt(self, key: Key, sealed: Sealed) -> bytes:
        """The payload under the object's key. Raises UnauthenticError."""
        return sealed.algorithm.decrypt(key, sealed.nonce, sealed.body, self.associated(sealed.clear))
