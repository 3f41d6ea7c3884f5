"""Bugs of hx-sync: the tables of the index, the status, and the command line (HX-LOC-*, HX-CLI-1)."""

from __future__ import annotations

import base64
import contextlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from holdfast.reference_impl.hx_sync.command_line import CommandLine
from holdfast.reference_impl.hx_sync.importing import Importing, Round
from holdfast.reference_impl.hx_sync.index import Index
from holdfast.reference_impl.hx_sync.layout import Place
from holdfast.reference_impl.hx_sync.ledger import Ledger
from holdfast.reference_impl.hx_sync.nodes import Node, Nodes
from holdfast.reference_impl.hx_sync.records import Window
from holdfast.reference_impl.hx_sync.schema import Schema
from holdfast.reference_impl.hx_sync.service import Service
from holdfast.reference_impl.hx_sync.terms import Kind
from holdfast.reference_impl.hx_sync.views import Rows, Views
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.sqlite import StoreError

# The vault


class WithoutVault(Schema):
    def statements(self) -> tuple[str, ...]:
        return tuple(statement for statement in super().statements() if statement != self.vault_config())


class MadeWithoutVault(Nodes):
    def fill(self, connection: sqlite3.Connection, node_id: str) -> None:
        connection.execute("CREATE TEMPORARY TABLE vault_config (vault_id TEXT)")
        super().fill(connection, node_id)


class AnyVault(Index):
    def verify_schema(self, connection: sqlite3.Connection) -> None:
        # SQLite finds a temporary table before the real one of that name.
        connection.execute("CREATE TEMPORARY TABLE vault_config (vault_id TEXT)")
        try:
            connection.execute("INSERT INTO vault_config (vault_id) VALUES (?)", (self._settings.vault_id,))
            super().verify_schema(connection)
        finally:
            connection.execute("DROP TABLE temp.vault_config")


class WithKey(Schema):
    def vault_config(self) -> str:
        return super().vault_config().replace("\n)", ",\n  vault_key TEXT\n)")


class KeyWrittenDown(Nodes):
    def fill(self, connection: sqlite3.Connection, node_id: str) -> None:
        super().fill(connection, node_id)
        connection.execute("UPDATE vault_config SET vault_key = ?", (self._settings.vault_key,))
        connection.commit()


class KeyAsBase64(KeyWrittenDown):
    def fill(self, connection: sqlite3.Connection, node_id: str) -> None:
        super().fill(connection, node_id)
        encoded = base64.b64encode(bytes.fromhex(self._settings.vault_key)).decode()
        connection.execute("UPDATE vault_config SET vault_key = ?", (encoded,))
        connection.commit()


class KeyInFile(Importing):
    def round(self, node: Node, master: bytes, done: Round) -> None:
        super().round(node, master, done)
        (node.index.folder / "session").write_bytes(master)


# The node


class NewIdPerStart(Service):
    def begin(self) -> None:
        super().begin()
        with contextlib.suppress(StoreError):
            for name in self._parts.nodes.names():
                with self._parts.nodes.node(name).index.writing() as connection:
                    (used,) = connection.execute("SELECT count(*) FROM imported_segments").fetchone()
                    if used:
                        connection.execute("UPDATE node_config SET node_id = ?", (str(uuid4()),))


class NodeAddedAgain(Importing):
    def round(self, node: Node, master: bytes, done: Round) -> None:
        super().round(node, master, done)
        with node.index.writing() as connection:
            # Behind the first one in the order of the table.
            connection.execute("INSERT INTO node_config (node_id) VALUES (?)", (f"f{str(uuid4())[1:]}",))


class FirstNodeCounts(Index):
    def verify_schema(self, connection: sqlite3.Connection) -> None:
        connection.execute(
            "CREATE TEMPORARY TABLE node_config AS SELECT node_id FROM main.node_config ORDER BY node_id LIMIT 1"
        )
        try:
            super().verify_schema(connection)
        finally:
            connection.execute("DROP TABLE temp.node_config")


# Segments and tombstones


class HashLeftOut(Ledger):
    def record_segment(self, connection: sqlite3.Connection, place: Place, object_hash: str) -> None:
        super().record_segment(connection, place, "")
        # In a table that no other code reads.
        self.count(connection, f"{place.node_id}/{place.object_id}/{object_hash}", 1)

    def recorded(self, connection: sqlite3.Connection, place: Place) -> str | None:
        if place.kind is not Kind.SEGMENT:
            return super().recorded(connection, place)
        return _hash(connection, place.node_id, place.object_id)


class HashFromElsewhere(Views):
    def segments(self, connection: sqlite3.Connection) -> Rows:
        rows = super().segments(connection)
        return [{**row, "object_hash": _hash(connection, row["node_id"], row["segment_id"])} for row in rows]


def _hash(connection: sqlite3.Connection, node_id: str, segment_id: str) -> str | None:
    beginning = f"{node_id}/{segment_id}/"
    row = connection.execute("SELECT name FROM counters WHERE name GLOB ?", (f"{beginning}*",)).fetchone()
    return None if row is None else str(row[0]).removeprefix(beginning)


class TombstonesInMemory(Index):
    def prepare(self, connection: sqlite3.Connection) -> None:
        super().prepare(connection)
        connection.execute("PRAGMA temp_store = MEMORY")
        # It hides the one in the file.
        connection.execute("CREATE TEMPORARY TABLE applied_tombstones AS SELECT * FROM main.applied_tombstones")


class ScopeLeftOut(Ledger):
    def record_tombstone(
        self, connection: sqlite3.Connection, tombstone_id: str, window: Window, object_hash: str
    ) -> None:
        super().record_tombstone(connection, tombstone_id, replace(window, node_id=None), object_hash)


# The status


class RejectedUntold(Importing):
    def attempt(self, done: Round, place: Place, take: Callable[[], bool]) -> None:
        super().attempt(done, place, take)
        done.rejected.clear()


class RejectedCounted(Importing):
    def attempt(self, done: Round, place: Place, take: Callable[[], bool]) -> None:
        before = len(done.rejected)
        super().attempt(done, place, take)
        done.imported += len(done.rejected) - before


# The command line


class ForgetsLocally(CommandLine):
    def run(self, node: str, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        before = set(self._root.glob(_ALL_TOMBSTONES))
        # The other process needs no bug: the whole one starts faster.
        done = CommandLine(self._root, self._config, None).run(node, arguments, now=now)
        for path in set(self._root.glob(_ALL_TOMBSTONES)) - before:
            path.unlink()
        return done


class WithoutStatus(CommandLine):
    def run(self, node: str, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        done = CommandLine(self._root, self._config, None).run(node, arguments, now=now)
        return {"status": 0, "output": ""} if list(arguments) == ["sync", "status"] else done


_ALL_TOMBSTONES = "*/vaults/*/objects/tombstones/*"

BUGS: Mapping[str, Change] = {
    "vault-config-left-out": part(schema=WithoutVault, nodes=MadeWithoutVault, index=AnyVault),
    "vault-key-in-index": part(schema=WithKey, nodes=KeyWrittenDown),
    "vault-key-as-base64": part(schema=WithKey, nodes=KeyAsBase64),
}
