"""From a key to an object that can be trusted: place, bytes, header, authenticity, in the contract's decision order."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from holdfast.reference_impl.hx_sync import blobs, envelope, records
from holdfast.reference_impl.hx_sync.algorithms import Key, UnauthenticError
from holdfast.reference_impl.hx_sync.envelope import Sealed
from holdfast.reference_impl.hx_sync.header import Header, MalformedError
from holdfast.reference_impl.hx_sync.layout import Layout, Place
from holdfast.reference_impl.hx_sync.records import Batch, Window
from holdfast.reference_impl.hx_sync.settings import Settings
from holdfast.reference_impl.hx_sync.storage import Store, TooLargeError
from holdfast.reference_impl.hx_sync.terms import Hex, Kind, Reason, RefusedError

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class Found:
    """An object whose header is as it should be, and whose key the vault key has unwrapped."""

    place: Place
    raw: bytes
    object_hash: str
    sealed: Sealed
    key: bytes

    @property
    def header(self) -> Header:
        """The object's own header."""
        return self.sealed.header


def hash_of(raw: bytes) -> Hex:
    """The hash that identifies an object."""
    return hashlib.sha256(raw).hexdigest()


class Objects:
    """Reads objects. Each method raises RefusedError, and StoreError where the store cannot be asked."""

    def __init__(self, settings: Settings, layout: Layout, store: Store) -> None:
        self.settings = settings
        self.layout = layout
        self.store = store

    def fetch(self, key: str, master: Key) -> Found:
        """What lies at a key, as far as it can be judged without its payload."""
        place = self.layout.place(key)
        if place is None:
            raise RefusedError(Reason.OBJECT_MISPLACED, "the layout has no place for this key", key=key)
        raw = self.raw(place)
        try:
            sealed = envelope.take_apart(raw, max_header_bytes=self.settings.max_header_bytes)
        except MalformedError as error:
            raise RefusedError(Reason.OBJECT_MALFORMED, str(error), key=key) from error
        self._check_place(place, sealed.header)
        try:
            unwrapped = envelope.unwrap(master, sealed)
        except UnauthenticError as error:
            raise RefusedError(Reason.OBJECT_UNAUTHENTIC, f"wrapped key: {error}", key=key) from error
        return Found(place, raw, hash_of(raw), sealed, unwrapped)

    def raw(self, place: Place) -> bytes:
        """What lies there."""
        try:
            raw = self.store.get(place.key)
        except TooLargeError as error:
            raise RefusedError(Reason.OBJECT_MALFORMED, str(error), key=place.key) from error
        if raw is None:
            raise RefusedError(Reason.OBJECT_MISSING, "nothing lies in the store at this key", key=place.key)
        return raw

    def _check_place(self, place: Place, header: Header) -> None:
        """It is of this vault, and header and key agree: in the folder's type, in the name's id, and in the node."""
        if header.vault_id != self.settings.vault_id:
            raise RefusedError(Reason.FOREIGN_VAULT, "the header names another vault", key=place.key)
        differ = None
        if header.kind is not place.kind:
            differ = f"a {header.kind.value} in the place of a {place.kind.value}"
        elif header.object_id != place.object_id:
            differ = "the header has another id than the key"
        elif place.node_id and header.node_id != place.node_id:
            differ = "the header has another node than the key"
        if differ is not None:
            raise RefusedError(Reason.OBJECT_MISPLACED, differ, key=place.key)

    # Payloads

    def payload(self, found: Found) -> bytes:
        """The payload, once its tag fits."""
        try:
            return envelope.decrypt(found.key, found.sealed)
        except UnauthenticError as error:
            raise RefusedError(Reason.OBJECT_UNAUTHENTIC, f"payload: {error}", key=found.place.key) from error

    def _read(self, found: Found, reason: Enum, read: Callable[[bytes], _Read]) -> _Read:
        payload = self.payload(found)
        try:
            return read(payload)
        except MalformedError as error:
            raise RefusedError(reason, str(error), key=found.place.key) from error

    def batch(self, found: Found) -> Batch:
        """The records of a segment."""
        return self._read(found, Reason.SEGMENT_MALFORMED, lambda payload: records.batch(payload, found.header))

    def window(self, found: Found) -> Window:
        """What a tombstone covers."""
        return self._read(found, Reason.TOMBSTONE_MALFORMED, records.window)

    def inventory(self, found: Found) -> list[str]:
        """The keys that a manifest lists."""
        return self._read(found, Reason.MANIFEST_MALFORMED, records.inventory)

    def blob(self, found: Found) -> bytes:
        """The plain bytes of a blob."""
        most = self.settings.max_blob_bytes
        return self._read(
            found,
            Reason.BLOB_MISMATCH,
            lambda payload: blobs.unpack(found.header, payload, max_blob_bytes=most),
        )

    def verify(self, key: str, master: Key) -> None:
        """All checks of an import, without the import."""
        found = self.fetch(key, master)
        judge: dict[Kind, Callable[[Found], object]] = {
            Kind.SEGMENT: self.batch,
            Kind.TOMBSTONE: self.window,
            Kind.MANIFEST: self.inventory,
            Kind.BLOB: self.blob,
        }
        judge[found.place.kind](found)
