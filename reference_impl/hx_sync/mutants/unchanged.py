"""Bugs of hx-sync in what an answer must not change, in what lies at a key, and in what is left of the forgotten."""

from __future__ import annotations

import argparse
import sqlite3
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect
from holdfast.reference_impl.hx_sync.commands import Commands
from holdfast.reference_impl.hx_sync.forgotten import Forgotten
from holdfast.reference_impl.hx_sync.header import Header
from holdfast.reference_impl.hx_sync.merging import Merging
from holdfast.reference_impl.hx_sync.nodes import FOLDER, Node, Nodes
from holdfast.reference_impl.hx_sync.objects import Found
from holdfast.reference_impl.hx_sync.publishing import Publishing
from holdfast.reference_impl.hx_sync.records import ArtifactRow, Batch, SessionRow
from holdfast.reference_impl.hx_sync.service import Service
from holdfast.reference_impl.hx_sync.terms import Reason, RefusedError
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
        key = self._layout.manifest(node.index.node_id)
        try:
            self._objects.payload(self._objects.fetch(key, master))
        except RefusedError:
            if self._store.get(key) is not None:
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
    def segment(self, connection: sqlite3.Connection, header: Header, batch: Batch) -> bool:
        leaves = super().segment(connection, header, replace(batch, artifacts=()))
        self.insert_artifacts(connection, batch.artifacts)
        return leaves


class TitleCutAtNul(Merging):
    def insert_sessions(self, connection: sqlite3.Connection, rows: Sequence[SessionRow]) -> None:
        super().insert_sessions(connection, [(*row[:4], row[4].partition("\0")[0]) for row in rows])


class NamesComposed(Merging):
    def insert_artifacts(self, connection: sqlite3.Connection, rows: Sequence[ArtifactRow]) -> None:
        super().insert_artifacts(connection, [(*row[:6], unicodedata.normalize("NFC", row[6])) for row in rows])


class RefusedKeyLogged(Service):
    def _begun(self, args: Any) -> tuple[bytes, Node]:
        try:
            return super()._begun(args)
        except RefusedError as error:
            if error.reason is Reason.KEY_INVALID:
                (self._parts.root / FOLDER / "error.log").write_text(f"no key: {self._parts.settings.vault_key}")
            raise


class VerifyRemovesWhatIsDamaged(Commands):
    def verify(self, options: argparse.Namespace) -> int:
        status = super().verify(options)
        parts = self._parts
        for key in parts.store.list(parts.layout.objects).keys if status else ():
            try:
                parts.objects.verify(key, parts.master())
            except RefusedError:
                (parts.root / key).unlink(missing_ok=True)
        return status


class SinceAheadIsNow(Commands):
    def forget(self, options: argparse.Namespace) -> int:
        now = self._now.astimezone(UTC).isoformat().replace("+00:00", "Z")
        options.since = min(options.since, now)
        return super().forget(options)


BUGS: Mapping[str, Change] = {
    "enrolled-again-forgets-the-report": part(nodes=EnrollForgetsTheReport),
    "damaged-manifest-kept": part(publishing=DamagedManifestKept),
    "damaged-object-is-prior": part(publishing=DamagedIsPrior),
    "shadowed-titles-kept": part(forgotten=ShadowedTitlesKept),
    "late-artifact-keeps-its-blob": part(merging=LateArtifactKeepsItsBlob),
    "title-cut-at-a-nul": part(merging=TitleCutAtNul),
    "titles-composed": part(merging=NamesComposed),
    "refused-key-logged": part(service=RefusedKeyLogged),
    "verify-removes-what-is-damaged": part(commands=VerifyRemovesWhatIsDamaged),
    "since-ahead-is-now": part(commands=SinceAheadIsNow),
}
