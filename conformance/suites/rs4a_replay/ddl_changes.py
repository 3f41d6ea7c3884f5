"""The surface of a session on PostgreSQL, altered by the harness as an administrator may do it in use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from holdfast.conformance.cases.forms import TEXT, value_form
from holdfast.conformance.cases.report import Report
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.disposable import as_usual, asked, at_commit, failing, late, quoted, worked
from holdfast.conformance.suites.session import SuiteSession

_UNIQUE = """
SELECT o.conname, array_agg(a.attname::text ORDER BY k.n) FROM pg_constraint o
  CROSS JOIN LATERAL unnest(o.conkey) WITH ORDINALITY k(attnum, n)
  JOIN pg_attribute a ON a.attrelid = o.conrelid AND a.attnum = k.attnum
 WHERE o.conrelid = %s::regclass AND o.contype = %s GROUP BY o.conname ORDER BY o.conname
"""
_SHARED = """
SELECT a.attname::text FROM pg_attribute a JOIN pg_attribute o USING (attname)
 WHERE a.attrelid = %s::regclass AND o.attrelid = %s::regclass
   AND a.attnum > 0 AND o.attnum > 0 AND NOT a.attisdropped AND NOT o.attisdropped
 ORDER BY a.attnum
"""
_TABLES = "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = %s::regnamespace ORDER BY relname"
_COPY = "holdfast_copy"
_ANY, _NONE = "holdfast_of_any", "holdfast_of_none"


@dataclass(frozen=True, slots=True)
class _Effect:
    """The effect relation of a surface, the columns that its nonce relation has too, and the tables of its schema.

    The audit is none of these.
    """

    schema: str
    table: str
    unique: Mapping[str, list[str]]
    primary: Mapping[str, list[str]]
    shared: list[str]
    beside: list[str]

    @property
    def named(self) -> str:
        """Its name in a statement."""
        return f"{quoted(self.schema)}.{quoted(self.table)}"

    def constraint(self, name: str, columns: list[str]) -> Iterator[str]:
        """Another unique constraint of the same name."""
        yield f"ALTER TABLE {self.named} DROP CONSTRAINT {quoted(name)}"
        yield f"ALTER TABLE {self.named} ADD CONSTRAINT {quoted(name)} UNIQUE ({', '.join(map(quoted, columns))})"


def _copied(effect: _Effect, what: str) -> Iterator[str]:
    """The whole relation again, in another schema."""
    del what
    yield f"CREATE SCHEMA {_COPY}"
    yield f"CREATE TABLE {_COPY}.{quoted(effect.table)} (LIKE {effect.named} INCLUDING ALL)"


def _hollow(effect: _Effect, what: str) -> Iterator[str]:
    """A unique constraint of the same name that covers the primary key too, so that it refuses no second row.

    Beside it an index of the same columns that is not unique, and a unique one of no row.
    """
    (key,) = effect.primary.values()
    columns = effect.unique[what]
    keys = ", ".join(map(quoted, columns))
    yield from effect.constraint(what, [*columns, *key])
    yield f"CREATE INDEX {_ANY} ON {effect.named} ({keys})"
    yield f"CREATE UNIQUE INDEX {_NONE} ON {effect.named} ({keys}) WHERE {quoted(columns[0])} IS NULL"


def _mended(effect: _Effect, what: str) -> Iterator[str]:
    """The constraint as it was."""
    (key,) = effect.primary.values()
    yield from effect.constraint(what, [column for column in effect.unique[what] if column not in key])
    yield f"DROP INDEX {', '.join(f'{quoted(effect.schema)}.{name}' for name in (_ANY, _NONE))}"


def _lacking(effect: _Effect, what: str) -> Iterator[str]:
    """One of the columns that the nonce relation has too is gone."""
    del what
    yield f"ALTER TABLE {effect.named} DROP COLUMN {quoted(effect.shared[-1])} CASCADE"


def _bare(effect: _Effect, what: str) -> Iterator[str]:
    """No unique constraint at all, not even a primary key."""
    del what
    for name in (*effect.unique, *effect.primary):
        yield f"ALTER TABLE {effect.named} DROP CONSTRAINT {quoted(name)} CASCADE"


def _failing(effect: _Effect, what: str) -> Iterator[str]:
    """Each commit that adds a row fails with the SQLSTATE `what`."""
    yield from at_commit(failing(what), [effect.named], schema=effect.schema)


def _working(effect: _Effect, what: str) -> Iterator[str]:
    """Commits go through again, those under way first."""
    del what
    yield as_usual(schema=effect.schema)


def _late(effect: _Effect, what: str) -> Iterator[str]:
    """Each commit that adds a row to the surface takes `what` seconds."""
    relations = [f"{quoted(effect.schema)}.{quoted(table)}" for table in effect.beside]
    yield from at_commit(late(what), relations, schema=effect.schema)


CHANGES = {
    "copied": _copied,
    "hollow": _hollow,
    "mended": _mended,
    "lacking": _lacking,
    "bare": _bare,
    "failing": _failing,
    "working": _working,
    "late": _late,
}


def _done(launched: Mapping[str, Any], operand: Mapping[str, Any]) -> dict[str, Any]:
    """Alter the effect relation; which unique constraints it has, or why nothing could be altered."""

    def amend(connection: Any) -> list[str]:
        effect = _read(connection, launched)
        for statement in CHANGES[operand["change"]](effect, operand["what"]):
            connection.execute(statement.encode())
        return sorted(_read(connection, launched).unique)

    unique, error = worked(launched, operand["database"], amend, "effect")
    return {"unique": unique or [], "error": error}


def _read(connection: Any, place: Mapping[str, Any]) -> _Effect:
    schema_name, _, table = place["effect"].rpartition(".")
    other, _, nonce = place.get("nonce", place["effect"]).rpartition(".")
    named = f"{quoted(schema_name)}.{quoted(table)}"
    unique, primary = (dict(connection.execute(_UNIQUE, (named, kind)).fetchall()) for kind in ("u", "p"))
    shared = connection.execute(_SHARED, (named, f"{quoted(other)}.{quoted(nonce)}")).fetchall()
    beside = connection.execute(_TABLES, (schema_name,)).fetchall()
    audit = place.get("audit", "").rpartition(".")[2]
    tables = [name for (name,) in beside if name != audit]
    return _Effect(schema_name, table, unique, primary, [name for (name,) in shared], tables)


AMEND = Report(
    name="amend",
    do=_done,
    schema=value_form(error={"type": ["string", "null"]}, unique={"type": "array", "items": TEXT}),
    about=attrgetter("launched"),
)


def amended(bench: Bench, session: SuiteSession, change: str, what: str = "") -> list[str] | None:
    """Change the effect relation; its unique constraints beside the primary key. None where that cannot be done."""
    found = asked(bench, session, AMEND, {"change": change, "what": what}, f"{change} {what}".strip())
    names: list[str] | None = None if found is None else found["unique"]
    return names
