"""Bugs in what a manifest does to an import (HX-MAN-1)."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.reference_impl.hx_sync.importing import Importing, Round
from holdfast.reference_impl.hx_sync.layout import Place
from holdfast.reference_impl.hx_sync.nodes import Node
from holdfast.reference_impl.hx_sync.terms import Kind, RefusedError
from holdfast.reference_impl.planting import Change, part


class ManifestIsComplete(Importing):
    def take(self, node: Node, place: Place, master: bytes) -> bool:
        if place.kind is Kind.SEGMENT and not self._listed(place, master):
            return False
        return super().take(node, place, master)

    def _listed(self, place: Place, master: bytes) -> bool:
        try:
            manifest = self._objects.fetch(self._layout.manifest(place.node_id), master)
            listed = self._objects.inventory(manifest).keys
        except RefusedError:
            # There is none that would say anything.
            return True
        return place.key in listed


class BadManifestEndsImport(Importing):
    def round(self, node: Node, master: bytes, done: Round) -> None:
        for key in self._store.list(self._layout.objects).keys:
            place = self._layout.place(key)
            if place is None or place.kind is not Kind.MANIFEST:
                continue
            try:
                self._objects.verify(key, master)
            except RefusedError as error:
                done.rejected[key] = error.reason.value
                return
        super().round(node, master, done)


BUGS: Mapping[str, Change] = {
    "manifest-is-complete": part(importing=ManifestIsComplete),
    "bad-manifest-ends-import": part(importing=BadManifestEndsImport),
}
