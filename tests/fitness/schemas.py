"""The corpus of PostgreSQL schemas: each is one of the base surfaces with something changed, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from holdfast.conformance.fitness.assessment import Assessment
from holdfast.conformance.fitness.gather import Names, assess
from holdfast.conformance.fitness.model import Standing, Status
from holdfast.conformance.fitness.policy import policy_of
from holdfast.conformance.fitness.postgres.scratch import Scratch
from holdfast.specs.yamlfile import read_yaml
from tests.fitness.lives import LiveServer

CORPUS = Path(__file__).parent / "corpus"
DATABASE = "registry"
_NAMES = {"effect": "reg.effect", "nonce": "reg.consumed", "audit": "reg.refusals", "writer": "corpus_writer"}
_KEYS = {"id", "title", "always", "change", "then", "alone", "names", "policy", "expect"}
_EXPECTED = {"status", "refuted", "unproven"}


@dataclass(frozen=True, slots=True)
class Schema:
    """One schema. Those that are `always` tried stand for the others of their kind.

    `alone` are statements that no transaction holds, with the error that each must end with.
    `standings` and `codes` are by the letter of the criterion; a criterion that is not among them is proven.
    """

    id: str
    title: str
    always: bool
    ddl: str
    alone: tuple[tuple[str, str | None], ...]
    names: Mapping[str, str | None]
    policy: Mapping[str, Any]
    status: Status
    standings: Mapping[str, Standing]
    codes: Mapping[str, frozenset[str]]

    def make(self, connection: psycopg.Connection[Any]) -> None:
        """Make it in an empty database. Raises psycopg.Error."""
        connection.execute(self.ddl.encode())
        for statement, wanted in self.alone:
            assert _ends_with(connection, statement) == wanted, statement

    def inspect(self, live: LiveServer, connection: psycopg.Connection[Any], clones: Scratch) -> Assessment:
        """What the kit says of it; the connection that made it stays open."""
        row = connection.execute("SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()").fetchone()
        given = {
            part: name and name.replace("{temporary}", str(row[0]) if row else "") for part, name in self.names.items()
        }
        return assess(live.dsn_of(DATABASE), Names(**given), policy_of(self.policy, where=self.id), server=clones)


def _ends_with(connection: psycopg.Connection[Any], statement: str) -> str | None:
    try:
        connection.execute(statement.encode())
    except psycopg.Error as error:
        return error.sqlstate
    return None


def schemas() -> tuple[Schema, ...]:
    """All of them, in the order of their files."""
    return tuple(schema for path in sorted(CORPUS.glob("*.yaml")) for schema in _of_file(path))


def _of_file(path: Path) -> Iterator[Schema]:
    data = read_yaml(path)
    assert set(data) <= {"base", "names", "entries"}, path
    base = (CORPUS / f"{data['base']}.sql").read_text(encoding="utf-8")
    for entry in data["entries"]:
        assert set(entry) <= _KEYS, (path, entry)
        yield _schema(entry, base, {**_NAMES, **data.get("names", {})})


def _schema(entry: Mapping[str, Any], base: str, names: Mapping[str, str | None]) -> Schema:
    ddl = base
    for change in entry.get("change", ()):
        assert ddl.count(change["from"]) == 1, (
            f"{entry['id']}: {change['from']!r} stands there {ddl.count(change['from'])} times"
        )
        ddl = ddl.replace(change["from"], change["to"])
    expect = entry["expect"]
    assert set(expect) <= _EXPECTED, entry
    found = {standing: expect.get(standing.value, {}) for standing in (Standing.REFUTED, Standing.UNPROVEN)}
    standings = {letter: standing for standing, criteria in found.items() for letter in criteria}
    codes = {letter: frozenset(words) for criteria in found.values() for letter, words in criteria.items()}
    status = Status(expect.get("status", Status.NOT_FIT.value))
    return Schema(
        id=entry["id"],
        title=entry["title"],
        always=entry.get("always", False),
        ddl=f"{ddl}\n{entry.get('then', '')}",
        alone=tuple((each["sql"], each.get("fails")) for each in entry.get("alone", ())),
        names={**names, **entry.get("names", {})},
        policy=entry.get("policy", {}),
        status=status,
        standings=standings,
        codes=codes,
    )
