"""Bugs of hx-sync that show when an operation is interrupted, or fails: one for each operation and kind."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Refused
from holdfast.reference_impl.hx_sync.disk import FILE_MODE, Disk
from holdfast.reference_impl.hx_sync.folder import FolderStore
from holdfast.reference_impl.hx_sync.forgetting import Forgetting
from holdfast.reference_impl.hx_sync.importing import Importing
from holdfast.reference_impl.hx_sync.index import NAME, Index
from holdfast.reference_impl.hx_sync.nodes import Node, Nodes
from holdfast.reference_impl.hx_sync.publishing import Publishing
from holdfast.reference_impl.hx_sync.service import Service
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.sqlite import BESIDE, Held, StoreError

_BEGINNING = 100
_OVER = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC


class _Unsynced(Disk):
    def sync(self, handle: int) -> None:
        pass


# Manifests, which alone are replaced


class ManifestUnsynced(FolderStore):
    def replace(self, key: str, data: bytes) -> None:
        disk, self._disk = self._disk, _Unsynced()
        try:
            super().replace(key, data)
        finally:
            self._disk = disk


class ManifestInPlace(FolderStore):
    def replace(self, key: str, data: bytes) -> None:
        *above, name = key.split("/")
        with self._asked(), self._making(tuple(above)) as folder:
            handle = os.open(name, _OVER, FILE_MODE, dir_fd=folder)
            try:
                self._disk.write(handle, data[:_BEGINNING])
                self._disk.write(handle, data[_BEGINNING:])
                self._disk.sync(handle)
            finally:
                os.close(handle)
            self._disk.sync(folder)


class PartialReused(FolderStore):
    @contextlib.contextmanager
    def _written(self, key: str, data: bytes) -> Iterator[tuple[str, int]]:
        above, name = self._layout.partials.split("/"), f"{key.rpartition('/')[2]}.partial"
        name = name if self.of_the_key else "next.partial"
        with self._making(tuple(above)) as folder:
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE, dir_fd=folder)
            try:
                self.fill(handle, data)
            finally:
                os.close(handle)
            yield name, folder
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)

    of_the_key = True


class OnePartial(PartialReused):
    of_the_key = False


# Blobs


class BlobSpooled(Publishing):
    def blob(self, plain: bytes, master: bytes) -> Answer:
        assert isinstance(self._store, FolderStore)
        with self._store._written(self._layout.blob(self._codec.hash(plain)), plain):
            return super().blob(plain, master)


# Devices


class EnrolledUnsynced(Nodes):
    def enroll(self, name: str, node_id: str) -> bool:
        disk, self._disk = self._disk, _Unsynced()
        try:
            return super().enroll(name, node_id)
        finally:
            self._disk = disk


class EnrolledInPlace(Nodes):
    def _made(self, folder: Path, node_id: str) -> bool:
        folder.mkdir()
        return False


class MadeAnew(Nodes):
    def node(self, name: str) -> Node:
        node = super().node(name)
        try:
            with node.index.reading():
                pass
        except StoreError:
            for ending in ("", *BESIDE):
                (self._folder / name / f"{NAME}{ending}").unlink(missing_ok=True)
            self.make_index(self._folder / name, str(uuid4()))
        return node


# Indexes


class IndexUnsynced(Index):
    def held(self) -> Held:
        held = super().held()
        held.connection.execute("PRAGMA synchronous = OFF")
        return held


class DeletesBeforeItWrites(Importing):
    def rebuild(self, node: Node, master: bytes) -> Answer:
        with node.index.writing() as connection:
            self._ledger.reset(connection)
        # Some work in between, so that more of what fails is there.
        node.index.purge()
        return super().rebuild(node, master)


class ForgetsTombstonesFirst(Importing):
    def rebuild(self, node: Node, master: bytes) -> Answer:
        with node.index.writing() as connection:
            connection.execute("DELETE FROM applied_tombstones")
        # Some work in between, so that more of the kills happen there.
        node.index.purge()
        return super().rebuild(node, master)


class BlobsBeforeTheLock(Forgetting):
    def forget(self, node: Node, args: Any, master: bytes, *, now: datetime) -> Answer:
        asked = self.window(args)
        with node.index.reading() as connection:
            found = connection.execute(
                "SELECT a.blob_hash FROM artifacts AS a JOIN events AS e USING (node_id, session_id, seq) "
                "WHERE e.at BETWEEN ? AND ?",
                (asked.start, asked.end),
            ).fetchall()
        for (blob_hash,) in found:
            node.cache.path(blob_hash).unlink(missing_ok=True)
        return super().forget(node, args, master, now=now)


class DeletesBeforeItRecords(Forgetting):
    def forget(self, node: Node, args: Any, master: bytes, *, now: datetime) -> Answer:
        asked = self.window(args)
        with node.index.writing() as connection:
            connection.execute("DELETE FROM events WHERE at BETWEEN ? AND ?", (asked.start, asked.end))
        return super().forget(node, args, master, now=now)


# What fails


def swallowing(method: str, *members: str) -> type[Service]:
    """A service that takes one operation for done that the store or the index refused."""

    class Swallowing(Service):
        def _operated(self, bound: Callable[[Any], Answer], args: Any, problem: str | None) -> Answer:
            answer = super()._operated(bound, args, problem)
            if bound == getattr(self, method) and isinstance(answer, Refused) and answer.reason == "STORE_UNAVAILABLE":
                return Accepted(Effect.NEW, {name: self._due(name, args) for name in members})
            return answer

        def _due(self, name: str, args: Any) -> Any:
            if name == "node_id":
                return args["node_id"]
            if name == "key":
                return args.get("key") or self._key(args)
            if name.endswith("_ts"):
                return args[name]
            return 0 if name in ("imported", "skipped") else []

        def _key(self, args: Any) -> str:
            node_id = ""
            with contextlib.suppress(Exception):
                node_id = self._parts.nodes.node(args["node"]).index.node_id
            layout = self._parts.layout
            return layout.tombstone(args["tombstone_id"]) if "tombstone_id" in args else layout.manifest(node_id)

    return Swallowing


BUGS: Mapping[str, Change] = {
    "manifest-unsynced": part(folder=ManifestUnsynced),
    "forget-deletes-before-it-records": part(forgetting=DeletesBeforeItRecords),
}
