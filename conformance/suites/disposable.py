"""The database of a session on PostgreSQL, which the harness reads and alters while it is in use.

Only the database that the adapter's answer to `open` names, with the login that the launcher names, and only if the
launcher says that databases of sessions are `disposable`. No secret of it leaves this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.report import Report
from holdfast.servers.pace import scaled
from holdfast.specs.schema import explain, published_validator

_T = TypeVar("_T")
_LOCK_MS = 5000
# The database that every server has, to connect to while others are renamed.
_MAINTENANCE = "postgres"
# The trigger that lets commits fail or come late, and its function.
AT_COMMIT = "holdfast_at_commit"
_WAIT = "PERFORM pg_sleep(greatest(0, extract(epoch FROM until - clock_timestamp())))"


def quoted(name: str) -> str:
    """A name as it stands in a statement."""
    # The drivers of databases are heavy, and most runs do not need them.
    from holdfast.conformance.fitness.trying.rows import quoted as written

    return written(name)


def failing(state: str) -> str:
    """The function of a trigger that ends a commit with this SQLSTATE."""
    return f"BEGIN RAISE EXCEPTION 'this commit is to fail' USING ERRCODE = '{state}'; END"


def late(seconds: str) -> str:
    """The function of a trigger that makes a commit take so many seconds, scaled as the limits of an adapter are.

    A statement timeout does not end the wait.
    """
    return (
        f"DECLARE until timestamptz := clock_timestamp() + interval '{scaled(float(seconds)):g} s'; BEGIN "
        f"BEGIN {_WAIT}; EXCEPTION WHEN query_canceled THEN {_WAIT}; END; RETURN NULL; END"
    )


def at_commit(body: str, relations: Iterable[str], *, schema: str = "public") -> Iterator[str]:
    """Statements by which each commit that adds a row to the relations runs a function."""
    function = f"{quoted(schema)}.{AT_COMMIT}()"
    yield f"CREATE OR REPLACE FUNCTION {function} RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$"
    for relation in relations:
        yield (
            f"CREATE CONSTRAINT TRIGGER {AT_COMMIT} AFTER INSERT ON {relation} "
            f"DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {function}"
        )


def as_usual(*, schema: str = "public") -> str:
    """The statement that ends that. It waits for commits that are under way."""
    return f"DROP FUNCTION {quoted(schema)}.{AT_COMMIT}() CASCADE"


def worked(
    launched: Mapping[str, Any], database: str, work: Callable[[Any], _T], *needs: str, beside: bool = False
) -> tuple[_T | None, str | None]:
    """What `work` makes of a connection to a session's database, in one transaction; or why nothing was done.

    `needs` are members that the launcher has to say too. With `beside` the connection is to another database on that
    server, and each statement is a transaction.
    """
    if explain(published_validator("surface"), launched) is not None or not (
        {"dsn", *needs} <= launched.keys() and launched.get("disposable") is True
    ):
        return None, " with ".join(("the launcher names no server of disposable databases", *needs))
    import psycopg
    from psycopg.conninfo import make_conninfo

    from holdfast.conformance.fitness.errors import FitnessError
    from holdfast.conformance.fitness.target import target_of

    target = None
    try:
        name = _MAINTENANCE if beside else database
        target = target_of(make_conninfo(target_of(launched["dsn"]).dsn, dbname=name, connect_timeout=round(scaled(5))))
        with psycopg.connect(target.dsn, autocommit=beside) as connection:
            connection.execute(f"SET lock_timeout = {round(scaled(_LOCK_MS))}; SET TIME ZONE 'UTC'".encode())
            return work(connection), None
    except (psycopg.Error, FitnessError, ValueError, LookupError) as error:
        return None, str(error) if target is None else target.first_line(error)


def asked(bench: Bench, session: SuiteSession, report: Report, operand: Mapping[str, Any], note: str) -> Any:
    """What a report on the session's own database says; None, with a note, where nothing could be done with it."""
    said = session.said.get("surface", {}) if isinstance(session.said, dict) else {}
    if "database" not in said or "dsn" in said:
        bench.note("no database on a server is named as that of the session alone")
        return None
    found = session.report(report, note, {"database": said["database"], **operand})
    if found["error"] is not None:
        bench.note(f"the database of the session was left as it is: {found['error']}")
        return None
    return found
