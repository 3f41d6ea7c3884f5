"""From a key to an object that can be trusted: place, bytes, header, authenticity, in the contract's decision order."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from holdfast.reference_impl.hx_sync.algorithms import Key, UnauthenticError
from holdfast.reference_impl.hx_sync.blobs import BlobCodec, MismatchError
from holdfast.reference_impl.hx_sync.envelope import Envelope, Sealed
from holdfast.reference_impl.hx_sync.header import Header, MalformedError
from holdfast.reference_impl.hx_sync.layout import Layout, Place
from holdfast.reference_impl.hx_sync.records import Batch, Inventory, Records, Window
from holdfast.reference_impl.hx_sync.settings import Settings
from holdfast.reference_impl.hx_sync.storage import Store, TooLargeError
from holdfast.reference_impl.hx_sync.terms import Kind, Reason, RefusedError

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


class Objects:
    """Reads objects. Each method raises RefusedError, and StoreError where the store cannot be asked."""

    def __init__(
        self,
        settings: Settings,
        layout: Layout,
        store: Store,
        envelope: Envelope,
        records: Records,
        codec: BlobCodec,
    ) -> None:
        self._settings = settings
        self._layout = layout
        self._store = store
        self._envelope = envelope
        self._records = records
        self._codec = codec

    def fetch(self, key: str, master: Key) -> Found:
        """What lies at a key, as far as it can be judged without its payload."""
        place = self.place(key)
        raw = self.raw(place)
        sealed = self.take_apart(place, raw)
        self.check_vault(place, sealed.header)
        self.check_place(place, sealed.header)
        try:
            unwrapped = self._envelope.unwrap(master, sealed)
        except UnauthenticError as error:
            raise RefusedError(Reason.OBJECT_UNAUTHENTIC, f"wrapped key: {error}", key=key) from error
        return Found(place, raw, self.hash(raw), sealed, unwrapped)

    def hash(self, raw: bytes) -> str:
        """The hash that identifies an object."""
        return hashlib.sha256(raw).hexdigest()

    def place(self, key: str) -> Place:
        """The place that a key names."""
        place = self._layout.place(key)
        if place is None:
            raise RefusedError(Reason.OBJECT_MISPLACED, "the layout has no place for this key", key=key)
        return place

    def raw(self, place: Place) -> bytes:
        """What lies there."""
        try:
            raw = self._store.get(place.key)
        except TooLargeError as error:
            raise RefusedError(Reason.OBJECT_MALFORMED, str(error), key=place.key) from error
        if raw is None:
            raise RefusedError(Reason.OBJECT_MISSING, "nothing lies in the store at this key", key=place.key)
        return raw

    def take_apart(self, place: Place, raw: bytes) -> Sealed:
        """Its parts, with a header that is one."""
        try:
            return self._envelope.take_apart(raw)
        except MalformedError as error:
            raise RefusedError(Reason.OBJECT_MALFORMED, str(error), key=place.key) from error

    def check_vault(self, place: Place, header: Header) -> None:
        """It is of this vault."""
        if header.vault_id != self._settings.vault_id:
            raise RefusedError(Reason.FOREIGN_VAULT, "the header names another vault", key=place.key)

    def check_place(self, place: Place, header: Header) -> None:
        """Check that header and key agree."""
        self.check_kind(place, header)
        self.check_id(place, header)
        self.check_owner(place, header)

    def check_kind(self, place: Place, header: Header) -> None:
        """Its type is that of the folder."""
        if header.kind is not place.kind:
            raise self._misplaced(place, f"a {header.kind.value} in the place of a {place.kind.value}")

    def check_id(self, place: Place, header: Header) -> None:
        """Its id is that of the name."""
        if header.object_id != place.object_id:
            raise self._misplaced(place, "the header has another id than the key")

    def check_owner(self, place: Place, header: Header) -> None:
        """Its node is that of the folder or, of a manifest, of the name."""
        if place.node_id and header.node_id != place.node_id:
            raise self._misplaced(place, "the header has another node than the key")

    def _misplaced(self, place: Place, detail: str) -> RefusedError:
        return RefusedError(Reason.OBJECT_MISPLACED, detail, key=place.key)

    # Payloads

    def payload(self, found: Found) -> bytes:
        """The payload, once its tag fits."""
        try:
            return self._envelope.decrypt(found.key, found.sealed)
        except UnauthenticError as error:
            raise RefusedError(Reason.OBJECT_UNAUTHENTIC, f"payload: {error}", key=found.place.key) from error

    def batch(self, found: Found) -> Batch:
        """The records of a segment."""
        payload = self.payload(found)
        return self._read(found, Reason.SEGMENT_MALFORMED, lambda: self._records.batch(payload, found.header))

    def window(self, found: Found) -> Window:
        """What a tombstone covers."""
        payload = self.payload(found)
        return self._read(found, Reason.TOMBSTONE_MALFORMED, lambda: self._records.window(payload))

    def inventory(self, found: Found) -> Inventory:
        """What a manifest lists."""
        payload = self.payload(found)
        return self._read(found, Reason.MANIFEST_MALFORMED, lambda: self._records.inventory(payload))

    def blob(self, found: Found) -> bytes:
        """The plain bytes of a blob."""
        payload = self.payload(found)
        try:
            return self._codec.unpack(found.header, payload)
        except MismatchError as error:
            raise RefusedError(Reason.BLOB_MISMATCH, str(error), key=found.place.key) from error

    def _read(self, found: Found, reason: Reason, read: Callable[[], _Read]) -> _Read:
        try:
            return read()
        except MalformedError as error:
            raise RefusedError(reason, str(error), key=found.place.key) from error

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
