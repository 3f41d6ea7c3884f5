"""Bugs about single fields: dropped, spelt in several ways, folded, unchecked."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping
from typing import Any

from reference_impl.mesh_delivery.fingerprint import Fingerprinter
from reference_impl.mutants.mesh_delivery.planting import mutant

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
        KindDropped,
        {"F3": "fail_open", "F10": "fail_open"},
        also="F1 F4",
        why=_SHARED,
    ),
    mutant("kind-unchecked", "any kind is hashed", KindUnchecked, {"F3": "fail_open"}),
    mutant("kind-any-case", "Topic is a topic", KindAnyCase, {"F3": "fail_open"}),
    mutant(
        "key-case-kept",
        "a key in upper case is another key",
        KeyCaseKept,
        {"F4": "wrong_reason"},
        also="F10",
        why=_SHARED,
    ),
    mutant("public-key-unchecked", "anything is a public key", KeyUnchecked, {"F4": "fail_open"}),
    mutant("reference-folded", "Topics in another case are one topic", Folded, {"F4": "fail_open", "F10": "fail_open"}),
    mutant("reference-composed", "names are composed (NFC)", Composed, {"F4": "fail_open"}),
    mutant(
        "reply-dropped",
        "a reply is no reply",
        ReplyDropped,
        {"F5": "fail_open", "F10": "fail_open"},
        also="F1",
        why=_SHARED,
    ),
    mutant(
        "reply-none-as-text",
        "the word None stands for no reply",
        ReplyAsText,
        {"F5": "wrong_reason"},
        also="every",
        why="most requests are no reply",
    ),
    mutant(
        "reply-case-kept",
        "an id in upper case is another id",
        ReplyCaseKept,
        {"F5": "wrong_reason"},
        also="F10",
        why=_SHARED,
    ),
    mutant("reply-ulid-kept", "a ULID is hashed as it is spelt", UlidKept, {"F5": "wrong_reason"}),
    mutant("reply-unchecked", "anything is an id", ReplyUnchecked, {"F5": "fail_open"}),
    mutant(
        "priority-dropped",
        "every priority is the default",
        PriorityDropped,
        {"F6": "fail_open", "F10": "fail_open"},
        also="F1",
        why=_SHARED,
    ),
    mutant(
        "priority-absent-empty",
        "the default is put in after hashing",
        PriorityEmpty,
        {"F6": "wrong_reason"},
        also="every",
        why="most requests name no priority",
    ),
    mutant("priority-unchecked", "any priority is hashed", PriorityUnchecked, {"F6": "fail_open"}),
    mutant("body-dropped", "every body is the same", BodyDropped, {"F9": "fail_open", "F10": "fail_open"}),
    mutant("body-decoded", "a body is decoded and encoded again", BodyDecoded, {"F9": "fail_open"}),
    mutant("body-line-ends", "line ends are made one", LineEnds, {"F9": "fail_open"}),
    mutant(
        "body-hash-raw",
        "the digest's bytes, not its digits",
        HashRaw,
        {"F9": "wrong_reason"},
        also="every",
        why="every fingerprint is another one",
    ),
    mutant("body-empty-nothing", "no body is hashed as nothing", EmptyNothing, {"F9": "wrong_reason"}),
    mutant("nul-unchecked", "NUL goes through", NulUnchecked, {"F12": "fail_open"}),
    mutant("nul-stripped", "NUL is dropped", NulStripped, {"F12": "fail_open"}),
)
