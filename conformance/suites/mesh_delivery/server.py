"""mesh-delivery: the database of a broker as the harness sees it, and a broker on a database that is altered under it.

It needs a launcher that says that databases of sessions are `disposable` (docs/adapter-protocol.md). Without it these
tests note that nothing was read or altered, and a clause that no other test shows is not proven.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.forms import value_form
from holdfast.conformance.cases.match import of_rows
from holdfast.conformance.cases.report import Report
from holdfast.conformance.suites.disposable import as_usual, asked, at_commit, failing, late, quoted, worked
from holdfast.conformance.suites.mesh_delivery.sends import PLACES, args_of, made
from holdfast.conformance.verdict import Verdict

# The database of a broker as the harness reads it itself, and what is done to it while the broker runs


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


def _unchanging(_: Any, what: str) -> Iterator[str]:
    """Each command of the kind `what` that changes the schema fails."""
    yield (
        f"CREATE OR REPLACE FUNCTION {_REFUSES}() RETURNS event_trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'this change is to fail'; END $$"
    )
    yield f"CREATE EVENT TRIGGER {_REFUSES} ON ddl_command_start WHEN TAG IN ('{what}') EXECUTE FUNCTION {_REFUSES}()"


def _renamed(connection: Any, what: str, old: str, new: str) -> Iterator[str]:
    """A column has a name with this ending, and then another."""
    relation, _, column = what.partition(".")
    yield f"ALTER TABLE {_places(connection)[relation]} RENAME COLUMN {quoted(column + old)} TO {quoted(column + new)}"


CHANGES: Mapping[str, Callable[[Any, str], Iterable[str]]] = {
    # Each commit that adds a row fails with this SQLSTATE; takes so many seconds; goes through, those under way first.
    "failing": lambda connection, state: at_commit(failing(state), _places(connection).values()),
    "late": lambda connection, seconds: at_commit(late(seconds), _places(connection).values()),
    "working": lambda *_: [as_usual()],
    "unchanging": _unchanging,
    "changing": lambda *_: [f"DROP EVENT TRIGGER {_REFUSES}"],
    # A column is gone by its name, and comes back with its values.
    "lacking": lambda connection, what: _renamed(connection, what, "", _AWAY),
    "complete": lambda connection, what: _renamed(connection, what, _AWAY, ""),
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
ALTER = Report(name="alter_database", do=_altered, schema=value_form(error=_MAYBE), about=attrgetter("launched"))


# Classes of errors: it may succeed another time, a constraint, there is no room, the server ends the statement.
_STATES = ("40001", "23514", "53100", "57014")
# Longer than most wait for a database, and less than the harness waits for an answer.
_LATE_S = "1.2"
_LOST = (
    *(f"{DEDUPE}.{name}" for name in ("client_message_id", "broker_message_id", "request_fingerprint")),
    "topic_message.client_message_id",
)
_UNIT = timedelta(milliseconds=1)
_STEPS = ("CREATE TABLE", "CREATE INDEX", "ALTER TABLE")


class _Broker:
    """A session with a mesh, whose database the harness reads and alters."""

    def __init__(self, bench: Bench, session: SuiteSession) -> None:
        self._bench, self.session = bench, session
        made(session)

    def send(self, args: Mapping[str, Any], due: str, when: str = "as usual", worker: int = 0) -> None:
        """Send it; the answer has to be the one that is due."""
        self._bench.must_be(self.session.call("accept", args, worker), due, f"a send {when}")

    def must_not_be_taken(self, args: Mapping[str, Any], when: str, worker: int = 0, effect: str = "") -> None:
        """Send it; it must not be accepted, at least not with this effect."""
        answer = self.session.call("accept", args, worker)
        if answer.outcome == "accepted" and effect in ("", answer.effect):
            self._bench.fail("fail_open", f"a send {when}", expected="no acceptance", received=answer.words)

    def alter(self, change: str, what: str = "") -> bool:
        """Alter the database; whether that was done."""
        return asked(self._bench, self.session, ALTER, {"change": change, "what": what}, f"{change} {what}") is not None

    def must_alter(self, change: str, what: str = "") -> None:
        """Alter the database. Where that cannot be done the test shows nothing, and no other one shows its clause."""
        if not self.alter(change, what):
            self._bench.fail(
                "not_reached", "the database was not altered; its launcher has to say that it is disposable"
            )

    def look(self) -> Any:
        """What the harness reads; None where it cannot."""
        return asked(self._bench, self.session, LOOK, {}, "database")

    def state(self) -> Any:
        """What the broker shows."""
        return self.session.observe("broker_state")

    def must_be_as_before(self, before: Any, when: str) -> None:
        """It shows what it showed before."""
        after = self.state()
        left = [name for name in before if after[name] != before[name]]
        if left:
            what = f"what was sent {when} is there"
            self._bench.fail("state_leak", what, expected="nothing of it", received=", ".join(left))

    def must_still_have(self, before: Any, when: str) -> None:
        """It shows all rows that it showed before."""
        after = self.state()
        lost = [name for name, rows in before.items() if any(row not in after[name] for row in rows)]
        if lost:
            self._bench.fail(
                "lost_durability", f"rows {when}", expected="all that was there", received=f"not all {lost}"
            )

    def must_be_alike(self, when: str) -> None:
        """What the broker says of its database is what is there."""
        catalogue, state = self.session.observe("broker_schema")["relations"], self.state()
        seen = self.look()
        if seen is None:
            return
        for name in sorted(catalogue.keys() | seen["relations"].keys()):
            there = seen["relations"].get(name)
            said, found = _shape(catalogue.get(name), there), _shape(there, there)
            for part in sorted(said.keys() | found.keys()):
                if said.get(part) != found.get(part):
                    self._differ(f"{part} of {name} {when}", found.get(part), said.get(part))
        if len(state["dedupe"]) != len(seen["dedupe"]):
            self._differ(f"the records {when}", len(seen["dedupe"]), len(state["dedupe"]), rows=True)
        records = {(row.get("mesh_id"), row.get("client_message_id")): row for row in seen["dedupe"]}
        for row in state["dedupe"]:
            record = records.get((row["mesh_id"], row["client_message_id"]), {})
            wrong = [name for name, value in row.items() if not _is(name, value, record.get(name))]
            if wrong:
                there = {name: record.get(name) for name in wrong}
                self._differ(f"a record {when}", there, {name: row[name] for name in wrong})
        if seen["dedupe"] and seen["taken"] is None:
            self._bench.note(f"a copy of a record cannot be put in {when}, so no wrong one was")
        if seen["taken"]:
            took = ", ".join(seen["taken"])
            self._bench.fail("fail_open", f"records put in past the broker {when}", expected="refused", received=took)
        shown, stored = (Counter(names) for names in (_named(state), seen["messages"]))
        if shown != stored:
            self._differ(
                f"the ids of messages {when}",
                sorted(map(str, stored.elements())),
                sorted(map(str, shown.elements())),
                rows=True,
            )

    def _differ(self, what: str, found: object, said: object, *, rows: bool = False) -> None:
        """Of `rows`, one that is there and not said is too many, and one that is said and not there is lost."""
        verdict = of_rows(said, found) if rows else None
        self._bench.fail(
            (verdict or Verdict.WRONG_REASON).value, what, expected=f"what is there: {found}", received=f"told: {said}"
        )


def _named(state: Mapping[str, Any]) -> list[str | None]:
    return [row["client_message_id"] for row in state["messages"]]


def _shape(relation: Mapping[str, Any] | None, seen: Mapping[str, Any] | None) -> dict[str, Any]:
    """A relation without what two right descriptions of it may write in two ways."""
    if relation is None:
        return {}
    columns = relation["columns"]
    names = {each["name"] for each in columns}
    judged = {each["name"] for each in (seen or relation)["columns"] if each["has_default"] is not None}
    return {
        "columns": sorted((each["name"], each["type"], each["nullable"]) for each in columns),
        "defaults": sorted(each["name"] for each in columns if each["has_default"] and each["name"] in judged),
        "primary_key": relation["primary_key"],
        "foreign_keys": sorted((sorted(each["columns"]), each["on_delete"]) for each in relation["foreign_keys"]),
        "indexes": sorted(
            (each["columns"], each["unique"], "".join(str(each["where"]).split()).strip("()"))
            for each in relation["indexes"]
            if names.issuperset(each["columns"])
        ),
    }


def _moment(text: Any) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _is(name: str, told: Any, found: Any) -> bool:
    if told is not None and name in ("first_seen_at", "expires_at"):
        try:
            return abs(_moment(told) - _moment(found)) < _UNIT
        except (TypeError, ValueError):
            return False
    if name == "request_fingerprint":
        return bool(found == f"\\x{told}")
    return bool(told == found)


@clause("MESH-17-1", "MESH-4.3-C1", provocations=("make_mesh", "migrate", "prune"))
def test_what_a_broker_says_of_its_database_is_what_is_there(bench: Bench) -> None:
    """Catalogue and rows, before and behind a migration, sends of all kinds, retries, conflicts, jobs."""
    with bench.session(config={"schema": "pre-v6"}) as session:
        broker = _Broker(bench, session)
        broker.send(args_of("old"), "accepted new", "before the migration")
        broker.must_be_alike("before the migration")
        session.provoke("migrate")
        session.provoke("set_flag", {"enabled": True})
        broker.must_be_alike("behind the migration")
        for kind in PLACES:
            broker.send(args_of(kind, kind), "accepted new")
            broker.send(args_of(kind, kind), "accepted prior")
            broker.send(args_of(kind, kind, body="AA"), "refused IDEMPOTENCY_KEY_REUSED")
            session.clock("+1h")
        broker.must_be_alike("behind sends")
        session.provoke("prune", {"older_than": session.now})
        broker.must_be_alike("behind a sweep")
        session.clock("+31d")
        session.provoke("expire")
        broker.must_be_alike("behind the nightly job")


@clause("MESH-17-1", "MESH-17-2", "MESH-17-7", provocations=("make_mesh", "migrate", "set_flag"))
def test_a_migration_that_fails_at_any_step_loses_nothing_and_can_be_run_again(bench: Bench) -> None:
    """A table, an index or a column cannot be made. Sends go on without deduplication, and nothing is advertised."""
    with bench.session(workers=2, config={"schema": "pre-v6"}) as session:
        broker = _Broker(bench, session)
        broker.send(args_of("old"), "accepted new", "before the migration")
        for at, step in enumerate(_STEPS):
            before, when = broker.state(), f"behind a migration that failed at {step}"
            if not broker.alter("unchanging", step):
                return
            done = session.attempt("migrate")
            broker.alter("changing")
            if not done and step == _STEPS[-1]:
                session.attempt("set_flag", {"enabled": True})
                if session.observe("features", worker=1)["supported"]:
                    bench.fail("fail_open", f"the features {when}", expected="none", received="they are advertised")
            for worker in range(session.workers):
                broker.send(args_of(f"{at}"), "accepted new", when, worker)
            broker.must_still_have(before, when)
        before = broker.state()
        session.provoke("migrate")
        broker.must_be_as_before(before, "behind the migration")
        session.provoke("set_flag", {"enabled": True})
        for worker, due in enumerate(("accepted new", "accepted prior")):
            broker.send(args_of("old"), due, "behind the migration", worker)
        broker.must_be_alike("behind the migration")


@clause("MESH-4.6-J1", "MESH-4.7-T7", provocations=("make_mesh",))
def test_a_commit_that_the_server_refuses_leaves_nothing_and_can_be_sent_again(bench: Bench) -> None:
    """For every class of error that a commit can end with."""
    with bench.session() as session:
        broker = _Broker(bench, session)
        broker.send(args_of("first"), "accepted new")
        for state in _STATES:
            for kind in PLACES:
                args, when = args_of(f"{state} {kind}", kind), f"whose commit failed: {state}"
                before = broker.state()
                if not broker.alter("failing", state):
                    return
                broker.must_not_be_taken(args, when)
                broker.send(args_of("first"), "accepted prior", f"again, beside one {when}")
                broker.alter("working")
                broker.must_be_as_before(before, when)
                for due in ("accepted new", "accepted prior"):
                    broker.send(args, due, f"again, behind one {when}")


@clause("MESH-4.7-T8", "MESH-4.6-J1", provocations=("make_mesh",))
def test_a_commit_that_comes_too_late_is_not_told_as_failed(bench: Bench) -> None:
    """What was refused is not there afterwards, and what was accepted is."""
    with bench.session(workers=2) as session:
        broker = _Broker(bench, session)
        broker.send(args_of("first"), "accepted new", worker=1)
        if not broker.alter("late", _LATE_S):
            return
        args = args_of("late")
        answer = session.finish(session.start("accept", args))
        # This waits for it.
        broker.alter("working")
        there = "late" in _named(broker.state())
        if answer.outcome == ("refused" if there else "accepted"):
            verdict = "state_leak" if there else "lost_durability"
            came = f"{answer.words}, and it is {'' if there else 'not '}there"
            bench.fail(verdict, "a send whose commit came late", expected="what is true", received=came)
        for worker in range(session.workers):
            broker.send(args, "accepted prior" if there or worker else "accepted new", "again, behind it", worker)


@clause("MESH-17-10", provocations=("make_mesh",))
def test_a_column_that_is_lost_in_use_lets_no_send_be_taken_without_its_record(bench: Bench) -> None:
    """Each column in turn is gone and comes back, under two processes that have used it."""
    with bench.session(workers=2) as session:
        broker = _Broker(bench, session)
        for worker in range(session.workers):
            broker.send(args_of(f"first {worker}"), "accepted new", worker=worker)
        for at, column in enumerate(_LOST):
            before, worker, when = broker.state(), at % session.workers, f"while {column} is gone"
            broker.must_alter("lacking", column)
            broker.must_not_be_taken(args_of(f"new {at}"), f"that is new, {when}", worker)
            broker.must_not_be_taken(args_of("first 0"), f"that is not new, {when}", worker, "new")
            broker.must_not_be_taken(args_of("first 0", body="AA"), f"that is another one, {when}", worker)
            broker.alter("complete", column)
            broker.must_be_as_before(before, when)
            broker.send(args_of(f"new {at}"), "accepted new", f"again, once {column} is back", worker)


@clause("MESH-17-10", "MESH-4.6-J1", provocations=("make_mesh",))
def test_an_empty_database_in_the_place_of_the_own_one_takes_no_send(bench: Bench) -> None:
    """It is swapped under two processes, and comes back with all that it held."""
    with bench.session(workers=2) as session:
        broker = _Broker(bench, session)
        for worker in range(session.workers):
            broker.send(args_of(f"first {worker}"), "accepted new", worker=worker)
        before = broker.state()
        broker.must_alter("swapped")
        when = "to an empty database"
        for worker in range(session.workers):
            broker.must_not_be_taken(args_of(f"new {worker}"), f"that is new, {when}", worker)
            broker.must_not_be_taken(args_of("first 0"), f"that is not new, {when}", worker)
        broker.alter("back")
        broker.must_be_as_before(before, when)
        for worker in range(session.workers):
            broker.send(args_of(f"first {1 - worker}"), "accepted prior", f"again, behind one {when}", worker)
            broker.send(args_of(f"new {worker}"), "accepted new", f"again, behind one {when}", worker)
