"""Bugs of hx-sync in what an answer must not change, in what lies at a key, and in what is left of the forgotten."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from holdfast.reference_impl.answers import Accepted, Answer, Effect
from holdfast.reference_impl.hx_sync.forgotten import Forgotten
from holdfast.reference_impl.hx_sync.merging import Merging
from holdfast.reference_impl.hx_sync.nodes import Node, Nodes
from holdfast.reference_impl.hx_sync.objects import Found
from holdfast.reference_impl.hx_sync.publishing import Publishing
from holdfast.reference_impl.hx_sync.records import ArtifactRow
from holdfast.reference_impl.hx_sync.terms import RefusedError
from holdfast.reference_impl.planting import Change, part


class EnrollForgetsTheReport(Nodes):
    def _is_there(self, name: str, node_id: str) -> bool:
        made = super()._is_there(name, node_id)
        with self.node(name).index.writing() as connection:
            for table in ("complaints", "foreign_objects", "withheld_objects"):
                connection.execute(f"DELETE FROM {table}")
        return made


class DamagedManifestKept(Publishing):
    def manifest(self, node: Node, master: bytes, *, now: datetime) -> Answer:
        key = self._layout.manifest(self.node_id(node))
        try:
            self._objects.fetch(key, master)
        except RefusedError:
            if self._exists(key):
                return Accepted(Effect.PRIOR, {"key": key})
        return super().manifest(node, master, now=now)


class DamagedIsPrior(Publishing):
    def earlier(self, key: str, master: bytes, is_same: Callable[[Found], bool]) -> Effect:
        try:
            self._objects.payload(self._objects.fetch(key, master))
        except RefusedError:
            return Effect.PRIOR
        return super().earlier(key, master, is_same)


class ShadowedTitlesKept(Forgotten):
    def sessions(self, connection: sqlite3.Connection, first: int, last: int, node_id: str | None) -> None:
        connection.execute(
            "DELETE FROM sessions WHERE started_at BETWEEN ?1 AND ?2 AND (?3 IS NULL OR node_id = ?3) AND digest = "
            "(SELECT MIN(digest) FROM sessions s WHERE s.node_id = sessions.node_id AND s.session_id = "
            "sessions.session_id)",
            (first, last, node_id),
        )


class LateArtifactKeepsItsBlob(Merging):
    def insert_artifacts(self, connection: sqlite3.Connection, rows: Sequence[ArtifactRow]) -> int:
        super().insert_artifacts(connection, rows)
        return 0


BUGS: Mapping[str, Change] = {
    "enrolled-again-forgets-the-report": part(nodes=EnrollForgetsTheReport),
    "damaged-manifest-kept": part(publishing=DamagedManifestKept),
    "damaged-object-is-prior": part(publishing=DamagedIsPrior),
    "shadowed-titles-kept": part(forgotten=ShadowedTitlesKept),
    "late-artifact-keeps-its-blob": part(merging=LateArtifactKeepsItsBlob),
}
