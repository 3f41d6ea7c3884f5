"""From a request to its fingerprint (section 4.4): every field has a method, and every guard one of its own."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from holdfast.reference_impl.jcs.canonicaliser import Canonicaliser
from holdfast.reference_impl.jcs.terms import Refusal
from holdfast.reference_impl.mesh_delivery.terms import Field, Reason, RefusedError, Terms, read_terms

_NUL = "\0"
_KEY = re.compile(r"[0-9a-fA-F]{64}\Z")
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\Z")
# 26 digits of five bits are 130, so the first one holds no more than three. Crockford leaves out I, L, O and U.
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}\Z", re.ASCII | re.IGNORECASE)
_ULID_VALUES = {digit: value for value, digit in enumerate("0123456789ABCDEFGHJKMNPQRSTVWXYZ")}
# Empty values of meta, in the spelling of RFC 8785.
_EMPTY_METAS = frozenset({b"{}", b"null"})


class Fingerprinter:
    """Computes fingerprints of requests that fit the schema; `canonicaliser` is that of the meta profile."""

    def __init__(self, terms: Terms, canonicaliser: Canonicaliser) -> None:
        self.terms = terms
        self.canonicaliser = canonicaliser

    def fingerprint(self, request: Mapping[str, Any]) -> str:
        """The fingerprint in hexadecimal. Raises RefusedError."""
        return self.digest(self.joined(self.fields(request))).hex()

    def fields(self, request: Mapping[str, Any]) -> list[bytes]:
        """The fields in the contract's order."""
        found = {
            "envelope_version": self.envelope_version(request["envelope_version"]),
            "destination_kind": self.destination_kind(request["destination_kind"]),
            "destination_ref": self.destination_ref(request["destination_kind"], request["destination_ref"]),
            "reply_to": self.reply_to(request.get("reply_to")),
            "priority": self.priority(request),
            "meta": self.meta(request.get("meta")),
            "body_hash": self.body_hash(decoded(request["body"])),
        }
        return [found[name] for name in self.order()]

    def order(self) -> tuple[str, ...]:
        """The order of the fields."""
        return self.terms.field_order

    def joined(self, fields: list[bytes]) -> bytes:
        """The bytes that are hashed."""
        return self.terms.separator.join(fields)

    def digest(self, preimage: bytes) -> bytes:
        """The 32 bytes of the fingerprint."""
        return hashlib.sha256(preimage).digest()

    def envelope_version(self, version: int) -> bytes:
        """Decimal digits."""
        return b"%d" % version

    def destination_kind(self, kind: str) -> bytes:
        """One of the closed list, as it stands."""
        if kind not in self.terms.destination_kinds:
            raise RefusedError(Reason.UNKNOWN_VALUE, Field.DESTINATION_KIND)
        return kind.encode()

    def destination_ref(self, kind: str, reference: str) -> bytes:
        """A public key in lower case; or the name of a topic or a queue, nothing folded."""
        reference = self.without_nul(Field.DESTINATION_REF, reference)
        return self.public_key(reference) if kind == "dm" else reference.encode()

    def public_key(self, reference: str) -> bytes:
        """64 hexadecimal digits in lower case."""
        if not _KEY.match(reference):
            raise RefusedError(Reason.REFERENCE_INVALID, Field.DESTINATION_REF)
        return reference.lower().encode()

    def reply_to(self, reply: str | None) -> bytes:
        """Nothing, or a UUID in lower case."""
        if not reply:
            return b""
        reply = self.without_nul(Field.REPLY_TO, reply)
        if _UUID.match(reply):
            return reply.lower().encode()
        if _ULID.match(reply):
            return self.uuid_of_ulid(reply).encode()
        raise RefusedError(Reason.REFERENCE_INVALID, Field.REPLY_TO)

    def uuid_of_ulid(self, text: str) -> str:
        """The same 128 bits as a UUID."""
        bits = 0
        for digit in text.upper():
            bits = bits << 5 | _ULID_VALUES[digit]
        return str(UUID(int=bits))

    def priority(self, request: Mapping[str, Any]) -> bytes:
        """One of the closed list; the default is put in first."""
        priority = str(request.get("priority", self.terms.default_priority))
        if priority not in self.terms.priorities:
            raise RefusedError(Reason.UNKNOWN_VALUE, Field.PRIORITY)
        return priority.encode()

    def meta(self, meta: str | None) -> bytes:
        """The RFC 8785 form of an object, or nothing."""
        if meta is None:
            return b""
        canonical = self.canonical(decoded(meta))
        if canonical in _EMPTY_METAS:
            return b""
        if not canonical.startswith(b"{"):
            raise RefusedError(Reason.META_INVALID, Field.META)
        return canonical

    def canonical(self, document: bytes) -> bytes:
        """The canonical form of a JSON text."""
        canonical = self.canonicaliser.canonicalise(document)
        if isinstance(canonical, Refusal):
            raise RefusedError(Reason.META_INVALID, Field.META)
        return canonical

    def body_hash(self, body: bytes) -> bytes:
        """The body's own SHA-256 in hexadecimal."""
        return hashlib.sha256(body).hexdigest().encode()

    def without_nul(self, field: Field, text: str) -> str:
        """A text without the byte that ends a field."""
        if _NUL in text:
            raise RefusedError(Reason.NUL_IN_FIELD, field)
        return text


def fingerprints() -> Fingerprinter:
    """What computes fingerprints by the terms of the contract."""
    terms = read_terms()
    return Fingerprinter(terms, Canonicaliser(terms.meta_profile))


def decoded(text: str) -> bytes:
    """The bytes of base64url without padding, which the schema has checked."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
