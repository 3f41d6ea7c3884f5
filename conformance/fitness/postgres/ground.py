"""Where rows are made in PostgreSQL: a connection to a clone, or to the live tables within a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from holdfast.conformance.fitness.model import RelationName, Snapshot
from holdfast.conformance.fitness.policy import CONTRACT
from holdfast.conformance.fitness.postgres.catalogue import Catalogue
from holdfast.conformance.fitness.postgres.snapshot import read
from holdfast.conformance.fitness.trying.rows import Insert, quoted
from holdfast.conformance.fitness.trying.tables import NEEDED, Table, table_of
from holdfast.specs.fitness import load_queries


class PostgresGround:
    """Implements `Ground`. What the snapshot does not hold is read, with the same queries."""

    in_files = False

    def __init__(self, connection: psycopg.Connection[Any], snapshot: Snapshot) -> None:
        self._connection = connection
        self._catalogue = Catalogue(snapshot)

    def table(self, relation: RelationName) -> Table | None:
        """See `Ground`. Raises psycopg.Error."""
        if (found := table_of(self._catalogue, relation)) is not None:
            return found
        with self._connection.transaction(force_rollback=True):
            for setting in load_queries(CONTRACT).settings:
                self._connection.execute(setting)
            named = [(relation.schema, relation.name)]
            return table_of(Catalogue(read(self._connection, named, None, only=NEEDED)), relation)

    def refusal(self, rows: Sequence[Insert]) -> str:
        """See `Ground`."""
        try:
            with (
                self._connection.transaction(force_rollback=True),
                psycopg.RawCursor(self._connection) as cursor,
            ):
                for insert in rows:
                    cursor.execute(insert.text().encode(), insert.parameters)
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        except psycopg.Error as error:
            if error.sqlstate is None:
                raise
            said = error.diag
            about = ".".join(filter(None, (said.schema_name, said.table_name, said.column_name)))
            return f"{error.sqlstate}: {said.message_primary}{f' ({about})' if about else ''}"
        return ""

    def text(self, relation: RelationName) -> str:
        """With its schema: a name alone may mean a temporary table."""
        return f"{quoted(relation.schema)}.{quoted(relation.name)}"
