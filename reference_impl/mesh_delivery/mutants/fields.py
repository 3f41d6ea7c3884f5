"""Bugs about single fields: dropped, spelt in several ways, folded, unchecked."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping
from typing import Any

from holdfast.reference_impl.mesh_delivery.fingerprint import Fingerprinter
from holdfast.reference_impl.mesh_delivery.terms import Field
from holdfast.reference_impl.planting import Change, part


class KindDropped(Fingerprinter):
    def destination_kind(self, kind: str) -> bytes:
        super().destination_kind(kind)
        return b"topic"


class KindUnchecked(Fingerprinter):
    def destination_kind(self, kind: str) -> bytes:
        return kind.encode()


class KindAnyCase(Fingerprinter):
    def destination_kind(self, kind: str) -> bytes:
        return super().destination_kind(kind.lower())


class KeyCaseKept(Fingerprinter):
    def lower(self, digits: str) -> str:
        return digits


class KeyUnchecked(Fingerprinter):
    def public_key(self, reference: str) -> bytes:
        return self.lower(reference).encode()


class KeyStripped(Fingerprinter):
    def public_key(self, reference: str) -> bytes:
        return super().public_key(reference.strip())


class Folded(Fingerprinter):
    def name(self, reference: str) -> bytes:
        return super().name(reference.casefold())


class Composed(Fingerprinter):
    def name(self, reference: str) -> bytes:
        return super().name(unicodedata.normalize("NFC", reference))


class ReplyDropped(Fingerprinter):
    def reply_to(self, reply: str | None) -> bytes:
        super().reply_to(reply)
        return b""


class ReplyAsText(Fingerprinter):
    def no_reply(self) -> bytes:
        return b"None"


class ReplyCaseKept(Fingerprinter):
    def lower_uuid(self, text: str) -> str:
        return text


class UlidKept(Fingerprinter):
    def uuid_of_ulid(self, text: str) -> str:
        return text


class ReplyUnchecked(Fingerprinter):
    def invalid_reference(self, field: Field, text: str) -> bytes:
        return text.encode() if field is Field.REPLY_TO else super().invalid_reference(field, text)


class PriorityDropped(Fingerprinter):
    def priority(self, request: Mapping[str, Any]) -> bytes:
        super().priority(request)
        return self.terms.default_priority.encode()


class PriorityEmpty(Fingerprinter):
    def priority(self, request: Mapping[str, Any]) -> bytes:
        return super().priority(request) if "priority" in request else b""


class PriorityUnchecked(Fingerprinter):
    def unknown(self, field: Field, value: str) -> None:
        if field is not Field.PRIORITY:
            super().unknown(field, value)


class OtherField(Fingerprinter):
    def unknown(self, field: Field, value: str) -> None:
        super().unknown(Field.PRIORITY if field is Field.DESTINATION_KIND else Field.DESTINATION_KIND, value)


class BodyDropped(Fingerprinter):
    def body_hash(self, body: bytes) -> bytes:
        return super().body_hash(b"hello")


class BodyDecoded(Fingerprinter):
    def body_hash(self, body: bytes) -> bytes:
        return super().body_hash(body.decode("utf-8", "replace").encode())


class LineEnds(Fingerprinter):
    def body_hash(self, body: bytes) -> bytes:
        return super().body_hash(body.replace(b"\r\n", b"\n"))


class HashRaw(Fingerprinter):
    def body_hash(self, body: bytes) -> bytes:
        return hashlib.sha256(body).digest()


class EmptyNothing(Fingerprinter):
    def body_hash(self, body: bytes) -> bytes:
        return super().body_hash(body) if body else b""


class NulUnchecked(Fingerprinter):
    def without_nul(self, field: Field, text: str) -> str:
        return text


class NulStripped(Fingerprinter):
    def without_nul(self, field: Field, text: str) -> str:
        return text.replace("\0", "")


BUGS: Mapping[str, Change] = {
    "kind-dropped": part(fingerprinter=KindDropped),
    "kind-unchecked": part(fingerprinter=KindUnchecked),
    "kind-any-case": part(fingerprinter=KindAnyCase),
    "key-case-kept": part(fingerprinter=KeyCaseKept),
    "public-key-unchecked": part(fingerprinter=KeyUnchecked),
    "public-key-stripped": part(fingerprinter=KeyStripped),
    "reference-folded": part(fingerprinter=Folded),
    "reference-composed": part(fingerprinter=Composed),
    "reply-dropped": part(fingerprinter=ReplyDropped),
    "reply-none-as-text": part(fingerprinter=ReplyAsText),
    "reply-case-kept": part(fingerprinter=ReplyCaseKept),
    "reply-ulid-kept": part(fingerprinter=UlidKept),
    "reply-unchecked": part(fingerprinter=ReplyUnchecked),
    "priority-dropped": part(fingerprinter=PriorityDropped),
    "priority-absent-empty": part(fingerprinter=PriorityEmpty),
    "priority-unchecked": part(fingerprinter=PriorityUnchecked),
    "refusal-names-another-field": part(fingerprinter=OtherField),
    "body-dropped": part(fingerprinter=BodyDropped),
    "body-decoded": part(fingerprinter=BodyDecoded),
    "body-line-ends": part(fingerprinter=LineEnds),
    "body-hash-raw": part(fingerprinter=HashRaw),
    "body-empty-nothing": part(fingerprinter=EmptyNothing),
    "nul-unchecked": part(fingerprinter=NulUnchecked),
    "nul-stripped": part(fingerprinter=NulStripped),
}
