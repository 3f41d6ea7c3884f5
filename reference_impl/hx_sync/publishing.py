"""Publishing (source sections 3 and 6): a segment, a blob, a manifest, and any bytes at all.

An object that lies at the key already is opened first. The same content is an earlier result, which is made durable
once more; other content is a refusal. A published object is never overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect
from holdfast.reference_impl.hx_sync import canonical
from holdfast.reference_impl.hx_sync.algorithms import Key
from holdfast.reference_impl.hx_sync.blobs import BlobCodec
from holdfast.reference_impl.hx_sync.envelope import Envelope
from holdfast.reference_impl.hx_sync.header import Header, MalformedError
from holdfast.reference_impl.hx_sync.instants import Instants
from holdfast.reference_impl.hx_sync.layout import Layout
from holdfast.reference_impl.hx_sync.nodes import Node
from holdfast.reference_impl.hx_sync.objects import Found, Objects
from holdfast.reference_impl.hx_sync.records import Records
from holdfast.reference_impl.hx_sync.settings import Settings
from holdfast.reference_impl.hx_sync.storage import Put, Store, TooLargeError
from holdfast.reference_impl.hx_sync.terms import Hex, Kind, Reason, RefusedError
from holdfast.specs.errors import StrictJsonError


class Publishing:
    """Writes objects of nodes whose index has just been read.

    Methods raise RefusedError, StoreError and UncertainError.
    """

    def __init__(
        self,
        settings: Settings,
        layout: Layout,
        store: Store,
        envelope: Envelope,
        objects: Objects,
        records: Records,
        codec: BlobCodec,
        instants: Instants,
    ) -> None:
        self._settings = settings
        self._layout = layout
        self._store = store
        self._envelope = envelope
        self._objects = objects
        self._records = records
        self._codec = codec
        self._instants = instants

    # Operations

    def segment(self, node: Node, segment_id: Hex, batch: Mapping[str, Any], master: Key, *, now: datetime) -> Answer:
        """Publish a batch of the node's own events."""
        node_id = node.index.node_id
        payload = self.payload(batch)
        own = {"node_id": node_id, "segment_id": segment_id, "created_at": self.created(now)}
        self.check_batch(
            payload,
            Header(
                kind=Kind.SEGMENT, vault_id=self._settings.vault_id, object_id=segment_id, node_id=node_id, members=own
            ),
        )
        key = self._layout.segment(node_id, segment_id)
        raw = self._envelope.seal(master, Kind.SEGMENT, own, payload)
        if len(raw) > self._settings.max_object_bytes:
            raise RefusedError(Reason.SEGMENT_MALFORMED, f"the object would have {len(raw)} bytes", key=key)
        effect = self.once(key, raw, master, lambda found: self._objects.payload(found) == payload)
        return Accepted(effect, {"key": key})

    def payload(self, batch: Mapping[str, Any]) -> bytes:
        """The RFC 8785 form of a batch."""
        try:
            return canonical.write(batch)
        except StrictJsonError as error:
            raise RefusedError(Reason.REQUEST_MALFORMED, str(error)) from error

    def created(self, now: datetime) -> str:
        """The publisher's clock, for readers."""
        return self._instants.write(self._instants.of(now))

    def check_batch(self, payload: bytes, header: Header) -> None:
        """Check the rules of an import, so that every published object can be imported."""
        try:
            self._records.batch(payload, header)
        except MalformedError as error:
            raise RefusedError(Reason.SEGMENT_MALFORMED, str(error)) from error

    def blob(self, plain: bytes, master: Key) -> Answer:
        """Publish a blob under the hash of its bytes. The first writer wins."""
        if len(plain) > self._settings.max_blob_bytes:
            limit = self._settings.max_blob_bytes
            raise RefusedError(Reason.REQUEST_MALFORMED, f"bytes: expected at most {limit}, got {len(plain)}")
        blob_hash = self._codec.hash(plain)
        key = self._layout.blob(blob_hash)
        own = {"blob_hash": blob_hash, "byte_len_plain": len(plain), "compression": self._codec.compression}
        raw = self._envelope.seal(master, Kind.BLOB, own, self._codec.pack(plain))
        effect = self.once(key, raw, master, lambda found: self._objects.blob(found) == plain)
        return Accepted(effect, {"key": key, "blob_hash": blob_hash})

    def manifest(self, node: Node, master: Key, *, now: datetime) -> Answer:
        """List the node's own segments in the store; the one object that its node may replace."""
        node_id = node.index.node_id
        key = self._layout.manifest(node_id)
        payload = canonical.write({"objects": self.inventory(node_id)})
        try:
            found = self._objects.fetch(key, master)
            same = self._objects.payload(found) == payload
        except RefusedError:
            # There is no manifest, or not one of ours, so it has no content to keep.
            same = False
        if same:
            self._store.settle(key, found.raw)
            return Accepted(Effect.PRIOR, {"key": key})
        own = {"node_id": node_id, "created_at": self.created(now)}
        raw = self._envelope.seal(master, Kind.MANIFEST, own, payload)
        self._store.replace(key, raw)
        return Accepted(Effect.NEW, {"key": key})

    def inventory(self, node_id: Hex) -> list[dict[str, str]]:
        """The objects at places of this node's segments, with the hashes of their bytes."""
        listed = []
        for key in self._store.list(f"{self._layout.objects}/segments/{node_id}").keys:
            if self._layout.place(key) is None:
                continue
            try:
                raw = self._store.get(key)
            except TooLargeError:
                continue
            if raw is not None:
                listed.append({"key": key, "sha256": self._objects.hash(raw)})
        return listed

    def put(self, key: str, data: bytes) -> Answer:
        """Any bytes, at any place of the layout."""
        if not self._layout.putable(key):
            raise RefusedError(Reason.OBJECT_MISPLACED, "expected a key that has a place in the layout", key=key)
        put = self._store.put_atomic(key, data)
        if put is Put.OTHER:
            raise self.taken(key)
        return Accepted(Effect.NEW if put is Put.NEW else Effect.PRIOR, {})

    # How each is written

    def once(self, key: str, raw: bytes, master: Key, is_same: Callable[[Found], bool]) -> Effect:
        """Write an object where there is none; one with the same content is an earlier result."""
        put = self._store.put_atomic(key, raw)
        return Effect.NEW if put is not Put.OTHER else self.earlier(key, master, is_same)

    def earlier(self, key: str, master: Key, is_same: Callable[[Found], bool]) -> Effect:
        """Check that the existing object has the content to be written, and make it durable."""
        try:
            found = self._objects.fetch(key, master)
            same = is_same(found)
        except RefusedError as error:
            raise self.taken(key, str(error)) from error
        if not same:
            raise self.taken(key)
        # An earlier writer may have died between publishing and syncing.
        self._store.settle(key, found.raw)
        return Effect.PRIOR

    def taken(self, key: str, detail: str = "other content lies at this key") -> RefusedError:
        """The refusal to write over something."""
        return RefusedError(Reason.OBJECT_EXISTS, detail, key=key)
