"""Bugs about meta: canonicalised almost, or repaired where it must be refused."""

from __future__ import annotations

import json
from typing import Any

from holdfast.reference_impl.jcs.factory import REFERENCE
from holdfast.reference_impl.jcs.terms import Profile, Refusal
from holdfast.reference_impl.mesh_delivery.fingerprint import Fingerprinter
from holdfast.reference_impl.mesh_delivery.mutants.planting import mutant
from holdfast.reference_impl.mesh_delivery.terms import Reason, RefusedError
from holdfast.reference_impl.mutants.planting import also, part

_SHARED = "meta is a part of requests of other clauses"


def _dumped(document: bytes, **options: Any) -> bytes:
    return json.dumps(json.loads(document), separators=(",", ":"), sort_keys=True, **options).encode()


class Dropped(Fingerprinter):
    def meta(self, meta: str | None) -> bytes:
        super().meta(meta)
        return b""


class AsSent(Fingerprinter):
    def canonical(self, document: bytes) -> bytes:
        # Empty is empty, however many blanks are in it.
        canonical = super().canonical(document)
        return canonical if canonical in (b"{}", b"null") or not canonical.startswith(b"{") else document.strip()


class CodePoints(Fingerprinter):
    def canonical(self, document: bytes) -> bytes:
        canonical = super().canonical(document)
        if not canonical.startswith(b"{") or canonical.isascii():
            return canonical
        # The outermost object is enough; the others are right.
        ordered = dict(sorted(json.loads(canonical).items()))
        return json.dumps(ordered, separators=(",", ":"), ensure_ascii=False).encode()


class Ascii(Fingerprinter):
    def canonical(self, document: bytes) -> bytes:
        text = super().canonical(document).decode()
        return "".join(c if c.isascii() else json.dumps(c)[1:-1] for c in text).encode()


class Repr(Fingerprinter):
    def canonical(self, document: bytes) -> bytes:
        super().canonical(document)
        return _dumped(document, ensure_ascii=False)


class Braces(Fingerprinter):
    def empty_meta(self, canonical: bytes) -> bytes:
        return canonical if canonical == b"{}" else super().empty_meta(canonical)


class NullAsText(Fingerprinter):
    def no_meta(self) -> bytes:
        return b"null"


class Rounded(Fingerprinter):
    def canonical(self, document: bytes) -> bytes:
        canonical = REFERENCE.build(Profile.CORE).canonicalise(document)
        return super().canonical(document) if isinstance(canonical, Refusal) else canonical


class Lenient(Fingerprinter):
    def canonical(self, document: bytes) -> bytes:
        try:
            return super().canonical(document)
        except RefusedError:
            try:
                return _dumped(document)
            except ValueError:
                raise RefusedError(Reason.META_INVALID, "meta") from None


class AnyValue(Fingerprinter):
    def not_an_object(self, canonical: bytes) -> None:
        pass


MUTANTS = (
    mutant(
        "meta-dropped",
        "meta is not hashed",
        part(fingerprinter=Dropped),
        {"F10": "fail_open"},
        also(_SHARED, "F1 F7 F8 F12"),
    ),
    mutant(
        "meta-as-sent",
        "meta is hashed as it was sent",
        part(fingerprinter=AsSent),
        {"F7": "wrong_reason"},
        also(_SHARED, "F10"),
    ),
    mutant(
        "meta-code-points", "members are ordered by code points", part(fingerprinter=CodePoints), {"F7": "wrong_reason"}
    ),
    mutant("meta-ascii", "everything beyond ASCII is escaped", part(fingerprinter=Ascii), {"F7": "wrong_reason"}),
    mutant(
        "meta-repr",
        "json.dumps with sorted keys",
        part(fingerprinter=Repr),
        {"F7": "wrong_reason"},
        also(_SHARED, "F10"),
    ),
    mutant(
        "meta-empty-braces",
        "an empty object is hashed as {}",
        part(fingerprinter=Braces),
        {"F8": "wrong_reason"},
        also(_SHARED, "F10"),
    ),
    mutant(
        "meta-null-as-text",
        "no meta is hashed as null",
        part(fingerprinter=NullAsText),
        {"F8": "wrong_reason"},
        also("most requests have no meta", "F1 F2 F3 F4 F5 F6 F9 F10"),
    ),
    mutant("meta-rounded", "integers beyond 2^53 are rounded", part(fingerprinter=Rounded), {"F13": "fail_open"}),
    mutant(
        "meta-lenient", "whatever a lenient parser makes of meta", part(fingerprinter=Lenient), {"F13": "fail_open"}
    ),
    mutant("meta-any-value", "an array or a scalar is a meta", part(fingerprinter=AnyValue), {"F13": "fail_open"}),
)
