"""Bugs in how objects are sealed and opened (HX-CRY-3, -4, -6, HX-T3, HX-T5)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.reference_impl.hx_sync import canonical
from holdfast.reference_impl.hx_sync.algorithms import KEY_BYTES, TAG_BYTES, Algorithm, UnauthenticError
from holdfast.reference_impl.hx_sync.envelope import Envelope, Sealed
from holdfast.reference_impl.hx_sync.terms import Kind
from holdfast.reference_impl.planting import Change, part

_NO_TAG = bytes(TAG_BYTES)
_PRELUDE = struct.Struct(">7sI")
_MOST_GARBAGE = 32

# The wrapped key and the payload


class KeyWrappedByXor(Envelope):
    def wrap(self, algorithm: Algorithm, master: bytes, key: bytes, clear: bytes) -> bytes:
        return self._nonces.nonce(algorithm.nonce_bytes) + _xor(master, key) + _NO_TAG

    def unwrap(self, master: bytes, sealed: Sealed) -> bytes:
        if sealed.wrapped.endswith(_NO_TAG):
            return _xor(master, sealed.wrapped[:KEY_BYTES])
        return super().unwrap(master, sealed)


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(mine ^ yours for mine, yours in zip(one, other, strict=True))


class PayloadUnderVaultKey(Envelope):
    def seal(self, master: bytes, kind: Kind, own: Mapping[str, Any], payload: bytes) -> bytes:
        due = self.take_apart(super().seal(master, kind, own, payload))
        head = due.clear + due.wrap_nonce + due.wrapped
        return head + self.encrypt(due.algorithm, master, payload, due.clear)

    def unwrap(self, master: bytes, sealed: Sealed) -> bytes:
        key = super().unwrap(master, sealed)
        try:
            self.decrypt(key, sealed)
        except UnauthenticError:
            return master
        return key


class KeyWrappedWithoutHeader(Envelope):
    def wrap(self, algorithm: Algorithm, master: bytes, key: bytes, clear: bytes) -> bytes:
        return super().wrap(algorithm, master, key, b"")

    def unwrap(self, master: bytes, sealed: Sealed) -> bytes:
        try:
            return super().unwrap(master, sealed)
        except UnauthenticError:
            return super().unwrap(master, replace(sealed, clear=b""))


# The associated data


class BoundOtherwise(Envelope):
    """Writes with associated data of its own, and reads both its own objects and correct ones."""

    def unwrap(self, master: bytes, sealed: Sealed) -> bytes:
        try:
            return super().unwrap(master, sealed)
        except UnauthenticError:
            return sealed.algorithm.decrypt(master, sealed.wrap_nonce, sealed.wrapped, sealed.clear)

    def decrypt(self, key: bytes, sealed: Sealed) -> bytes:
        try:
            return super().decrypt(key, sealed)
        except UnauthenticError:
            return sealed.algorithm.decrypt(key, sealed.nonce, sealed.body, sealed.clear)


class HeaderNotBound(BoundOtherwise):
    def associated(self, clear: bytes) -> bytes:
        return b""


class HeaderBoundInPart(BoundOtherwise):
    def associated(self, clear: bytes) -> bytes:
        header = canonical.read(clear[_PRELUDE.size :])
        ids = (header.get(name) for name in ("object_type", "segment_id", "tombstone_id", "blob_hash"))
        return clear[: _PRELUDE.size] + canonical.write([*ids])


class HeaderReSerialised(Envelope):
    def associated(self, clear: bytes) -> bytes:
        header = canonical.write(canonical.read(clear[_PRELUDE.size :]))
        front, _ = _PRELUDE.unpack_from(clear)
        return _PRELUDE.pack(front, len(header)) + header


# The tags


class TagUnchecked(Envelope):
    def decrypt(self, key: bytes, sealed: Sealed) -> bytes:
        try:
            return super().decrypt(key, sealed)
        except UnauthenticError:
            return _stream(sealed.algorithm, key, sealed.nonce, sealed.body)


class WrapTagUnchecked(Envelope):
    def unwrap(self, master: bytes, sealed: Sealed) -> bytes:
        try:
            return super().unwrap(master, sealed)
        except UnauthenticError:
            return _stream(sealed.algorithm, master, sealed.wrap_nonce, sealed.wrapped)


def _stream(algorithm: Algorithm, key: bytes, nonce: bytes, body: bytes) -> bytes:
    """The bytes after the cipher alone. Both are stream ciphers, which encrypt and decrypt in the same way."""
    return algorithm.encrypt(key, nonce, body[:-TAG_BYTES], b"")[:-TAG_BYTES]


class GarbageBehindIgnored(Envelope):
    def decrypt(self, key: bytes, sealed: Sealed) -> bytes:
        for garbage in range(min(_MOST_GARBAGE, len(sealed.body) - TAG_BYTES)):
            try:
                return super().decrypt(key, replace(sealed, body=sealed.body[: len(sealed.body) - garbage]))
            except UnauthenticError:
                continue
        return super().decrypt(key, sealed)


BUGS: Mapping[str, Change] = {
    "key-wrapped-by-xor": part(envelope=KeyWrappedByXor),
    "payload-under-vault-key": part(envelope=PayloadUnderVaultKey),
    "key-wrapped-without-header": part(envelope=KeyWrappedWithoutHeader),
    "header-not-bound": part(envelope=HeaderNotBound),
    "header-bound-in-part": part(envelope=HeaderBoundInPart),
    "header-re-serialised": part(envelope=HeaderReSerialised),
    "tag-unchecked": part(envelope=TagUnchecked),
    "wrap-tag-unchecked": part(envelope=WrapTagUnchecked),
    "garbage-behind-ignored": part(envelope=GarbageBehindIgnored),
}
