"""Bugs in how objects are sealed and opened (HX-CRY-3, -4, -6, HX-T3, HX-T5)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.reference_impl.hx_sync import canonical
from holdfast.reference_impl.hx_sync.algorithms import KEY_BYTES, TAG_BYTES, Algorithm, UnauthenticError
from holdfast.reference_impl.hx_sync.envelope import Envelope, Sealed
from holdfast.reference_impl.hx_sync.mutants.planting import mutant
from holdfast.reference_impl.hx_sync.terms import Kind
from holdfast.reference_impl.mutants.catalogue import Mutant
from holdfast.reference_impl.mutants.planting import also, part

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
    """Writes with associated data of its own, and reads both its own objects and those that are as they should be."""

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
    """What the cipher alone makes of it: both are streams, which encrypt and decrypt alike."""
    return algorithm.encrypt(key, nonce, body[:-TAG_BYTES], b"")[:-TAG_BYTES]


class GarbageBehindIgnored(Envelope):
    def decrypt(self, key: bytes, sealed: Sealed) -> bytes:
        for garbage in range(min(_MOST_GARBAGE, len(sealed.body) - TAG_BYTES)):
            try:
                return super().decrypt(key, replace(sealed, body=sealed.body[: len(sealed.body) - garbage]))
            except UnauthenticError:
                continue
        return super().decrypt(key, sealed)


_OPENS = "their cases open what was published"

MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "key-wrapped-by-xor",
        "The object's key is combined with the vault key by exclusive or",
        part(envelope=KeyWrappedByXor),
        {"CRY-3": "wrong_reason"},
        also(_OPENS, "BLB-1 CRY-2 CRY-5 P2 STO-3 SEG-8 TMB-1"),
    ),
    mutant(
        "payload-under-vault-key",
        "Payloads are encrypted with the vault key itself",
        part(envelope=PayloadUnderVaultKey),
        {"CRY-3": "wrong_reason"},
        also(_OPENS, "BLB-1 CRY-2 CRY-5 P2 STO-3 SEG-8 TMB-1"),
    ),
    mutant(
        "key-wrapped-without-header",
        "The header is no associated data of the wrapped key",
        part(envelope=KeyWrappedWithoutHeader),
        {"CRY-3": "fail_open"},
        also("a wrapped key opens under any header", "CRY-4 T5")
        | also(_OPENS, "BLB-1 CRY-2 CRY-5 P2 STO-3 SEG-8 TMB-1"),
    ),
    mutant(
        "header-not-bound",
        "The header is no associated data at all",
        part(envelope=HeaderNotBound),
        {"CRY-4": "fail_open", "T5": "fail_open"},
        also(_OPENS, "BLB-1 CRY-2 CRY-3 CRY-5 CRY-6 P2 STO-3 SEG-8 TMB-1"),
    ),
    mutant(
        "header-bound-in-part",
        "Of the header only type and id are associated data",
        part(envelope=HeaderBoundInPart),
        {"CRY-4": "fail_open"},
        also(_OPENS, "BLB-1 CRY-2 CRY-3 CRY-5 P2 STO-3 SEG-8 T5 TMB-1"),
    ),
    mutant(
        "header-re-serialised",
        "Associated data is the header in the spelling of the one who reads it",
        part(envelope=HeaderReSerialised),
        {"CRY-4": "fail_open"},
        also("another spelling of the same header passes", "T5 CRY-6"),
    ),
    mutant(
        "tag-unchecked",
        "A payload whose tag does not fit is decrypted all the same",
        part(envelope=TagUnchecked),
        {"CRY-6": "fail_open", "T3": "wrong_reason", "T5": "fail_open"},
        also("what was altered is read", "BLB-1 CRY-3 CRY-4 CRY-5 IMP-1 IMP-2 IMP-5 LOC-5 MAN-1 TMB-1 BLB-7"),
    ),
    mutant(
        "wrap-tag-unchecked",
        "A wrapped key whose tag does not fit is unwrapped all the same",
        part(envelope=WrapTagUnchecked),
        {"CRY-6": "fail_open"},
        also("what was altered is read", "CRY-3 CRY-4 CRY-5 T5"),
    ),
    mutant(
        "garbage-behind-ignored",
        "Some bytes behind the tag do no harm",
        part(envelope=GarbageBehindIgnored),
        {"T3": "fail_open"},
        also("an object with bytes behind it is read", "CRY-6 T5 IMP-1 IMP-5"),
    ),
)
