"""Makes the surface on SQLite: a separate and explicit step, never done by the registrar (source sections 2, 6, 7)."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from holdfast.reference_impl.rs4a_replay.ddl import SqliteDialect
from holdfast.specs import Relation


class ProvisionError(Exception):
    """The surface cannot be made; the text says what was found and what to do."""


def sqlite_paths(folder: Path) -> tuple[Path, Path]:
    """Where the surface and the audit lie in a folder: two files, because one transaction must not cover both."""
    return Path(f"{folder}/surface/registrar.sqlite3"), Path(f"{folder}/audit/audit.sqlite3")


def provision_sqlite(folder: Path, relations: Mapping[str, Relation]) -> Sequence[str]:
    """Make the surface and its audit as two database files in new folders under `folder`.

    Returns what was made. Raises ProvisionError when either is there already: a surface is never overwritten.
    """
    surface, audit = sqlite_paths(folder)
    for path, wants_audit in ((surface, False), (audit, True)):
        try:
            os.makedirs(path.parent)
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN")
                for statement in SqliteDialect().statements(
                    {name: relation for name, relation in relations.items() if relation.audit is wants_audit}
                ):
                    connection.execute(statement)
                connection.execute("COMMIT")
        except (OSError, sqlite3.Error) as error:
            raise ProvisionError(f"cannot make {path}, use a folder that has no surface: {error}") from error
    return [f"file {surface}", f"file {audit}", *(f"table {name}" for name in relations)]
