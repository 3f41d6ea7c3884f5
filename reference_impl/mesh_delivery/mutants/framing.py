"""Bugs about the bytes that are hashed: order, separators, versions, the digest, and what has no place in them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from holdfast.reference_impl.jcs.canonicaliser import Canonicaliser
from holdfast.reference_impl.mesh_delivery.fingerprint import Fingerprinter
from holdfast.reference_impl.mesh_delivery.mutants.planting import mutant
from holdfast.reference_impl.mesh_delivery.terms import Terms
from holdfast.reference_impl.mutants.planting import EVERYTHING, also, part

_EVERY = "every fingerprint is another one"
_BOTH = "a field with nothing in it, or with the same in it, is left out unseen"


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
        # One byte, so that a few hundred requests meet; eight bytes meet as surely, only later.
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


MUTANTS = (
    mutant(
        "order-swapped",
        "reply_to and priority change places",
        part(fingerprinter=Swapped),
        {"F1": "wrong_reason"},
        also(_EVERY, EVERYTHING),
    ),
    mutant(
        "separator-other",
        "0x1F between the fields",
        part(fingerprinter=Other),
        {"F1": "wrong_reason"},
        also(_EVERY, EVERYTHING),
    ),
    mutant(
        "separator-behind",
        "a zero byte behind the last field",
        part(fingerprinter=Behind),
        {"F1": "wrong_reason"},
        also(_EVERY, EVERYTHING),
    ),
    mutant(
        "separator-dropped",
        "nothing between the fields",
        part(fingerprinter=Dropped),
        {"F1": "fail_open", "F10": "fail_open"},
        also(_EVERY, EVERYTHING),
    ),
    mutant(
        "digest-upper-case",
        "digits in upper case",
        part(fingerprinter=Upper),
        {"F1": "wrong_reason"},
        also(_EVERY, EVERYTHING),
    ),
    mutant(
        "fingerprint-truncated",
        "the beginning of the digest only",
        part(fingerprinter=Truncated),
        {"F10": "fail_open"},
        also(_EVERY, EVERYTHING),
    ),
    mutant(
        "version-padded",
        "the version in two digits",
        part(fingerprinter=Padded),
        {"F2": "wrong_reason"},
        also(_EVERY, EVERYTHING),
    ),
    mutant(
        "version-packed",
        "the version in eight bytes",
        part(fingerprinter=Packed),
        {"F2": "wrong_reason"},
        also(_EVERY, EVERYTHING),
    ),
    mutant(
        "version-dropped",
        "every version is 1",
        part(fingerprinter=VersionDropped),
        {"F2": "fail_open", "F10": "fail_open"},
        also(_BOTH, "F1"),
    ),
    mutant(
        "with-time",
        "the time is hashed too",
        part(fingerprinter=WithTime),
        {"F11": "wrong_reason"},
        also(_EVERY, EVERYTHING),
    ),
    mutant(
        "with-attempts",
        "the number of the attempt is hashed from the second on",
        part(fingerprinter=WithAttempts),
        {"F11": "wrong_reason"},
        also("a request that is asked about twice has two fingerprints", "F3 F4 F5 F6 F7 F8 F10"),
    ),
    mutant(
        "with-process",
        "the number of the process is hashed too",
        part(fingerprinter=WithProcess),
        {"F11": "wrong_reason"},
        also(_EVERY, EVERYTHING),
    ),
)
