"""Publishing (source sections 3 and 6): a segment, a blob, a manifest, and any bytes at all.

An object that lies at the key already is opened first. The same content is an earlier result, which is made durable
once more; other content is a refusal. A published object is never overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect
from holdfast.reference_impl.hx_sync import blobs, envelope, instants, records
from holdfast.reference_impl.hx_sync.algorithms import Key
from holdfast.reference_impl.hx_sync.header import Header, MalformedError
from holdfast.reference_impl.hx_sync.nodes import Node
from holdfast.reference_impl.hx_sync.objects import Found, Objects, hash_of
from holdfast.reference_impl.hx_sync.storage import Put, TooLargeError
from holdfast.reference_impl.hx_sync.terms import Hex, Kind, Reason, RefusedError
from holdfast.reference_impl.instants import microseconds
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.strictjson import canonical


class Publishing:
    """Writes objects of nodes whose index has just been read.

    Methods raise RefusedError, StoreError and UncertainError.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._settings = objects.settings
        self._layout = objects.layout
        self._store = objects.store

    # Operations

    def segment(self, node: Node, segment_id: Hex, batch: Mapping[str, Any], master: Key, *, now: datetime) -> Answer:
        """Publish a batch of the node's own events."""
        node_id = node.index.node_id
        own = {"node_id": node_id, "segment_id": segment_id, "created_at": instants.write(microseconds(now))}
        try:
            payload = canonical(batch)
            # The rules of an import, so that every published object can be imported.
            records.batch(payload, Header(Kind.SEGMENT, self._settings.vault_id, segment_id, node_id, own))
        except StrictJsonError as error:
            raise RefusedError(Reason.REQUEST_MALFORMED, str(error)) from error
        except MalformedError as error:
            raise RefusedError(Reason.SEGMENT_MALFORMED, str(error)) from error
        key = self._layout.segment(node_id, segment_id)
        raw = envelope.seal(self._settings, master, Kind.SEGMENT, own, payload)
        if len(raw) > self._settings.max_object_bytes:
            raise RefusedError(Reason.SEGMENT_MALFORMED, f"the object would have {len(raw)} bytes", key=key)
        effect = self.once(key, raw, master, lambda found: self._objects.payload(found) == payload)
        return Accepted(effect, {"key": key})

    def blob(self, plain: bytes, master: Key) -> Answer:
        """Publish a blob under the hash of its bytes. The first writer wins."""
        if len(plain) > self._settings.max_blob_bytes:
            limit = self._settings.max_blob_bytes
            raise RefusedError(Reason.REQUEST_MALFORMED, f"bytes: expected at most {limit}, got {len(plain)}")
        blob_hash, compression = blobs.hash_of(plain), self._settings.compression
        key = self._layout.blob(blob_hash)
        own = {"blob_hash": blob_hash, "byte_len_plain": len(plain), "compression": compression}
        raw = envelope.seal(self._settings, master, Kind.BLOB, own, blobs.pack(plain, compression))
        effect = self.once(key, raw, master, lambda found: self._objects.blob(found) == plain)
        return Accepted(effect, {"key": key, "blob_hash": blob_hash})

    def manifest(self, node: Node, master: Key, *, now: datetime) -> Answer:
        """List the node's own segments in the store; the one object that its node may replace."""
        node_id = node.index.node_id
        key = self._layout.manifest(node_id)
        payload = canonical({"objects": self._inventory(node_id)})
        try:
            found = self._objects.fetch(key, master)
            same = self._objects.payload(found) == payload
        except RefusedError:
            # There is no manifest, or not one of ours, so it has no content to keep.
            same = False
        if same:
            self._store.settle(key, found.raw)
            return Accepted(Effect.PRIOR, {"key": key})
        own = {"node_id": node_id, "created_at": instants.write(microseconds(now))}
        raw = envelope.seal(self._settings, master, Kind.MANIFEST, own, payload)
        self._store.replace(key, raw)
        return Accepted(Effect.NEW, {"key": key})

    def _inventory(self, node_id: Hex) -> list[dict[str, str]]:
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
                listed.append({"key": key, "sha256": hash_of(raw)})
        return listed

    def put(self, key: str, data: bytes) -> Answer:
        """Any bytes, at any place of the layout."""
        # Where a reader looks for an object, and nowhere else.
        if self._layout.place(key) is None:
            raise RefusedError(Reason.OBJECT_MISPLACED, "expected a key that has a place in the layout", key=key)
        put = self._store.put_atomic(key, data)
        if put is Put.OTHER:
            raise _taken(key)
        return Accepted(Effect.NEW if put is Put.NEW else Effect.PRIOR, {})

    # How each is written

    def once(self, key: str, raw: bytes, master: Key, is_same: Callable[[Found], bool]) -> Effect:
        """Write an object where there is none; one with the same content is an earlier result."""
        put = self._store.put_atomic(key, raw)
        return Effect.NEW if put is not Put.OTHER else self._earlier(key, master, is_same)

    def _earlier(self, key: str, master: Key, is_same: Callable[[Found], bool]) -> Effect:
        """Check that the existing object has the content to be written, and make it durable."""
        try:
            found = self._objects.fetch(key, master)
            same = is_same(found)
        except RefusedError as error:
            raise _taken(key, str(error)) from error
        if not same:
            raise _taken(key)
        # An earlier writer may have died between publishing and syncing.
        self._store.settle(key, found.raw)
        return Effect.PRIOR


def _taken(key: str, detail: str = "other content lies at this key") -> RefusedError:
    """The refusal to write over something."""
    return RefusedError(Reason.OBJECT_EXISTS, detail, key=key)
