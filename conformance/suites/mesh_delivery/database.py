"""The database of a broker as the harness reads it itself, and what is done to it while the broker runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any

from holdfast.conformance.cases.forms import value_form
from holdfast.conformance.cases.report import Report
from holdfast.conformance.suites.disposable import as_usual, at_commit, failing, late, quoted, worked
from holdfast.specs.matrix import DATABASE

DEDUPE, MESSAGES = "client_message_dedupe", ("topic_message", "message_queue")
_RELATIONS = """
SELECT relname::text, oid::regclass::text FROM pg_class
 WHERE relname = ANY(%s) AND relkind IN ('r', 'p') AND relnamespace::regnamespace::text NOT LIKE 'pg\\_%%' ORDER BY 1
"""
# Whether what is generated has a default is told in two ways, and left out.
_COLUMNS = """
SELECT attname::text, format_type(atttypid, atttypmod), NOT attnotnull,
       CASE WHEN attgenerated = '' AND attidentity = '' THEN atthasdef END FROM pg_attribute
 WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY 1
"""
_KEYS = """
SELECT o.contype::text, array_agg(a.attname::text ORDER BY k.n), o.confdeltype::text FROM pg_constraint o
  CROSS JOIN LATERAL unnest(o.conkey) WITH ORDINALITY k(attnum, n)
  JOIN pg_attribute a ON a.attrelid = o.conrelid AND a.attnum = k.attnum
 WHERE o.conrelid = %s::regclass AND o.contype IN ('p', 'f') GROUP BY o.oid, o.contype, o.confdeltype
"""
# An index of an expression has no column there, and is left out.
_INDEXES = """
SELECT array_agg(a.attname::text ORDER BY k.n), x.indisunique, pg_get_expr(x.indpred, x.indrelid, true)
  FROM pg_index x CROSS JOIN LATERAL unnest(x.indkey) WITH ORDINALITY k(attnum, n)
  JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.attnum
 WHERE x.indrelid = %s::regclass AND NOT x.indisprimary AND x.indisvalid AND 0 <> ALL(x.indkey)
 GROUP BY x.indexrelid, x.indisunique, x.indpred, x.indrelid
