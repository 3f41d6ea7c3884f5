"""The surface of a session on PostgreSQL, altered by the harness as an administrator may alter it while it is in use.

Only the database that the adapter's answer to `open` names is altered, which is that of the session alone, with the
login that the launcher names. No secret of it leaves this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from holdfast.conformance.cases.action import Action
from holdfast.conformance.cases.forms import TEXT, value_form
from holdfast.conformance.cases.report import Report, written
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.session import SuiteSession
from holdfast.specs import schema

_UNIQUE = """
SELECT o.conname, array_agg(a.attname::text ORDER BY k.n) FROM pg_constraint o
  CROSS JOIN LATERAL unnest(o.conkey) WITH ORDINALITY k(attnum, n)
  JOIN pg_attribute a ON a.attrelid = o.conrelid AND a.attnum = k.attnum
 WHERE o.conrelid = %s::regclass AND o.contype = ANY (%s) GROUP BY o.conname ORDER BY o.conname
"""
_COPY = "holdfast_copy"
_FAILS = "holdfast_fails"
# Statements of a change: from the names and columns of the effect relation's constraints of these kinds.
_Uniques = Callable[[str], Mapping[str, list[str]]]
_Q = '"{}"'.format


def _copied(schema_name: str, table: str, unique: _Uniques, what: str) -> Iterator[str]:
    """The whole relation again, in another schema."""
    del unique, what
    yield f"CREATE SCHEMA {_COPY}"
    yield f"CREATE TABLE {_COPY}.{_Q(table)} (LIKE {_Q(schema_name)}.{_Q(table)} INCLUDING ALL)"


def _hollow(schema_name: str, table: str, unique: _Uniques, what: str) -> Iterator[str]:
    """A unique constraint of the same name that covers the primary key too, so that it refuses no second row."""
    (key,) = unique("p").values()
    yield from _constraint(f"{_Q(schema_name)}.{_Q(table)}", what, [*unique("u")[what], *key])


def _mended(schema_name: str, table: str, unique: _Uniques, what: str) -> Iterator[str]:
    """The constraint as it was."""
    (key,) = unique("p").values()
    columns = [column for column in unique("u")[what] if column not in key]
    yield from _constraint(f"{_Q(schema_name)}.{_Q(table)}", what, columns)


def _constraint(relation: str, name: str, columns: list[str]) -> Iterator[str]:
    yield f"ALTER TABLE {relation} DROP CONSTRAINT {_Q(name)}"
    yield f"ALTER TABLE {relation} ADD CONSTRAINT {_Q(name)} UNIQUE ({', '.join(map(_Q, columns))})"


def _bare(schema_name: str, table: str, unique: _Uniques, what: str) -> Iterator[str]:
    """No unique constraint at all, not even a primary key."""
    del what
    for name in (*unique("u"), *unique("p")):
        yield f"ALTER TABLE {_Q(schema_name)}.{_Q(table)} DROP CONSTRAINT {_Q(name)} CASCADE"


def _failing(schema_name: str, table: str, unique: _Uniques, what: str) -> Iterator[str]:
    """Each commit that adds a row fails with the SQLSTATE `what`."""
    del unique
    function = f"{_Q(schema_name)}.{_FAILS}()"
    raised = f"RAISE EXCEPTION 'this commit is to fail' USING ERRCODE = '{what}'"
    yield f"CREATE OR REPLACE FUNCTION {function} RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {raised}; END $$"
    yield (
        f"CREATE CONSTRAINT TRIGGER {_FAILS} AFTER INSERT ON {_Q(schema_name)}.{_Q(table)} "
        f"DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {function}"
    )


def _working(schema_name: str, table: str, unique: _Uniques, what: str) -> Iterator[str]:
    """Commits go through again."""
    del unique, what
    yield f"DROP TRIGGER {_FAILS} ON {_Q(schema_name)}.{_Q(table)}"


CHANGES = {
    "copied": _copied,
    "hollow": _hollow,
    "mended": _mended,
    "bare": _bare,
    "failing": _failing,
    "working": _working,
}


def _done(launched: Mapping[str, Any], operand: Mapping[str, Any]) -> dict[str, Any]:
    """Alter the effect relation; which unique constraints it has, or why nothing could be altered."""
    place, own = launched, operand["database"]
    if (
        schema.explain(schema.published_validator("surface"), place) is not None
        or not {"dsn", "effect"} <= place.keys()
    ):
        return {"unique": [], "error": "the launcher names no database server with an effect relation"}
    # The drivers of databases are heavy, and most runs do not need them.
    import psycopg
    from psycopg.conninfo import make_conninfo

    from holdfast.conformance.fitness.errors import FitnessError
    from holdfast.conformance.fitness.target import target_of

    target = None
    try:
        target = target_of(make_conninfo(target_of(place["dsn"]).dsn, dbname=own, connect_timeout=2))
        schema_name, _, table = place["effect"].rpartition(".")
        with psycopg.connect(target.dsn) as connection:
            connection.execute("SET LOCAL lock_timeout = 1000")

            def unique(kinds: str) -> dict[str, list[str]]:
                named = f"{_Q(schema_name)}.{_Q(table)}"
                return dict(connection.execute(_UNIQUE, (named, list(kinds))).fetchall())

            if operand["change"]:
                for statement in list(CHANGES[operand["change"]](schema_name, table, unique, operand["what"])):
                    connection.execute(statement.encode())
            return {"unique": sorted(unique("u")), "error": None}
    except (psycopg.Error, FitnessError, ValueError, KeyError) as error:
        return {"unique": [], "error": str(error) if target is None else target.first_line(error)}


class _Amending(Report):
    """A report of an act on the server that the launcher of the run named."""

    def perform(self, driver: Any, action: Action) -> None:
        """See `Act`."""
        driver.locally(action, lambda: (None, written(self.do(driver.launched, action.operand))))


AMEND = _Amending(
    name="amend",
    do=_done,
    schema=value_form(error={"type": ["string", "null"]}, unique={"type": "array", "items": TEXT}),
)


def amended(bench: Bench, session: SuiteSession, change: str, what: str = "") -> list[str] | None:
    """Change the effect relation; its unique constraints beside the primary key. None where that cannot be done."""
    said = session.said.get("surface", {}) if isinstance(session.said, dict) else {}
    if "database" not in said or "dsn" in said:
        bench.note("no database on a server is named as that of the session alone")
        return None
    operand = {"database": said["database"], "change": change, "what": what}
    found = session.report(AMEND, f"{change} {what}".strip(), operand)
    if found["error"] is not None:
        bench.note(f"the surface was not altered: {found['error']}")
    names: list[str] | None = None if found["error"] is not None else found["unique"]
    return names
