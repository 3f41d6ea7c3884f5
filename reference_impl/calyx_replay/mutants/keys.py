"""Bugs in what the key covers, in what else it depends on, and in how it is stored."""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from holdfast.reference_impl.calyx_replay.codec import Codec, Envelope
from holdfast.reference_impl.calyx_replay.schema import Schema
from holdfast.reference_impl.calyx_replay.service import Parts, Service
from holdfast.reference_impl.calyx_replay.store import Row, Store
from holdfast.reference_impl.calyx_replay.terms import Purpose
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.sqlite import StoreError
from holdfast.specs.strictjson import canonical

_OF_EVERY_HEADER = ("msg_id", "sender_key", "sender_fp", "recipient_fp", "timestamp")


def _told(envelope: Envelope) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(envelope.canonical)
    return told


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# What the key covers


class KeyOfCiphertext(Codec):
    def replay_key(self, envelope: Envelope) -> str:
        return _digest(_told(envelope)["ciphertext"].encode())


class KeyOfHeaderAndCiphertext(Codec):
    def replay_key(self, envelope: Envelope) -> str:
        told = _told(envelope)
        return _digest(canonical({name: told[name] for name in ("header", "ciphertext")}))


class KeyOfRepr(Codec):
    def replay_key(self, envelope: Envelope) -> str:
        return _digest(repr(_told(envelope)).encode())


class KeyWithoutProtocolVersion(Codec):
    def replay_key(self, envelope: Envelope) -> str:
        told = _told(envelope)
        del told["protocol_version"]
        return _digest(canonical(told))


class KeyWithoutFurtherMembers(Codec):
    def replay_key(self, envelope: Envelope) -> str:
        told = _told(envelope)
        return _digest(canonical({**told, "header": {name: told["header"][name] for name in _OF_EVERY_HEADER}}))


class KeyWithoutTimestamp(Codec):
    def replay_key(self, envelope: Envelope) -> str:
        told = _told(envelope)
        del told["header"]["timestamp"]
        return _digest(canonical(told))


class KeyOfFirst4k(Codec):
    def replay_key(self, envelope: Envelope) -> str:
        return _digest(envelope.canonical[:4096])


class KeyOfHeader(Codec):
    def replay_key(self, envelope: Envelope) -> str:
        return _digest(canonical(_told(envelope)["header"]))


class KeyWithoutSignature(Codec):
    def replay_key(self, envelope: Envelope) -> str:
        return _digest(envelope.signed)


class KeyCarried(Codec):
    def replay_key(self, envelope: Envelope) -> str:
        return str(_told(envelope)["header"].get("replay_key") or super().replay_key(envelope))


# What else it depends on

_SALT_OF_PROCESS = secrets.token_bytes(16)


class KeySaltedByProcess(Codec):
    def replay_key(self, envelope: Envelope) -> str:
        return _digest(_SALT_OF_PROCESS + envelope.canonical)


class KeyPrefixed(Codec):
    prefix = b""

    def replay_key(self, envelope: Envelope) -> str:
        return _digest(self.prefix + envelope.canonical)


class CodecKnowsDate(Service):
    def __init__(self, parts: Parts, *, now: datetime, closing: Callable[[], None]) -> None:
        super().__init__(parts, now=now, closing=closing)
        self.set_clock(now)

    def set_clock(self, now: datetime) -> None:
        super().set_clock(now)
        assert isinstance(self._parts.codec, KeyPrefixed)
        self._parts.codec.prefix = now.date().isoformat().encode()


class CodecKnowsStore(Service):
    def begin(self) -> None:
        super().begin()
        assert isinstance(self._parts.codec, KeyPrefixed)
        try:
            with self._parts.store.reading(Purpose.OBSERVE) as connection:
                self._parts.codec.prefix = repr(connection.execute("SELECT sql FROM sqlite_schema").fetchall()).encode()
        except StoreError:
            # A store that cannot be read is refused later.
            return


# How it is stored


class HalfTheKey(Store):
    def has(self, connection: sqlite3.Connection, key: str) -> bool:
        return super().has(connection, key[:32])

    def insert(self, connection: sqlite3.Connection, row: Row) -> None:
        super().insert(connection, {**row, "replay_key": str(row["replay_key"])[:32]})


class HalfKeysFit(Schema):
    def key_check(self) -> str:
        return super().key_check().replace("= 64", "IN (32, 64)")


class UpperCaseKey(Store):
    def has(self, connection: sqlite3.Connection, key: str) -> bool:
        return super().has(connection, key.upper())

    def insert(self, connection: sqlite3.Connection, row: Row) -> None:
        super().insert(connection, {**row, "replay_key": str(row["replay_key"]).upper()})


class UpperCaseFits(Schema):
    def key_check(self) -> str:
        return super().key_check().replace("[^0-9a-f]", "[^0-9a-fA-F]")


BUGS: Mapping[str, Change] = {
    "key-of-ciphertext": part(codec=KeyOfCiphertext),
    "key-of-header-and-ciphertext": part(codec=KeyOfHeaderAndCiphertext),
    "key-of-repr": part(codec=KeyOfRepr),
    "half-the-key-stored": part(store=HalfTheKey, schema=HalfKeysFit),
    "upper-case-key-stored": part(store=UpperCaseKey, schema=UpperCaseFits),
    "key-salted-by-process": part(codec=KeySaltedByProcess),
    "key-without-protocol-version": part(codec=KeyWithoutProtocolVersion),
    "key-without-further-members": part(codec=KeyWithoutFurtherMembers),
    "key-without-timestamp": part(codec=KeyWithoutTimestamp),
    "key-of-first-4k": part(codec=KeyOfFirst4k),
    "key-of-header": part(codec=KeyOfHeader),
    "key-without-signature": part(codec=KeyWithoutSignature),
    "key-with-date": part(codec=KeyPrefixed, service=CodecKnowsDate),
    "key-with-store-salt": part(codec=KeyPrefixed, service=CodecKnowsStore),
    "key-carried": part(codec=KeyCarried),
}
