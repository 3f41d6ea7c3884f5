"""The `provision` command: makes a demo surface at a place that the user names, and reports what it made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import psycopg

from holdfast.reference_impl.postgres import connect, describe
from holdfast.reference_impl.rs4a_replay.postgres_provision import ensure_writer, provision_postgres
from holdfast.reference_impl.rs4a_replay.provision import ProvisionError, provision_sqlite
from holdfast.reference_impl.rs4a_replay.settings import load_settings


def provision(*, dsn: str | None, folder: Path | None, writer: str) -> Sequence[str]:
    """Make the surface in a database or a folder. Returns a line for each object made. Raises ProvisionError."""
    relations = load_settings({}).relations
    if folder is not None:
        return provision_sqlite(folder, relations)
    assert dsn is not None
    try:
        with connect(dsn) as connection:
            ensure_writer(connection, writer, password=None)
    except psycopg.Error as error:
        raise ProvisionError(f"cannot reach {describe(dsn)}: {type(error).__name__}") from error
    return [
        *provision_postgres(dsn, relations, writer=writer),
        f"role {writer}, which may log in; a new one has no password yet: ALTER ROLE {writer} PASSWORD …",
    ]
