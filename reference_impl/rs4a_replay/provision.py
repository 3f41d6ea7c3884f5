"""Makes the surface on SQLite: a separate and explicit step, never done by the registrar (source sections 2, 6, 7)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.reference_impl.rs4a_replay.ddl import SqliteDialect
from holdfast.specs import Relation


class ProvisionError(Exception):
    """The surface cannot be made; the text says what was found and what to do."""


def sqlite_paths(folder: Path) -> tuple[Path, Path]:
    """Where the surface and the audit lie in a folder: two files, because one transaction must not cover both."""
    return folder / "surface" / "registrar.sqlite3", folder / "audit" / "audit.sqlite3"


def provision_sqlite(
    folder: Path, relations: Mapping[str, Relation], *, dialect: SqliteDialect | None = None
) -> Sequence[str]:
    """Make the surface and its audit as two database files under `folder`.

    Returns what was made. Raises ProvisionError when either is there already.
    """
    dialect = dialect or SqliteDialect()
    made: list[str] = []
    paths = sqlite_paths(folder)
    for path in paths:
        if path.exists():
            raise ProvisionError(f"{path} exists already; a surface is never overwritten: use another folder")
    for path, wants_audit in zip(paths, (False, True), strict=True):
        chosen = {name: relation for name, relation in relations.items() if relation.audit is wants_audit}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise ProvisionError(f"cannot make {path}: {error}") from error
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            for statement in dialect.statements(chosen):
                connection.execute(statement)
            connection.execute("COMMIT")
        finally:
            connection.close()
        made += [f"file {path}", *(f"table {name}" for name in chosen)]
    return made
