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
from holdfast.reference_impl.calyx_replay.mutants.planting import mutant
from holdfast.reference_impl.calyx_replay.schema import Schema
from holdfast.reference_impl.calyx_replay.service import Parts, Service
from holdfast.reference_impl.calyx_replay.store import Row, Store
from holdfast.reference_impl.calyx_replay.terms import Purpose
from holdfast.reference_impl.mutants.planting import also, part
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
            # What cannot be asked is refused later.
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


_LOOKED_UP = "its cases look for the right key in an answer or in a row, or put a row with it there"
_IN_A_ROW = "its cases look for the right key in a row, or put a row with it there"
_ONE_AND_THE_SAME = "two of its envelopes have the same ciphertext, so that the second passes for a copy"
_KEYED = (
    "ALG-2 ALG-3 ALG-5 ALG-8 ALG-10 ALG-11 HARD-4 HARD-5 HARD-7 KEY-1 KEY-2 KEY-3 KEY-4a KEY-4b KEY-4c KEY-4d KEY-5 "
    "KEY-8 KEY-9 MIG-1 MIG-2 MIG-4 MIG-6 PRN-6c SCH-2 SCH-7 SCH-12 SCH-13 SCH-14 SCH-15"
)


def _another_key(own: str, further: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """What falls with every key, but for the clause itself."""
    found = {**(further or {}), **also(_LOOKED_UP, _KEYED)}
    del found[own]
    return found


STORED_OTHERWISE = also(
    _IN_A_ROW,
    "ALG-3 ALG-5 ALG-8 ALG-10 ALG-11 KEY-1 KEY-8 MIG-1 MIG-2 MIG-4 PRN-6c SCH-2 SCH-7 SCH-13 SCH-14 SCH-15",
)


MUTANTS = (
    mutant(
        "key-of-ciphertext",
        "The key is the digest of the ciphertext alone",
        part(codec=KeyOfCiphertext),
        {"KEY-1": "fail_open"},
        _another_key(
            "KEY-1",
            also(
                _ONE_AND_THE_SAME,
                "ALG-4 ALG-6 ALG-7 ALG-12 HARD-3 HARD-6 KEY-6 KEY-7 LOC-3 MIG-5 PRN-6a PRN-7 PRN-11 SCH-9",
            ),
        ),
    ),
    mutant(
        "key-of-header-and-ciphertext",
        "The key covers header and ciphertext, and neither protocol_version nor signature",
        part(codec=KeyOfHeaderAndCiphertext),
        {"KEY-1": "fail_open"},
        _another_key("KEY-1"),
    ),
    mutant(
        "key-of-repr",
        "The key is the digest of how Python prints the envelope",
        part(codec=KeyOfRepr),
        {"KEY-1": "fail_open"},
        _another_key("KEY-1"),
    ),
    mutant(
        "half-the-key-stored",
        "The store keeps the first half of each key",
        part(store=HalfTheKey, schema=HalfKeysFit),
        {"KEY-2": "fail_open"},
        STORED_OTHERWISE | also(_IN_A_ROW, "SCH-12"),
    ),
    mutant(
        "upper-case-key-stored",
        "The store keeps each key in upper case",
        part(store=UpperCaseKey, schema=UpperCaseFits),
        {"KEY-2": "fail_open"},
        STORED_OTHERWISE | also(_IN_A_ROW, "SCH-12"),
    ),
    mutant(
        "key-salted-by-process",
        "Each process salts the keys with a random value of its own",
        part(codec=KeySaltedByProcess),
        {"KEY-3": "fail_open"},
        _another_key(
            "KEY-3", also("a copy comes after a restart, or to another process", "ALG-12 HARD-2 HARD-3 HARD-6 PRN-11")
        ),
    ),
    mutant(
        "key-without-protocol-version",
        "The key covers everything but protocol_version",
        part(codec=KeyWithoutProtocolVersion),
        {"KEY-4a": "fail_open"},
        _another_key("KEY-4a"),
    ),
    mutant(
        "key-without-further-members",
        "The key covers the five members that every header has, and no further ones",
        part(codec=KeyWithoutFurtherMembers),
        {"KEY-4b": "fail_open"},
        also("the headers of its envelopes have further members", "KEY-1 KEY-2 KEY-3 KEY-8"),
    ),
    mutant(
        "key-without-timestamp",
        "The key covers everything but the header's timestamp",
        part(codec=KeyWithoutTimestamp),
        {"KEY-4b": "fail_open"},
        _another_key("KEY-4b"),
    ),
    mutant(
        "key-of-first-4k",
        "The key is the digest of the first 4096 bytes",
        part(codec=KeyOfFirst4k),
        {"KEY-4c": "wrong_reason"},
    ),
    mutant(
        "key-of-header",
        "The key is the digest of the header alone",
        part(codec=KeyOfHeader),
        {"KEY-4c": "fail_open"},
        _another_key("KEY-4c"),
    ),
    mutant(
        "key-without-signature",
        "The key covers what is signed, and not the signature",
        part(codec=KeyWithoutSignature),
        {"KEY-4d": "fail_open"},
        _another_key("KEY-4d"),
    ),
    mutant(
        "key-with-date",
        "The receiver's date is hashed with the envelope",
        part(codec=KeyPrefixed, service=CodecKnowsDate),
        {"KEY-5": "fail_open"},
        _another_key("KEY-5"),
    ),
    mutant(
        "key-with-store-salt",
        "Something of the store is hashed with the envelope",
        part(codec=KeyPrefixed, service=CodecKnowsStore),
        {"KEY-5": "wrong_reason"},
        _another_key("KEY-5"),
    ),
    mutant(
        "key-carried", "A replay_key in the header is taken for the key", part(codec=KeyCarried), {"KEY-8": "fail_open"}
    ),
)
