"""The one spelling of an envelope: strict decoding, canonical encoding, and the key over it (source section 2)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.reference_impl import base64url
from holdfast.reference_impl.calyx_replay.terms import Settings
from holdfast.reference_impl.ed25519 import KEY_BYTES, valid
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.strictjson import canonical, loads

MEMBERS = frozenset({"protocol_version", "header", "ciphertext", "signature"})
# Two levels of objects are allowed. One level more lets the error name the member and not the depth.
_MAX_DEPTH = 3
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_UUID_V4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class EnvelopeError(ValueError):
    """Bytes are not the one canonical encoding of an envelope; the text says what was expected and what came."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A decoded envelope. `raw` is as it came, `canonical` the whole encoding, `signed` that without `signature`."""

    raw: bytes
    canonical: bytes
    signed: bytes
    msg_id: str
    sender_key: bytes
    sender_fp: str
    recipient_fp: str
    timestamp: str
    signature: bytes

    def is_signed(self) -> bool:
        """Whether the signature is the sender's over everything but it. Never raises."""
        return valid(self.sender_key, self.signed, self.signature)


class Codec:
    """Decodes and encodes envelopes. It has no state, and every check is one method."""

    def __init__(self, settings: Settings) -> None:
        self._protocol_version = settings.protocol_version
        self._most_bytes = settings.max_envelope_bytes

    def decode(self, raw: bytes) -> Envelope:
        """The envelope in these bytes. Raises EnvelopeError."""
        value = self.parse(raw)
        self.check_members(value)
        header = value["header"]
        self.check_header(header)
        whole = self.encode(value)
        self.check_spelling(raw, whole=whole)
        return Envelope(
            raw=raw,
            canonical=whole,
            signed=self.encode({name: value[name] for name in value if name != "signature"}),
            msg_id=header["msg_id"],
            sender_key=self.sender_key(header),
            sender_fp=header["sender_fp"],
            recipient_fp=header["recipient_fp"],
            timestamp=header["timestamp"],
            signature=self.binary("signature", value["signature"]),
        )

    def parse(self, raw: bytes) -> Mapping[str, Any]:
        """The JSON object in these bytes. Raises EnvelopeError."""
        if len(raw) > self._most_bytes:
            raise EnvelopeError(f"expected at most {self._most_bytes} bytes, got {len(raw)}")
        try:
            value = loads(raw, max_depth=_MAX_DEPTH)
        except StrictJsonError as error:
            raise EnvelopeError(f"expected I-JSON: {error}") from error
        if not isinstance(value, dict):
            raise EnvelopeError(f"expected an object, got {type(value).__name__}")
        return value

    def check_members(self, value: Mapping[str, Any]) -> None:
        """Check for exactly the four members, of their types and of this protocol version. Raises EnvelopeError."""
        if value.keys() != MEMBERS:
            raise EnvelopeError(f"expected the members {', '.join(sorted(MEMBERS))}, got {', '.join(sorted(value))}")
        if value["protocol_version"] != self._protocol_version:
            raise EnvelopeError(f"expected protocol_version {self._protocol_version!r}")
        if not isinstance(value["header"], dict):
            raise EnvelopeError("expected an object as header")
        self.binary("ciphertext", value["ciphertext"])

    def check_header(self, header: Mapping[str, Any]) -> None:
        """What every header has; further members are texts. Raises EnvelopeError."""
        for name, text in header.items():
            if not isinstance(text, str):
                raise EnvelopeError(f"expected text in header.{name}, got {type(text).__name__}")
        for name in ("msg_id", "sender_key", "sender_fp", "recipient_fp", "timestamp"):
            if name not in header:
                raise EnvelopeError(f"expected header.{name}, got none")
        if _UUID_V4.fullmatch(header["msg_id"]) is None:
            raise EnvelopeError(f"expected a UUID v4 in lower case as header.msg_id, got {header['msg_id'][:64]!r}")
        for name in ("sender_fp", "recipient_fp"):
            if _FINGERPRINT.fullmatch(header[name]) is None:
                raise EnvelopeError(f"expected 64 lower-case hexadecimal digits as header.{name}")
        if hashlib.sha256(self.sender_key(header)).hexdigest() != header["sender_fp"]:
            raise EnvelopeError("expected the SHA-256 of header.sender_key as header.sender_fp, got another")

    def sender_key(self, header: Mapping[str, Any]) -> bytes:
        """The sender's public key, 32 bytes. Raises EnvelopeError."""
        key = self.binary("header.sender_key", header["sender_key"])
        if len(key) != KEY_BYTES:
            raise EnvelopeError(f"expected {KEY_BYTES} bytes as header.sender_key, got {len(key)}")
        return key

    def binary(self, name: str, text: Any) -> bytes:
        """The bytes of one member in base64url. Raises EnvelopeError."""
        if not isinstance(text, str):
            raise EnvelopeError(f"expected text as {name}, got {type(text).__name__}")
        try:
            return base64url.read(text)
        except base64url.SpellingError as error:
            raise EnvelopeError(f"{name}: {error}") from error

    def encode(self, value: Mapping[str, Any]) -> bytes:
        """The canonical encoding (RFC 8785). Raises EnvelopeError for what has none."""
        try:
            return canonical(dict(value))
        except StrictJsonError as error:
            raise EnvelopeError(str(error)) from error

    def check_spelling(self, raw: bytes, *, whole: bytes) -> None:
        """One envelope has one spelling: a second would be a second key for the same mail. Raises EnvelopeError."""
        if raw != whole:
            raise EnvelopeError("expected the RFC 8785 form, got another spelling of the same value")

    def replay_key(self, envelope: Envelope) -> str:
        """SHA-256 over the canonical encoding of the whole envelope, in lower-case hexadecimal."""
        return hashlib.sha256(envelope.canonical).hexdigest()