"""
_ON_DELETE = {"a": "no action", "r": "restrict", "c": "cascade", "n": "set null", "d": "set default"}
_REFUSES, _AWAY = "holdfast_refuses", "_away"


def catalogue(connection: Any) -> dict[str, Any]:
    """Columns, keys and indexes of the relations that are there. Raises psycopg.Error."""
    return {name: _relation(connection, place) for name, place in _places(connection).items()}


def _places(connection: Any) -> dict[str, str]:
    return dict(connection.execute(_RELATIONS, ([DEDUPE, *MESSAGES],)).fetchall())


def _relation(connection: Any, place: str) -> dict[str, Any]:
    names = ("name", "type", "nullable", "has_default")
    keys = connection.execute(_KEYS, (place,)).fetchall()
    return {
        "columns": [dict(zip(names, row, strict=True)) for row in connection.execute(_COLUMNS, (place,))],
        "primary_key": next((columns for kind, columns, _ in keys if kind == "p"), []),
        "foreign_keys": [
            {"columns": columns, "on_delete": _ON_DELETE[action]} for kind, columns, action in keys if kind == "f"
        ],
        "indexes": [
            {"columns": columns, "unique": unique, "where": where}
            for columns, unique, where in connection.execute(_INDEXES, (place,))
        ],
    }


def rows(connection: Any) -> dict[str, list[Any]]:
    """The records as PostgreSQL writes them in JSON, and the ids in the message relations. Raises psycopg.Error."""
    places = _places(connection)
    found = {
        name: [row for (row,) in connection.execute(f"SELECT to_jsonb(r) FROM {place} r".encode())]  # noqa: S608
        for name, place in places.items()
    }
    # A database before the migration has no id of a message.
    named = [row.get("client_message_id") for relation in MESSAGES for row in found.get(relation, [])]
    return {"dedupe": found.get(DEDUPE, []), "messages": named}


# Another record, and what no record may be. A value is as JSON writes it.
_OTHER: Mapping[str, str | None] = {
    "client_message_id": "another record",
    "broker_message_id": "0192f0c1-7a52-7c3e-9d4b-0a1b2c3d4e5f",
}
WRONG: Mapping[str, Mapping[str, str | None]] = {
    "of a mesh that is not there": {"mesh_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7"},
    "with 31 bytes of a fingerprint": {"request_fingerprint": "\\x" + "00" * 31},
    "with 33 bytes of a fingerprint": {"request_fingerprint": "\\x" + "00" * 33},
    "of another kind": {"destination_kind": "Topic"},
    **{f"without {name}": {name: None} for name in ("request_fingerprint", "destination_kind", "first_seen_at")},
}


def taken(connection: Any) -> list[str] | None:
    """Which wrong records the table takes; None where it takes no copy of a right one. Nothing stays."""
    place = _places(connection)[DEDUPE]

    def takes(other: Mapping[str, str | None]) -> bool:
        import psycopg

        statement = (
            f"INSERT INTO {place} SELECT (jsonb_populate_record(NULL::{place}, to_jsonb(d) || %s::jsonb)).* "  # noqa: S608
            f"FROM {place} d LIMIT 1"
        )
        try:
            with connection.transaction(force_rollback=True):
                return bool(connection.execute(statement.encode(), (json.dumps({**_OTHER, **other}),)).rowcount)
        except psycopg.Error:
            return False

    return [name for name, other in WRONG.items() if takes(other)] if takes({}) else None


# What an administrator may do


def _failing(connection: Any, what: str) -> Iterator[str]:
    """Each commit that adds a row to the relations fails with the SQLSTATE `what`."""
    yield from at_commit(failing(what), _places(connection).values())


def _late(connection: Any, what: str) -> Iterator[str]:
    """Each commit that adds a row takes `what` seconds."""
    yield from at_commit(late(what), _places(connection).values())


def _working(connection: Any, what: str) -> Iterator[str]:
    """Commits go through again, those under way first."""
    del connection, what
    yield as_usual()


def _unchanging(connection: Any, what: str) -> Iterator[str]:
    """Each command of the kind `what` that changes the schema fails."""
    del connection
    yield (
        f"CREATE OR REPLACE FUNCTION {_REFUSES}() RETURNS event_trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'this change is to fail'; END $$"
    )
    yield f"CREATE EVENT TRIGGER {_REFUSES} ON ddl_command_start WHEN TAG IN ('{what}') EXECUTE FUNCTION {_REFUSES}()"


def _changing(connection: Any, what: str) -> Iterator[str]:
    """They go through again."""
    del connection, what
    yield f"DROP EVENT TRIGGER {_REFUSES}"


def _lacking(connection: Any, what: str) -> Iterator[str]:
    """A column is gone by its name, and comes back with its values by `_complete`."""
    relation, _, column = what.partition(".")
    place = _places(connection)[relation]
    yield f"ALTER TABLE {place} RENAME COLUMN {quoted(column)} TO {quoted(column + _AWAY)}"


def _complete(connection: Any, what: str) -> Iterator[str]:
    relation, _, column = what.partition(".")
    place = _places(connection)[relation]
    yield f"ALTER TABLE {place} RENAME COLUMN {quoted(column + _AWAY)} TO {quoted(column)}"


CHANGES: Mapping[str, Callable[[Any, str], Iterator[str]]] = {
    "failing": _failing,
    "late": _late,
    "working": _working,
    "unchanging": _unchanging,
    "changing": _changing,
    "lacking": _lacking,
    "complete": _complete,
}


def _swap(connection: Any, own: str) -> None:
    """Another, empty database in the place of a session's."""
    name, away = quoted(own), quoted(own + _AWAY)
    connection.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false".encode())
    connection.execute("SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity WHERE datname = %s", (own,))
    connection.execute(f"ALTER DATABASE {name} RENAME TO {away}".encode())
    connection.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())


def _swap_back(connection: Any, own: str) -> None:
    name, away = quoted(own), quoted(own + _AWAY)
    connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
    connection.execute(f"ALTER DATABASE {away} RENAME TO {name}".encode())
    connection.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true".encode())


_SWAPS: Mapping[str, Callable[[Any, str], None]] = {"swapped": _swap, "back": _swap_back}


def _looked(launched: Mapping[str, Any], operand: Mapping[str, Any]) -> dict[str, Any]:
    def look(connection: Any) -> dict[str, Any]:
        found = {"relations": catalogue(connection), **rows(connection)}
        return {**found, "taken": taken(connection) if found["dedupe"] else None}

    seen, error = worked(launched, operand["database"], look)
    return {"relations": {}, "dedupe": [], "messages": [], "taken": None, **(seen or {}), "error": error}


def _altered(launched: Mapping[str, Any], operand: Mapping[str, Any]) -> dict[str, Any]:
    change, own = operand["change"], operand["database"]

    def alter(connection: Any) -> None:
        if change in _SWAPS:
            _SWAPS[change](connection, own)
            return
        for statement in CHANGES[change](connection, operand["what"]):
            connection.execute(statement.encode())

    return {"error": worked(launched, own, alter, beside=change in _SWAPS)[1]}


_MAYBE, _ANY = {"type": ["string", "null"]}, {"type": "array"}
LOOK = Report(
    name="look",
    do=_looked,
    schema=value_form(
        error=_MAYBE, relations={"type": "object"}, dedupe=_ANY, messages=_ANY, taken={"type": ["array", "null"]}
    ),
    about=attrgetter("launched"),
)
ALTER = Report(name=DATABASE, do=_altered, schema=value_form(error=_MAYBE), about=attrgetter("launched"))
