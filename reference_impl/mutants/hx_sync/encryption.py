"""Bugs in keys, nonces and in what is encrypted at all (HX-CRY-1, -2, -5, -7, HX-P7)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from reference_impl.answers import Answer
from reference_impl.hx_sync.algorithms import TAG_BYTES, Algorithm, Algorithms
from reference_impl.hx_sync.envelope import Envelope, Nonces, Sealed
from reference_impl.hx_sync.header import Header, Headers
from reference_impl.hx_sync.importing import Importing
from reference_impl.hx_sync.keys import VaultKeys
from reference_impl.hx_sync.layout import Place
from reference_impl.hx_sync.nodes import Node
from reference_impl.hx_sync.publishing import Publishing
from reference_impl.hx_sync.terms import Kind, Reason, RefusedError
from reference_impl.mutants.catalogue import Mutant
from reference_impl.mutants.hx_sync.planting import mutant
from reference_impl.mutants.planting import also, part

_GCM = 2
_NO_TAG = bytes(TAG_BYTES)

# The vault key


class ShortKeyPadded(VaultKeys):
    def read(self, text: str) -> bytes:
        padded = text.ljust(64, "0")[:64]
        return super().read(padded if re.fullmatch("[0-9a-f]*", text) else text)


class PassphraseAsKey(VaultKeys):
    def read(self, text: str) -> bytes:
        if re.fullmatch("[0-9a-fA-F]*", text):
            return super().read(text)
        return hashlib.sha256(text.encode()).digest()


# Keys and nonces of objects


class _OneKey(Nonces):
    def __init__(self, key: bytes) -> None:
        self._key = key

    def object_key(self) -> bytes:
        return self._key


class ObjectKeyOfVault(Envelope):
    def seal(self, master: bytes, kind: Kind, own: Mapping[str, Any], payload: bytes) -> bytes:
        self._nonces = _OneKey(hashlib.sha256(master).digest())
        return super().seal(master, kind, own, payload)


class NonceConstant(Envelope):
    def encrypt(self, algorithm: Algorithm, key: bytes, payload: bytes, clear: bytes) -> bytes:
        nonce = bytes(algorithm.nonce_bytes)
        return nonce + algorithm.encrypt(key, nonce, payload, self.associated(clear))


class WrapNonceConstant(Envelope):
    def wrap(self, algorithm: Algorithm, master: bytes, key: bytes, clear: bytes) -> bytes:
        nonce = bytes(algorithm.nonce_bytes)
        return nonce + algorithm.encrypt(master, nonce, key, self.associated(clear))


class GcmWrapNonceRepeated(Envelope):
    def wrap(self, algorithm: Algorithm, master: bytes, key: bytes, clear: bytes) -> bytes:
        if algorithm.number != _GCM:
            return super().wrap(algorithm, master, key, clear)
        nonce = hashlib.sha256(master).digest()[: algorithm.nonce_bytes]
        return nonce + algorithm.encrypt(master, nonce, key, self.associated(clear))


# The list of algorithms


class UnknownNumberIsDefault(Algorithms):
    def by_number(self) -> Mapping[int, Algorithm]:
        known = super().by_number()
        return {number: known.get(number, known[1]) for number in range(256)}


class UnknownNameIsDefault(Headers):
    def check_crypto(self, crypto: Any, algorithm: str) -> None:
        named = crypto.get("alg") if isinstance(crypto, dict) else None
        if not isinstance(named, str) or named in Algorithms().by_name():
            super().check_crypto(crypto, algorithm)


class GcmUnreadable(Algorithms):
    def by_number(self) -> Mapping[int, Algorithm]:
        return {number: each for number, each in super().by_number().items() if number != _GCM}


# What is not encrypted


class SegmentInClear(Envelope):
    """Payloads of segments stand as they are, with zeros for a tag; its own reader knows."""

    bare: Kind = Kind.SEGMENT

    def encrypt(self, algorithm: Algorithm, key: bytes, payload: bytes, clear: bytes) -> bytes:
        if f'"object_type":"{self.bare.value}"'.encode() not in clear:
            return super().encrypt(algorithm, key, payload, clear)
        return self._nonces.nonce(algorithm.nonce_bytes) + payload + _NO_TAG

    def decrypt(self, key: bytes, sealed: Sealed) -> bytes:
        if sealed.header.kind is self.bare and sealed.body.endswith(_NO_TAG):
            return sealed.body[:-TAG_BYTES]
        return super().decrypt(key, sealed)


class TombstoneInClear(SegmentInClear):
    bare = Kind.TOMBSTONE


class PlaintextLeftInTmp(Publishing):
    def check_batch(self, payload: bytes, header: Header) -> None:
        super().check_batch(payload, header)
        self._store.replace(f"{self._layout.partials}/{header.object_id}.json", payload)


# What is recorded


class RecordedBeforeDecryption(Importing):
    """The row is there, whether or not the object can be opened then."""

    def import_object(self, node: Node, key: str, master: bytes) -> Answer:
        try:
            return super().import_object(node, key, master)
        except RefusedError as error:
            self._record(node, self._layout.place(key), error)
            raise

    def take(self, node: Node, place: Place, master: bytes) -> bool:
        try:
            return super().take(node, place, master)
        except RefusedError as error:
            self._record(node, place, error)
            raise

    def _record(self, node: Node, place: Place | None, error: RefusedError) -> None:
        if error.reason is not Reason.OBJECT_UNAUTHENTIC or not error.detail.startswith("wrapped key"):
            return
        if place is None or place.kind is not Kind.SEGMENT:
            return
        owner, object_hash = place.node_id or "", self._objects.hash(self._objects.raw(place))
        with node.index.writing() as connection:
            if self._ledger.recorded_segment(connection, owner, place.object_id) is None:
                self._ledger.record_segment(connection, owner, place.object_id, object_hash)


_BARE = "its case opens what was published"

MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "short-key-padded",
        "A vault key that is too short is filled with zeros, and one that is too long is cut",
        part(keys=ShortKeyPadded),
        {"CRY-1": "fail_open"},
    ),
    mutant(
        "passphrase-as-key",
        "A text that is no key is hashed to one",
        part(keys=PassphraseAsKey),
        {"CRY-1": "fail_open"},
    ),
    mutant(
        "object-key-of-vault",
        "All objects are encrypted with one key, which is made of the vault's",
        part(envelope=ObjectKeyOfVault),
        {"CRY-2": "fail_open"},
        also("every object has the same key", "CRY-5"),
    ),
    mutant(
        "nonce-constant",
        "Payloads are encrypted with a nonce of zeros",
        part(envelope=NonceConstant),
        {"CRY-2": "fail_open"},
        also("every object has the same nonce", "CRY-5"),
    ),
    mutant(
        "wrap-nonce-constant",
        "Keys are wrapped with a nonce of zeros",
        part(envelope=WrapNonceConstant),
        {"CRY-2": "fail_open"},
        also("every object has the same nonce", "CRY-5"),
    ),
    mutant(
        "gcm-wrap-nonce-repeated",
        "With AES-256-GCM every key is wrapped with the same nonce",
        part(envelope=GcmWrapNonceRepeated),
        {"CRY-5": "fail_open"},
        also("the same nonce in two objects", "CRY-2"),
    ),
    mutant(
        "unknown-algorithm-is-default",
        "An algorithm that nobody knows means XChaCha20-Poly1305",
        part(algorithms=UnknownNumberIsDefault, headers=UnknownNameIsDefault),
        {"CRY-5": "fail_open"},
        also("a name that nobody knows is accepted", "SEG-8 TMB-1"),
    ),
    mutant(
        "gcm-unreadable",
        "Objects in AES-256-GCM are refused",
        part(algorithms=GcmUnreadable),
        {"CRY-5": "over_refusal"},
        also("they work with AES-256-GCM too", "CRY-2 CRY-4 CRY-6 P7 T5 P4 T3"),
    ),
    mutant(
        "payload-in-clear",
        "Segments are not encrypted",
        part(envelope=SegmentInClear),
        {"P7": "fail_open"},
        also(_BARE, "CRY-2 CRY-3 CRY-5 BLB-1 P2 STO-3 SEG-8 TMB-1")
        | also("zeros behind an object pass for its tag", "T3 CRY-6"),
    ),
    mutant(
        "tombstone-in-clear",
        "Tombstones are not encrypted",
        part(envelope=TombstoneInClear),
        {"P7": "fail_open"},
        also(_BARE, "CRY-3 CLI-1 SEG-8 TMB-1"),
    ),
    mutant(
        "plaintext-left-in-tmp",
        "A publisher writes its batch to a temporary file first, and leaves it there",
        part(publishing=PlaintextLeftInTmp),
        {"P7": "fail_open"},
        also("their cases look what lies in tmp", "LAY-4 P1"),
    ),
    mutant(
        "recorded-before-decryption",
        "A segment counts as imported before anybody has tried to open it",
        part(importing=RecordedBeforeDecryption),
        {"CRY-7": "state_leak"},
        also("what cannot be opened counts as imported", "CRY-3 CRY-4 CRY-5 CRY-6 T3 T5 IMP-1 IMP-2 IMP-5 LOC-5 LOC-3"),
    ),
)
