"""The operator's side of SQLite: it knows the place of the files after each provocation."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.rs4a_replay.ddl import quoted
from holdfast.reference_impl.rs4a_replay.operator import Breakage, RawInsert, there
from holdfast.reference_impl.rs4a_replay.provision import sqlite_paths
from holdfast.reference_impl.rs4a_replay.sqlite_store import broken_constraint, plain
from holdfast.reference_impl.rs4a_replay.store import Row, StoreError
from holdfast.reference_impl.session import SurfaceWanted
from holdfast.servers.environment import scaled
from holdfast.specs import Relation

_NOT_A_DATABASE = b"this is not the surface that you are looking for\n" * 64
_MUTE = "audit_is_broken"
# The longest wait for a lock of another process; an observation reads two files.
_LOCK_WAIT_S = scaled(0.6)


class SqliteOperator:
    """Implements `operator.Operator`."""

    def __init__(self, folder: Path, *, expected: SurfaceWanted, patience: Patience) -> None:
        self._surface, self._audit = sqlite_paths(folder)
        self._expected = expected
        self._patience = patience
        # The place of a broken surface, where the registrar does not read it.
        self._hidden = self._surface.parent.with_name("surface.away") / self._surface.name
        self._locker: sqlite3.Connection | None = None

    def _open(self, path: Path) -> sqlite3.Connection:
        waits = min(_LOCK_WAIT_S, self._patience.left())
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=waits
        )
        connection.row_factory = sqlite3.Row
        return connection

    def _path_of(self, relation: Relation) -> Path:
        if relation.audit:
            return self._audit
        return self._hidden if self._hidden.exists() else self._surface

    def rows(self, relations: Sequence[Relation]) -> Mapping[str, Sequence[Row]]:
        """See `operator.Operator`. One read transaction for each file."""
        found: dict[str, Sequence[Row]] = {}
        for path in {self._path_of(relation) for relation in relations}:
            # A surface that was never there is empty; one that is gone is not.
            if path.exists() or self._expected is SurfaceWanted.READY:
                here = [relation for relation in relations if self._path_of(relation) == path]
                try:
                    found.update(self._rows_in(path, here))
                except sqlite3.Error as error:
                    raise StoreError(f"expected to read {path.name}, got: {error}") from error
        return there(relations, found, self._expected)

    def _rows_in(self, path: Path, relations: Sequence[Relation]) -> Mapping[str, Sequence[Row]]:
        connection = self._open(path)
        try:
            connection.execute("BEGIN")
            known = {row["name"] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
            return {
                relation.name: [
                    row
                    for each in connection.execute(
                        f"SELECT * FROM {quoted(relation.name)} ORDER BY {', '.join(map(quoted, relation.primary_key))}"
                    )
                    if (row := plain(relation, each)) is not None
                ]
                for relation in relations
                if relation.name in known
            }
        finally:
            connection.close()

    def catalogue(self) -> Sequence[str]:
        """See `operator.Operator`."""
        names: list[str] = []
        for path in (self._surface, self._audit):
            if not path.exists():
                continue
            connection = self._open(path)
            try:
                rows = connection.execute("SELECT type, name, tbl_name FROM sqlite_schema").fetchall()
                names += [f"{row['type']} {row['name']} on {row['tbl_name']}" for row in rows]
            finally:
                connection.close()
        return sorted(names)

    def raw_insert(self, relation: Relation, row: Row) -> RawInsert:
        """See `operator.Operator`."""
        columns, places = ", ".join(map(quoted, row)), ", ".join("?" * len(row))
        connection = self._open(self._path_of(relation))
        try:
            connection.execute(
                f"INSERT INTO {quoted(relation.name)} ({columns}) VALUES ({places})", tuple(row.values())
            )
        except sqlite3.Error as error:
            return RawInsert(inserted=False, constraint=broken_constraint(relation, error))
        finally:
            connection.close()
        return RawInsert(inserted=True)

    def break_surface(self, how: Breakage, relations: Mapping[str, Relation]) -> None:
        """See `operator.Operator`. Removes the real file; `how` decides what replaces it."""
        if how is Breakage.INCOMPLETE:
            connection = self._open(self._surface)
            name = relations["nonce_consume"].name
            connection.execute(f"ALTER TABLE {quoted(name)} RENAME TO {quoted(name + '_gone')}")
            connection.close()
            return
        self._surface.parent.rename(self._hidden.parent)
        if how is Breakage.UNREACHABLE:
            return
        self._surface.parent.mkdir()
        if how is Breakage.UNREADABLE:
            self._surface.write_bytes(_NOT_A_DATABASE)
            return
        # The same surface, but another connection locks it whole and never unlocks it.
        shutil.copyfile(self._hidden, self._surface)
        self._locker = self._open(self._surface)
        self._locker.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._locker.execute("BEGIN EXCLUSIVE")

    def break_audit(self, relation: Relation) -> None:
        """See `operator.Operator`."""
        connection = self._open(self._audit)
        connection.execute(
            f"CREATE TRIGGER {_MUTE} BEFORE INSERT ON {quoted(relation.name)} "
            "BEGIN SELECT RAISE(ABORT, 'the audit sink is broken'); END"
        )
        connection.close()

    def mend_audit(self, relation: Relation) -> None:  # noqa: ARG002 - PostgreSQL needs to know which
        """See `operator.Operator`."""
        connection = self._open(self._audit)
        connection.execute(f"DROP TRIGGER IF EXISTS {_MUTE}")
        connection.close()

    def close(self) -> None:
        """See `operator.Operator`."""
        if self._locker is not None:
            self._locker.close()
