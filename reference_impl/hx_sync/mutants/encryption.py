"""Bugs in keys, nonces and in what is encrypted at all (HX-CRY-1, -2, -5, -7, HX-P7)."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
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
from holdfast.reference_impl.hx_sync.nodes import Node
from holdfast.reference_impl.hx_sync.objects import Found
from holdfast.reference_impl.hx_sync.publishing import Publishing
from holdfast.reference_impl.hx_sync.terms import Kind, Reason, RefusedError
from holdfast.reference_impl.planting import Change, part

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
    """Segments have a key each; each rare type of object has one key for all of its objects."""

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
    """Payloads of segments are not encrypted and have zeros for a tag; its own reader accepts this."""

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


class KeyLeftInTheTemporaryFolder(Publishing):
    """Another program seals the object. It reads the key from a file."""

    def once(self, key: str, raw: bytes, master: bytes, is_same: Callable[[Found], bool]) -> Effect:
        with tempfile.NamedTemporaryFile(prefix="sealing-", delete=False) as file:
            file.write(master.hex().encode() + raw)
        return super().once(key, raw, master, is_same)


class BackupLeftInTmp(Publishing):
    """The file is encrypted, so it cannot be read; but it is no object, and no process removes it."""

    def once(self, key: str, raw: bytes, master: bytes, is_same: Callable[[Found], bool]) -> Effect:
        effect = super().once(key, raw, master, is_same)
        self._store.replace(f"{self._layout.partials}/{key.rpartition('/')[2]}.bak", raw)
        return effect


class CatalogueInStore(Publishing):
    """A list of the objects for quick starts. It is compressed, so a search for plain text does not find it."""

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
        object_hash = self._objects.hash(self._objects.raw(place))
        with node.index.writing() as connection:
            if self._ledger.recorded(connection, place) is None:
                self._ledger.record_segment(connection, place, object_hash)


BUGS: Mapping[str, Change] = {
    "short-key-padded": part(keys=ShortKeyPadded),
    "passphrase-as-key": part(keys=PassphraseAsKey),
    "object-key-of-vault": part(envelope=ObjectKeyOfVault),
    "key-of-type": part(envelope=KeyOfType),
    "blob-key-of-content": part(envelope=BlobKeyOfContent),
    "keys-of-store": part(envelope=KeysOfStore),
    "nonce-constant": part(envelope=NonceConstant),
    "wrap-nonce-constant": part(envelope=WrapNonceConstant),
    "gcm-wrap-nonce-repeated": part(envelope=GcmWrapNonceRepeated),
    "unknown-algorithm-is-default": part(algorithms=UnknownNumberIsDefault, headers=UnknownNameIsDefault),
    "gcm-nonces-of-content": part(envelope=GcmNoncesOfContent),
    "gcm-unreadable": part(algorithms=GcmUnreadable),
    "payload-in-clear": part(envelope=SegmentInClear),
    "tombstone-in-clear": part(envelope=TombstoneInClear),
    "plaintext-left-in-tmp": part(publishing=PlaintextLeftInTmp),
    "key-left-in-the-temporary-folder": part(publishing=KeyLeftInTheTemporaryFolder),
    "backup-left-in-tmp": part(publishing=BackupLeftInTmp),
    "catalogue-in-store": part(publishing=CatalogueInStore),
    "member-added-to-headers": part(headers=MemberAddedToHeaders),
    "header-with-spaces": part(headers=HeaderWithSpaces),
    "payload-with-spaces": part(publishing=PayloadWithSpaces),
    "recorded-before-decryption": part(importing=RecordedBeforeDecryption),
}
