"""Bugs about the bytes that are hashed: order, separators, versions, the digest, and what has no place in them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from holdfast.reference_impl.jcs.canonicaliser import Canonicaliser
from holdfast.reference_impl.mesh_delivery.fingerprint import Fingerprinter
from holdfast.reference_impl.mesh_delivery.terms import Terms
from holdfast.reference_impl.planting import Change, part


class Swapped(Fingerprinter):
    def order(self) -> tuple[str, ...]:
        version, kind, reference, reply, priority, meta, body = super().order()
        return version, kind, reference, priority, reply, meta, body


class Other(Fingerprinter):
    def joined(self, fields: list[bytes]) -> bytes:
        return b"\x1f".join(fields)


class Behind(Fingerprinter):
    def joined(self, fields: list[bytes]) -> bytes:
        return super().joined([*fields, b""])


class Dropped(Fingerprinter):
    def joined(self, fields: list[bytes]) -> bytes:
        return b"".join(fields)


class Upper(Fingerprinter):
    def spelt(self, digest: bytes) -> str:
        return super().spelt(digest).upper()


class Truncated(Fingerprinter):
    def spelt(self, digest: bytes) -> str:
        # One byte, so that a few hundred requests collide. Eight bytes collide as well, only later.
        return super().spelt(digest[:1])


class Padded(Fingerprinter):
    def envelope_version(self, version: int) -> bytes:
        return b"%02d" % version


class Packed(Fingerprinter):
    def envelope_version(self, version: int) -> bytes:
        return version.to_bytes(8, "big")


class VersionDropped(Fingerprinter):
    def envelope_version(self, version: int) -> bytes:
        return b"1"


class WithTime(Fingerprinter):
    def joined(self, fields: list[bytes]) -> bytes:
        return super().joined([*fields, b"%d" % time.monotonic_ns()])


class WithAttempts(Fingerprinter):
    def __init__(self, terms: Terms, canonicaliser: Canonicaliser) -> None:
        super().__init__(terms, canonicaliser)
        self.attempts: dict[bytes, int] = {}

    def joined(self, fields: list[bytes]) -> bytes:
        plain = super().joined(fields)
        self.attempts[plain] = self.attempts.get(plain, 0) + 1
        return plain if self.attempts[plain] == 1 else plain + b"%d" % self.attempts[plain]


class WithProcess(Fingerprinter):
    def fields(self, request: Mapping[str, Any]) -> list[bytes]:
        return [*super().fields(request), b"%d" % os.getpid()]


BUGS: Mapping[str, Change] = {
    "order-swapped": part(fingerprinter=Swapped),
    "separator-other": part(fingerprinter=Other),
    "separator-behind": part(fingerprinter=Behind),
    "separator-dropped": part(fingerprinter=Dropped),
    "digest-upper-case": part(fingerprinter=Upper),
    "fingerprint-truncated": part(fingerprinter=Truncated),
    "version-padded": part(fingerprinter=Padded),
    "version-packed": part(fingerprinter=Packed),
    "version-dropped": part(fingerprinter=VersionDropped),
    "with-time": part(fingerprinter=WithTime),
    "with-attempts": part(fingerprinter=WithAttempts),
    "with-process": part(fingerprinter=WithProcess),
}
