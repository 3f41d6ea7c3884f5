"""Bugs about single fields: dropped, spelt in several ways, folded, unchecked."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping
from typing import Any

from holdfast.reference_impl.mesh_delivery.fingerprint import Fingerprinter
from holdfast.reference_impl.mesh_delivery.mutants.planting import mutant
from holdfast.reference_impl.mutants.planting import EVERYTHING, also, part

_SHARED = "the same field is a part of other clauses"


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
    def invalid_reference(self, field: str, text: str) -> bytes:
        return text.encode() if field == "reply_to" else super().invalid_reference(field, text)


class PriorityDropped(Fingerprinter):
    def priority(self, request: Mapping[str, Any]) -> bytes:
        super().priority(request)
        return self.terms.default_priority.encode()


class PriorityEmpty(Fingerprinter):
    def priority(self, request: Mapping[str, Any]) -> bytes:
        return super().priority(request) if "priority" in request else b""


class PriorityUnchecked(Fingerprinter):
    def unknown(self, field: str, value: str) -> None:
        if field != "priority":
            super().unknown(field, value)


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
    def without_nul(self, field: str, text: str) -> str:
        return text


class NulStripped(Fingerprinter):
    def without_nul(self, field: str, text: str) -> str:
        return text.replace("\0", "")


MUTANTS = (
    mutant(
        "kind-dropped",
        "every kind is a topic",
        part(fingerprinter=KindDropped),
        {"F3": "fail_open", "F10": "fail_open"},
        also(_SHARED, "F1 F4"),
    ),
    mutant("kind-unchecked", "any kind is hashed", part(fingerprinter=KindUnchecked), {"F3": "fail_open"}),
    mutant("kind-any-case", "Topic is a topic", part(fingerprinter=KindAnyCase), {"F3": "fail_open"}),
    mutant(
        "key-case-kept",
        "a key in upper case is another key",
        part(fingerprinter=KeyCaseKept),
        {"F4": "wrong_reason"},
        also(_SHARED, "F10"),
    ),
    mutant("public-key-unchecked", "anything is a public key", part(fingerprinter=KeyUnchecked), {"F4": "fail_open"}),
    mutant(
        "reference-folded",
        "Topics in another case are one topic",
        part(fingerprinter=Folded),
        {"F4": "fail_open", "F10": "fail_open"},
    ),
    mutant("reference-composed", "names are composed (NFC)", part(fingerprinter=Composed), {"F4": "fail_open"}),
    mutant(
        "reply-dropped",
        "a reply is no reply",
        part(fingerprinter=ReplyDropped),
        {"F5": "fail_open", "F10": "fail_open"},
        also(_SHARED, "F1"),
    ),
    mutant(
        "reply-none-as-text",
        "the word None stands for no reply",
        part(fingerprinter=ReplyAsText),
        {"F5": "wrong_reason"},
        also("most requests are no reply", EVERYTHING),
    ),
    mutant(
        "reply-case-kept",
        "an id in upper case is another id",
        part(fingerprinter=ReplyCaseKept),
        {"F5": "wrong_reason"},
        also(_SHARED, "F10"),
    ),
    mutant("reply-ulid-kept", "a ULID is hashed as it is spelt", part(fingerprinter=UlidKept), {"F5": "wrong_reason"}),
    mutant("reply-unchecked", "anything is an id", part(fingerprinter=ReplyUnchecked), {"F5": "fail_open"}),
    mutant(
        "priority-dropped",
        "every priority is the default",
        part(fingerprinter=PriorityDropped),
        {"F6": "fail_open", "F10": "fail_open"},
        also(_SHARED, "F1"),
    ),
    mutant(
        "priority-absent-empty",
        "the default is put in after hashing",
        part(fingerprinter=PriorityEmpty),
        {"F6": "wrong_reason"},
        also("most requests name no priority", EVERYTHING),
    ),
    mutant("priority-unchecked", "any priority is hashed", part(fingerprinter=PriorityUnchecked), {"F6": "fail_open"}),
    mutant(
        "body-dropped",
        "every body is the same",
        part(fingerprinter=BodyDropped),
        {"F9": "fail_open", "F10": "fail_open"},
    ),
    mutant("body-decoded", "a body is decoded and encoded again", part(fingerprinter=BodyDecoded), {"F9": "fail_open"}),
    mutant("body-line-ends", "line ends are made one", part(fingerprinter=LineEnds), {"F9": "fail_open"}),
    mutant(
        "body-hash-raw",
        "the digest's bytes, not its digits",
        part(fingerprinter=HashRaw),
        {"F9": "wrong_reason"},
        also("every fingerprint is another one", EVERYTHING),
    ),
    mutant(
        "body-empty-nothing", "no body is hashed as nothing", part(fingerprinter=EmptyNothing), {"F9": "wrong_reason"}
    ),
    mutant("nul-unchecked", "NUL goes through", part(fingerprinter=NulUnchecked), {"F12": "fail_open"}),
    mutant("nul-stripped", "NUL is dropped", part(fingerprinter=NulStripped), {"F12": "fail_open"}),
)
