"""Bugs in which bytes pass for an envelope, and in which envelopes pass for one."""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from holdfast.reference_impl.calyx_replay.codec import Codec, Envelope, EnvelopeError
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.schema import Schema
from holdfast.reference_impl.calyx_replay.signatures import SIGNATURE_BYTES, Signatures
from holdfast.reference_impl.planting import Change, part, value

# Half of a pair of UTF-16, and how it is marked on its way through an encoder that refuses it.
# RFC 8032 section 5.1: the order of the base point.
_ORDER = 2**252 + 27742317777372353535851937790883648493


class KeyOfRawBytes(Codec):
    def check_spelling(self, raw: bytes, *, whole: bytes) -> None:
        pass

    def replay_key(self, envelope: Envelope) -> str:
        return hashlib.sha256(envelope.raw).hexdigest()


class AnyProtocolVersion(Codec):
    def check_members(self, value: Mapping[str, Any]) -> None:
        known = {"protocol_version": self._protocol_version} if "protocol_version" in value else {}
        super().check_members({**value, **known})


class CodePointOrder(Codec):
    def encode(self, value: Mapping[str, Any]) -> bytes:
        super().encode(value)
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


class PrototypeLost(Codec):
    def parse(self, raw: bytes) -> Mapping[str, Any]:
        value = dict(super().parse(raw))
        if isinstance(value.get("header"), dict):
            value["header"] = {name: text for name, text in value["header"].items() if name != "__proto__"}
        return value


class Base64Lenient(Codec):
    def binary(self, name: str, text: Any) -> bytes:
        if not isinstance(text, str):
            return super().binary(name, text)
        try:
            return base64.urlsafe_b64decode(text + "==")
        except ValueError as error:
            raise EnvelopeError(f"{name}: {error}") from error


class ScalarReduced(Signatures):
    def verify(self, key: bytes, message: bytes, signature: bytes) -> bool:
        reduced = int.from_bytes(signature[32:], "little") % _ORDER
        return super().verify(key, message, signature[:32] + reduced.to_bytes(32, "little"))


class TailIgnored(Signatures):
    def valid(self, envelope: Envelope) -> bool:
        return self.verify(envelope.sender_key, envelope.signed, envelope.signature[:SIGNATURE_BYTES])


class MsgIdUnique(Schema):
    def indexes(self) -> tuple[str, ...]:
        return tuple(
            text.replace("CREATE INDEX idx_msg_id", "CREATE UNIQUE INDEX idx_msg_id") for text in super().indexes()
        )


class SeenByMsgId(Mailbox):
    def guard_blocked(self, connection: sqlite3.Connection, envelope: Envelope, timestamp: datetime) -> None:
        found = connection.execute(
            "SELECT replay_key FROM replay_state WHERE msg_id = ?", (envelope.msg_id,)
        ).fetchone()
        if found is not None:
            raise self.duplicate(str(found[0]))
        super().guard_blocked(connection, envelope, timestamp)


BUGS: Mapping[str, Change] = {
    "key-of-raw-bytes": part(codec=KeyOfRawBytes),
    "any-protocol-version": part(codec=AnyProtocolVersion),
    "members-in-code-point-order": part(codec=CodePointOrder),
    "prototype-lost": part(codec=PrototypeLost),
    "base64-lenient": part(codec=Base64Lenient),
    "envelopes-of-any-length": value(lambda settings: replace(settings, max_envelope_bytes=2**24)),
    "signature-scalar-reduced": part(signatures=ScalarReduced),
    "signature-tail-ignored": part(signatures=TailIgnored),
    "msg-id-unique": part(schema=MsgIdUnique),
    "seen-by-msg-id": part(mailbox=SeenByMsgId),
}
