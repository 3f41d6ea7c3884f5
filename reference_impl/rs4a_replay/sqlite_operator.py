"""The operator's side of SQLite: it knows the place of the files after each provocation."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import LiteralString

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.rs4a_replay.operator import Breakage, RawInsert, there
from holdfast.reference_impl.rs4a_replay.provision import sqlite_paths
from holdfast.reference_impl.rs4a_replay.sqlite_store import broken_constraint, plain
from holdfast.reference_impl.rs4a_replay.store import Row, StoreError
from holdfast.reference_impl.session import SurfaceWanted
from holdfast.reference_impl.sqlite import connect
from holdfast.specs import Relation

_NOT_A_DATABASE = "this is not the surface that you are looking for"


class SqliteOperator:
    """Implements `operator.Operator`."""

    def __init__(self, folder: Path, *, expected: SurfaceWanted, patience: Patience) -> None:
        self._surface, self._audit = sqlite_paths(folder)
        self._expected = expected
        self._patience = patience
        # The place of a broken surface, where the registrar does not read it.
        self._hidden = Path(f"{self._surface.parent}.away", self._surface.name)
        self._locker: sqlite3.Connection | None = None

    def _open(self, path: Path) -> sqlite3.Connection:
        connection = connect(path, seconds=self._patience.left())
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
            if path.exists():
                try:
                    found.update(self._rows_in(path, relations))
                except sqlite3.Error as error:
                    raise StoreError(f"expected to read {path.name}, got: {error}") from error
        return there(relations, found, self._expected)

    def _rows_in(self, path: Path, relations: Sequence[Relation]) -> Mapping[str, Sequence[Row]]:
        with closing(self._open(path)) as connection:
            connection.execute("BEGIN")
            known = {row["name"] for row in connection.execute("SELECT name FROM sqlite_schema")}
            return {
                relation.name: [
                    plain(relation, row)
                    for row in connection.execute(
                        f"SELECT * FROM {relation.name} ORDER BY {', '.join(relation.primary_key)}"
                    )
                ]
                for relation in relations
                if relation.name in known
            }

    def catalogue(self) -> Sequence[str]:
        """See `operator.Operator`."""
        names: list[str] = []
        for path in (self._surface, self._audit):
            if not path.exists():
                continue
            with closing(self._open(path)) as connection:
                rows = connection.execute("SELECT type, name, tbl_name FROM sqlite_schema").fetchall()
                names += [f"{row['type']} {row['name']} on {row['tbl_name']}" for row in rows]
        return sorted(names)

    def raw_insert(self, relation: Relation, row: Row) -> RawInsert:
        """See `operator.Operator`."""
        places = ", ".join(f":{column}" for column in row)
        with closing(self._open(self._path_of(relation))) as connection:
            try:
                connection.execute(f"INSERT INTO {relation.name} ({', '.join(row)}) VALUES ({places})", row)
            except sqlite3.Error as error:
                return RawInsert(inserted=False, constraint=broken_constraint(relation, error))
        return RawInsert(inserted=True)

    def break_surface(self, how: Breakage) -> None:
        """See `operator.Operator`. Removes the real file; `how` decides what replaces it."""
        if how is Breakage.INCOMPLETE:
            with closing(self._open(self._surface)) as connection:
                connection.execute("ALTER TABLE nonce_consume RENAME TO nonce_consume_gone")
            return
        self._surface.parent.rename(self._hidden.parent)
        if how is Breakage.UNREACHABLE:
            return
        self._surface.parent.mkdir()
        if how is Breakage.UNREADABLE:
            self._surface.write_text(_NOT_A_DATABASE)
            return
        # The same surface, but another connection locks it whole and never unlocks it.
        shutil.copyfile(self._hidden, self._surface)
        self._locker = self._open(self._surface)
        self._locker.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._locker.execute("BEGIN EXCLUSIVE")

    def break_audit(self) -> None:
        """See `operator.Operator`."""
        self._alter_audit(
            "CREATE TRIGGER audit_is_broken BEFORE INSERT ON audit "
            "BEGIN SELECT RAISE(ABORT, 'the audit sink is broken'); END"
        )

    def mend_audit(self) -> None:
        """See `operator.Operator`."""
        self._alter_audit("DROP TRIGGER IF EXISTS audit_is_broken")

    def _alter_audit(self, statement: LiteralString) -> None:
        with closing(self._open(self._audit)) as connection:
            connection.execute(statement)

    def close(self) -> None:
        """See `operator.Operator`."""
        if self._locker is not None:
            self._locker.close()
