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
from holdfast.reference_impl.calyx_replay.mutants.planting import mutant, value
from holdfast.reference_impl.calyx_replay.schema import Schema
from holdfast.reference_impl.calyx_replay.signatures import SIGNATURE_BYTES, Signatures
from holdfast.reference_impl.mutants.planting import also, part

# RFC 8032 section 5.1: the order of the base point.
_ORDER = 2**252 + 27742317777372353535851937790883648493


class KeyOfRawBytes(Codec):
    def check_spelling(self, raw: bytes, whole: bytes) -> None:
        pass

    def replay_key(self, envelope: Envelope) -> str:
        return hashlib.sha256(envelope.raw).hexdigest()


class AnyProtocolVersion(Codec):
    def check_members(self, value: Mapping[str, Any]) -> None:
        known = {"protocol_version": self._protocol_version} if "protocol_version" in value else {}
        super().check_members({**value, **known})


class LastMemberWins(Codec):
    def parse(self, raw: bytes) -> Mapping[str, Any]:
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise EnvelopeError(str(error)) from error
        return super().parse(self.encode(value)) if isinstance(value, dict) else super().parse(raw)

    def check_spelling(self, raw: bytes, whole: bytes) -> None:
        pass


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


_ONE_ID = "two of its envelopes have one message id"
_ROWS_OF_ONE_ID = "it puts rows with one message id there"
_FIRST_CHECK = "its case sends another spelling first, or leaves one behind for a migration"

MUTANTS = (
    mutant(
        "key-of-raw-bytes",
        "Any spelling is taken, and the key is the digest of the bytes as they came",
        part(codec=KeyOfRawBytes),
        {"KEY-3": "fail_open", "KEY-6": "fail_open"},
        also(_FIRST_CHECK, "ALG-10 MIG-7"),
    ),
    mutant(
        "any-protocol-version",
        "Whatever protocol_version says is taken",
        part(codec=AnyProtocolVersion),
        {"KEY-4a": "fail_open"},
    ),
    mutant(
        "last-member-wins",
        "Any JSON parser will do, and of a member that is there twice the last one counts",
        part(codec=LastMemberWins),
        {"KEY-6": "fail_open"},
        also(_FIRST_CHECK, "ALG-10 KEY-3 MIG-7"),
    ),
    mutant(
        "base64-lenient",
        "base64 is taken with padding, and with spare bits that mean nothing",
        part(codec=Base64Lenient),
        {"KEY-6": "fail_open"},
        also(_FIRST_CHECK, "ALG-10"),
    ),
    mutant(
        "envelopes-of-any-length",
        "An envelope may be as long as the adapter takes it",
        value(lambda settings: replace(settings, max_envelope_bytes=2**24)),
        {"KEY-6": "fail_open"},
    ),
    mutant(
        "signature-scalar-reduced",
        "The S of a signature is reduced before it is verified",
        part(signatures=ScalarReduced),
        {"KEY-7": "fail_open"},
    ),
    mutant(
        "signature-tail-ignored",
        "Of a signature the first 64 bytes are verified, whatever follows them",
        part(signatures=TailIgnored),
        {"KEY-7": "fail_open"},
    ),
    mutant(
        "msg-id-unique",
        "The index on msg_id is unique",
        part(schema=MsgIdUnique),
        {"KEY-9": "over_refusal", "SCH-10": "over_refusal"},
        {
            **also(_ONE_ID, "ALG-4 ALG-6 ALG-7 HARD-6 KEY-4b LOC-3 PRN-6a PRN-6c SCH-7"),
            **also(
                _ROWS_OF_ONE_ID,
                "LOC-1 PRN-1 PRN-2 PRN-3 PRN-4 PRN-5 PRN-6b PRN-7 PRN-9 PRN-10 PRN-11 SCH-2 SCH-9 SCH-13",
            ),
        },
    ),
    mutant(
        "seen-by-msg-id",
        "An envelope whose message id is recorded passes for a copy",
        part(mailbox=SeenByMsgId),
        {"KEY-9": "over_refusal"},
        also(_ONE_ID, "ALG-4 ALG-6 ALG-7 HARD-6 KEY-4b LOC-3 PRN-6a PRN-6c PRN-7 SCH-7"),
    ),
)
