"""Bugs in keys, nonces and in what is encrypted at all (HX-CRY-1, -2, -5, -7, HX-P7)."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.reference_impl.answers import Answer, Effect
from holdfast.reference_impl.hx_sync import canonical
from holdfast.reference_impl.hx_sync.algorithms import TAG_BYTES, Algorithm, Algorithms
from holdfast.reference_impl.hx_sync.envelope import Envelope, Nonces, Sealed
from holdfast.reference_impl.hx_sync.header import Header, Headers
from holdfast.reference_impl.hx_sync.importing import Importing
from holdfast.reference_impl.hx_sync.keys import VaultKeys
from holdfast.reference_impl.hx_sync.layout import Place
from holdfast.reference_impl.hx_sync.mutants.planting import mutant
from holdfast.reference_impl.hx_sync.nodes import Node
from holdfast.reference_impl.hx_sync.objects import Found
from holdfast.reference_impl.hx_sync.publishing import Publishing
from holdfast.reference_impl.hx_sync.terms import Kind, Reason, RefusedError
from holdfast.reference_impl.mutants.catalogue import Mutant
from holdfast.reference_impl.mutants.planting import also, part

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


class KeyOfType(Envelope):
    """Segments are looked at by everybody; what is rare has one key for all of its type."""

    def seal(self, master: bytes, kind: Kind, own: Mapping[str, Any], payload: bytes) -> bytes:
        own_key = hashlib.sha256(master + kind.value.encode()).digest()
        self._nonces = Nonces() if kind is Kind.SEGMENT else _OneKey(own_key)
        return super().seal(master, kind, own, payload)


class BlobKeyOfContent(Envelope):
    def seal(self, master: bytes, kind: Kind, own: Mapping[str, Any], payload: bytes) -> bytes:
        own_key = hashlib.sha256(master + payload).digest()
        self._nonces = _OneKey(own_key) if kind is Kind.BLOB else Nonces()
        return super().seal(master, kind, own, payload)


class KeysOfStore(Envelope):
    def seal(self, master: bytes, kind: Kind, own: Mapping[str, Any], payload: bytes) -> bytes:
        told = canonical.write({"own": dict(own), "kind": kind.value}) + payload
        self._nonces = _OneKey(hashlib.sha256(master + told).digest())
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


class GcmNoncesOfContent(Envelope):
    def wrap(self, algorithm: Algorithm, master: bytes, key: bytes, clear: bytes) -> bytes:
        if algorithm.number != _GCM or b'"object_type":"segment"' in clear:
            return super().wrap(algorithm, master, key, clear)
        nonce = hashlib.sha256(clear).digest()[: algorithm.nonce_bytes]
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


class BackupLeftInTmp(Publishing):
    """Encrypted, so nothing of it can be read; but it is no object, and nobody removes it."""

    def once(self, key: str, raw: bytes, master: bytes, is_same: Callable[[Found], bool]) -> Effect:
        effect = super().once(key, raw, master, is_same)
        self._store.replace(f"{self._layout.partials}/{key.rpartition('/')[2]}.bak", raw)
        return effect


class CatalogueInStore(Publishing):
    """What lies where, for quick starts; compressed, so no search for words finds them."""

    def once(self, key: str, raw: bytes, master: bytes, is_same: Callable[[Found], bool]) -> Effect:
        effect = super().once(key, raw, master, is_same)
        keys = sorted(self._store.list(self._layout.objects).keys)
        self._store.replace(f"{self._layout.vault}/catalogue.z", zlib.compress("\n".join(keys).encode()))
        return effect


# What is published to the letter


class MemberAddedToHeaders(Headers):
    def write(self, kind: Kind, vault_id: str, algorithm: str, own: Mapping[str, Any]) -> bytes:
        added = {"app": "reference/1.0"} if kind is Kind.MANIFEST else {}
        return super().write(kind, vault_id, algorithm, {**own, **added})

    def check_members(self, members: Mapping[str, Any], kind: Kind) -> None:
        left = {name: members[name] for name in members if name != "app"}
        super().check_members(left if kind is Kind.MANIFEST else members, kind)


class HeaderWithSpaces(Headers):
    def write(self, kind: Kind, vault_id: str, algorithm: str, own: Mapping[str, Any]) -> bytes:
        return json.dumps(json.loads(super().write(kind, vault_id, algorithm, own)), sort_keys=True).encode()


class PayloadWithSpaces(Publishing):
    def payload(self, batch: Mapping[str, Any]) -> bytes:
        return json.dumps(json.loads(super().payload(batch)), sort_keys=True).encode()


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
_ALIKE = "its case compares what two stores hold"
_LETTER = "its case holds what is published to the letter"

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
        "key-of-type",
        "All blobs have one key, and so have all tombstones and all manifests",
        part(envelope=KeyOfType),
        {"CRY-2": "fail_open"},
        also(_ALIKE, "CRY-5"),
    ),
    mutant(
        "blob-key-of-content",
        "The key of a blob is made of its bytes, so that equal ones can be told",
        part(envelope=BlobKeyOfContent),
        {"CRY-2": "fail_open"},
        also(_ALIKE, "CRY-5"),
    ),
    mutant(
        "keys-of-store",
        "The key of an object is made of its header and payload",
        part(envelope=KeysOfStore),
        {"CRY-2": "fail_open"},
        also(_ALIKE, "CRY-5"),
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
        "gcm-nonces-of-content",
        "With AES-256-GCM the key of what is no segment is wrapped with a nonce that is made of its header",
        part(envelope=GcmNoncesOfContent),
        {"CRY-5": "fail_open"},
        also("the same nonce in two objects", "CRY-2"),
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
        also(_BARE, "CRY-2 CRY-3 CRY-5 CLI-1 SEG-8 TMB-1"),
    ),
    mutant(
        "plaintext-left-in-tmp",
        "A publisher writes its batch to a temporary file first, and leaves it there",
        part(publishing=PlaintextLeftInTmp),
        {"P7": "fail_open"},
        also("their cases look what lies in tmp, or that a refusal leaves no file", "LAY-4 P1 P2 P6 STO-3"),
    ),
    mutant(
        "backup-left-in-tmp",
        "A publisher leaves a copy of each object below tmp",
        part(publishing=BackupLeftInTmp),
        {"P7": "fail_open"},
        also("their cases look what lies in tmp, or that a refusal leaves no file", "LAY-4 P1 P2 P6 TMB-6 STO-3"),
    ),
    mutant(
        "catalogue-in-store",
        "A publisher keeps a list of all objects beside them",
        part(publishing=CatalogueInStore),
        {"P7": "fail_open"},
        also("their cases look what lies in the store", "LAY-1 LAY-2 LAY-3 LAY-4 P1 P2 P6 STO-1 STO-3"),
    ),
    mutant(
        "member-added-to-headers",
        "The header of a manifest that is published has a member that nobody asked for",
        part(headers=MemberAddedToHeaders),
        {"CRY-3": "wrong_reason"},
        also(_LETTER, "CRY-2 CRY-5 SEG-8 TMB-1 MAN-1"),
    ),
    mutant(
        "header-with-spaces",
        "Headers are written with spaces between their members",
        part(headers=HeaderWithSpaces),
        {"CRY-3": "wrong_reason"},
        also(_LETTER, "CRY-2 CRY-5 SEG-8 TMB-1 BLB-1 BLB-3 BLB-4"),
    ),
    mutant(
        "payload-with-spaces",
        "Payloads of segments are written with spaces between their members",
        part(publishing=PayloadWithSpaces),
        {"CRY-3": "wrong_reason"},
        also(_LETTER, "CRY-2 CRY-5 SEG-8 TMB-1 P2"),
    ),
    mutant(
        "recorded-before-decryption",
        "A segment counts as imported before anybody has tried to open it",
        part(importing=RecordedBeforeDecryption),
        {"CRY-7": "state_leak"},
        also("what cannot be opened counts as imported", "CRY-3 CRY-4 CRY-5 CRY-6 T3 T5 IMP-1 IMP-2 IMP-5 LOC-5 LOC-3"),
    ),
)
