"""Bugs about meta: canonicalised almost, or repaired where it must be refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from holdfast.reference_impl.jcs.factory import REFERENCE
from holdfast.reference_impl.jcs.terms import Profile, Refusal
from holdfast.reference_impl.mesh_delivery.fingerprint import Fingerprinter
from holdfast.reference_impl.mesh_delivery.terms import Field, Reason, RefusedError
from holdfast.reference_impl.planting import Change, part


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
                raise RefusedError(Reason.META_INVALID, Field.META) from None


class AnyValue(Fingerprinter):
    def not_an_object(self, canonical: bytes) -> None:
        pass


BUGS: Mapping[str, Change] = {
    "meta-dropped": part(fingerprinter=Dropped),
    "meta-as-sent": part(fingerprinter=AsSent),
    "meta-code-points": part(fingerprinter=CodePoints),
    "meta-ascii": part(fingerprinter=Ascii),
    "meta-repr": part(fingerprinter=Repr),
    "meta-empty-braces": part(fingerprinter=Braces),
    "meta-null-as-text": part(fingerprinter=NullAsText),
    "meta-rounded": part(fingerprinter=Rounded),
    "meta-lenient": part(fingerprinter=Lenient),
    "meta-any-value": part(fingerprinter=AnyValue),
}
