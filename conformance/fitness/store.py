"""The store that a run used, inspected where the launcher or the adapter says it is: its schema, and its keys.

Nothing is written there, and no secret of a DSN leaves this module.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum, unique
from pathlib import Path
from typing import Any

from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.conformance.fitness import gather
from holdfast.conformance.fitness.deadline import Deadline
from holdfast.conformance.fitness.errors import FitnessError
from holdfast.conformance.fitness.gather import writer_of
from holdfast.conformance.fitness.model import Evidence, Part, RelationName, Surface
from holdfast.conformance.fitness.postgres import snapshot
from holdfast.conformance.fitness.postgres.connecting import Connection
from holdfast.conformance.fitness.postgres.snapshot import reading
from holdfast.conformance.fitness.sqlite.live import read, relation_name, take
from holdfast.conformance.fitness.target import Target, target_of

# The store of one session has a few rows.
_LOOK_S = 15.0
_INSTRUCTIONS = 100_000
# Every value of a row as text, under any name of its column: the key is long enough to be nothing else.
_HOLDING = """
SELECT count(*), count(*) FILTER (WHERE EXISTS (
  SELECT FROM jsonb_each_text(to_jsonb(r)) e WHERE e.value IN (%(key)s, %(bytes)s)
)) FROM {} r
"""


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows the effect relation has, and how many of them hold the key that was asked for."""

    all: int
    holding: int


@unique
class Login(Enum):
    """With which password a DSN is used: that of the user's environment too, or only what stands in it."""

    OF_THE_USER = "of the user"
    AS_STATED = "as stated"


def store_at(place: Mapping[str, Any], workdir: Path, login: Login) -> PostgresStore | SqliteStore:
    """The store at a place that fits surface.schema.json, for the session of `workdir`. Raises FitnessError."""
    if "effect" not in place:
        raise FitnessError("`surface` names no `effect`, the relation of the consumed keys; name it as schema.table")
    texts = {part: place[part.value] for part in Part if part.value in place}
    if "file" in place:
        file = workdir / place["file"]
        return SqliteStore(file, {part: _in_workdir(text, file, workdir) for part, text in texts.items()})
    if "dsn" not in place:
        raise FitnessError("`surface` says neither `dsn` nor `file`; say where the store of the session is")
    target = target_of(place["dsn"])
    if "database" in place:
        target = target_of(make_conninfo(target.dsn, dbname=place["database"]))
    if login is Login.AS_STATED:
        # An adapter knows nothing of the user's passwords; naming a server of its own must not bring it one.
        password = str(conninfo_to_dict(target.dsn).get("password") or "")
        target = target_of(make_conninfo(target.dsn, password=password, passfile=os.devnull))
    if not conninfo_to_dict(target.dsn).get("dbname"):
        raise FitnessError("`surface` names no database, neither in `dsn` nor as `database`; name the session's own")
    parts = {part: gather.relation_named(part, text) for part, text in texts.items()}
    return PostgresStore(target, parts, place.get("writer"))


def _in_workdir(text: str, file: Path, workdir: Path) -> RelationName:
    other, colon, table = text.rpartition(":")
    return relation_name(f"{workdir / other}:{table}" if colon else text, file)


@dataclass(frozen=True, slots=True)
class PostgresStore:
    """A store on a server. Every method raises FitnessError."""

    target: Target
    parts: Mapping[Part, RelationName]
    writer: str | None

    def _reading(self) -> AbstractContextManager[Connection]:
        return reading(self.target, Deadline.after(_LOOK_S), "looking at the store of the run")

    def rows(self, key: str) -> Rows:
        """The rows of the effect relation at this moment."""
        effect = self.parts[Part.EFFECT]
        asked = sql.SQL(_HOLDING).format(sql.Identifier(effect.schema, effect.name))
        with self._reading() as connection:
            found = connection.execute(asked, {"key": key, "bytes": f"\\x{key}"}).fetchone()
        assert found is not None
        return Rows(*found)

    def inspect(self) -> Evidence:
        """The relations and the writer, and the catalogue at this moment; nothing is probed."""
        with self._reading() as connection:
            writer = self.writer or writer_of(connection, self.parts[Part.EFFECT])
            surface = Surface(str(self.parts[Part.EFFECT]), self.parts, writer)
            observed = snapshot.take(connection, surface)
        there = {(row["schema"], row["relation"]) for row in observed.structure.get("relations", ()) if row["named"]}
        missing = [each for each in self.parts.values() if (each.schema, each.name) not in there]
        if missing:
            raise FitnessError(f"there is no relation {', '.join(map(str, missing))} in {self.target.described}")
        return Evidence(surface, observed)


@dataclass(frozen=True, slots=True)
class SqliteStore:
    """A store in a file. Every method raises FitnessError."""

    file: Path
    parts: Mapping[Part, RelationName]

    def rows(self, key: str) -> Rows:
        """The rows of the effect relation at this moment."""
        # No parameter can name a table.
        name = '"' + self.parts[Part.EFFECT].name.replace('"', '""') + '"'

        def counted(connection: sqlite3.Connection) -> Rows:
            # What is called a relation may be a view that never ends.
            ends = time.monotonic() + _LOOK_S
            connection.set_progress_handler(lambda: int(time.monotonic() > ends), _INSTRUCTIONS)
            every = holding = 0
            for row in connection.execute(f"SELECT * FROM {name}"):
                every += 1
                holding += key in row
            return Rows(every, holding)

        return read(self.file, counted)

    def inspect(self) -> Evidence:
        """The relations and the writer, and the catalogue at this moment; nothing is probed."""
        surface = Surface(str(self.parts[Part.EFFECT]), self.parts, None)
        return Evidence(surface, take(self.file, surface))
