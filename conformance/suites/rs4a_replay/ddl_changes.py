"""The surface of a session on PostgreSQL, altered by the harness as an administrator may do it in use.

A store may lose its constraints: a registrar refuses it, or the store still refuses rows. The server may refuse
commits, or lose the connection on the way to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.forms import TEXT, value_form
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.suites.disposable import as_usual, asked, at_commit, failing, late, quoted, worked
from holdfast.conformance.suites.rs4a_replay.model_state import keys_of
from holdfast.conformance.suites.rs4a_replay.requests import issue, issuing, registration, request, tampered

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


def _copied(effect: _Effect, _: str) -> Iterator[str]:
    """The whole relation again, in another schema."""
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


CHANGES: Mapping[str, Callable[[_Effect, str], Iterable[str]]] = {
    "copied": _copied,
    "hollow": _hollow,
    "mended": _mended,
    # One of the columns that the nonce relation has too is gone; no unique constraint is left, nor a primary key.
    "lacking": lambda effect, _: [f"ALTER TABLE {effect.named} DROP COLUMN {quoted(effect.shared[-1])} CASCADE"],
    "bare": lambda effect, _: [
        f"ALTER TABLE {effect.named} DROP CONSTRAINT {quoted(name)} CASCADE"
        for name in (*effect.unique, *effect.primary)
    ],
    # Each commit that adds a row fails with this SQLSTATE; goes through again, those under way first; or, to any row of
    # the surface, takes so many seconds.
    "failing": lambda effect, state: at_commit(failing(state), [effect.named], schema=effect.schema),
    "working": lambda effect, _: [as_usual(schema=effect.schema)],
    "late": lambda effect, seconds: at_commit(late(seconds), effect.beside, schema=effect.schema),
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
    tables = [f"{quoted(schema_name)}.{quoted(name)}" for (name,) in beside if name != audit]
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


# A store that another tool has rebuilt without its constraints: a registrar refuses it, or still refuses rows


@clause("RS4A-ID-11", provocations=("raw_insert",))
def test_a_store_without_its_constraints_admits_nothing_or_refuses_a_second_row(bench: Bench) -> None:
    """It is rebuilt while no registrar runs on it. The harness can do that to SQLite databases in the workdir."""
    databases = _without(bench, ".")
    bench.note(f"without constraints were {', '.join(databases) or 'no databases: none in the workdir is of SQLite'}")
    # Each alone, because what is wrong with one may hide what is wrong with another.
    for path in databases if len(databases) > 1 else ():
        _without(bench, path)
    # The relation of the registration alone, with indexes that look like those that it had.
    if databases:
        _without(bench, ".", hollow=True)


def _without(bench: Bench, path: str, *, hollow: bool = False) -> list[str]:
    """A session whose databases at a path lose their constraints; which these were."""
    with bench.session(workers=2) as session:
        first = _first(bench, session)
        other = request(session, "other", nonce=issue(bench, session))
        _refuses(bench, session, first, "as it was made")
        session.kill(0, 1)
        found = session.loosen(path, holding=keys_of(first)["replay_key"] if hollow else "")
        session.reopen(0, 1)
        failed = [f"{each['path']}: {each['error']}" for each in found if each["error"]]
        if failed:
            bench.fail("not_reached", f"a database keeps its constraints: {failed[0]}")
        lost = [each["path"] for each in found if each["tables"]]
        admitted = [method for method, answer in _asked(session, other) if answer.effect == "new"]
        if admitted:
            _refuses(bench, session, first, f"without constraints, where {admitted[0]} was admitted")
        if not lost:
            bench.must_be(" ".join(admitted), "issue_nonce register", "another registration")
    return lost


def _first(bench: Bench, session: SuiteSession, worker: int = 0) -> dict[str, Any]:
    """A request that is registered, and known when a worker is asked for the same again."""
    first, again = (request(session, "first", nonce=issue(bench, session)) for _ in range(2))
    bench.must_be(session.call("register", first), "accepted new", "the first registration")
    bench.must_be(session.call("register", again, worker), "refused REPLAY_DUPLICATE", "the same again")
    return first


def _asked(session: SuiteSession, args: dict[str, Any], *, worker: int = 1) -> list[tuple[str, Answer]]:
    issued = session.call("issue_nonce", issuing(session, 60))
    return [("issue_nonce", issued), ("register", session.call("register", args, worker))]


def _refuses(bench: Bench, session: SuiteSession, args: dict[str, Any], when: str) -> None:
    """The store refuses a second row of a consumed key by itself."""
    row = registration(bench, session, args, f"second {when}", replay_key=session.hex64(f"second {when}"))
    if session.provoke("raw_insert", {"relation": "registration", "row": row})["inserted"]:
        bench.fail(
            "fail_open", f"a second row of a consumed key, in a store {when}", expected="refused", received="put in"
        )


# On a server


@clause("RS4A-ID-11", provocations=("raw_insert",))
def test_a_constraint_that_is_lost_in_use_closes_the_registrar_or_refuses_a_second_row(
    bench: Bench,
) -> None:
    """Each unique constraint in turn becomes one of its name that refuses nothing; then none is left. A copy is whole.

    The harness can do that to the database of a session on PostgreSQL that launcher and adapter name.
    """
    with bench.session(workers=2) as session:
        first = _first(bench, session)
        names = amended(bench, session, "copied")
        if names is None:
            return
        # Issued now, because a surface that was not fit may be refused from then on.
        last, second, *others = (
            request(session, f"other-{number}", nonce=issue(bench, session)) for number in range(len(names) + 2)
        )
        # Both processes have seen the surface as it was.
        bench.must_be(session.call("register", second, 1), "accepted new", "a second one")
        for name, other in zip(names, others, strict=True):
            amended(bench, session, "hollow", name)
            _holds(bench, session, first, other, f"whose {name} refuses nothing")
            amended(bench, session, "mended", name)
        amended(bench, session, "bare")
        _holds(bench, session, first, last, "with no constraint")


@clause("RS4A-GATE-3")
def test_a_relation_that_loses_a_column_in_use_counts_as_incomplete(bench: Bench) -> None:
    """Another relation still has a column of that name. It needs a database of the session on PostgreSQL, as above."""
    with bench.session() as session:
        _first(bench, session)
        other = request(session, "other", nonce=issue(bench, session))
        if amended(bench, session, "lacking") is None:
            return
        for method, answer in _asked(session, other, worker=0):
            if answer.outcome != "refused":
                expected, received = "refused", answer.words
                bench.fail("fail_open", f"{method} where a column is gone", expected=expected, received=received)
        gate = session.observe("gate")
        if gate["surface"] in ("PRESENT_UNPROVEN", "FIT"):
            bench.fail("fail_open", "the gate where a column is gone", expected="UNKNOWN", received=gate["surface"])


def _holds(bench: Bench, session: SuiteSession, first: dict[str, Any], other: dict[str, Any], when: str) -> None:
    """Nothing is admitted, or the store refuses a second row by itself."""
    admitted = [method for method, answer in _asked(session, other) if answer.effect == "new"]
    if admitted:
        _refuses(bench, session, first, f"{when}, where {admitted[0]} was admitted")


# Registrations whose commit the server refuses, or whose connection is lost on the way to it


# Classes of errors: it may succeed another time, there is no room, the server ends the statement.
_STATES = ("40001", "53100", "57014")


@clause("RS4A-S1-1", "RS4A-S1-2")
def test_a_commit_that_the_server_refuses_leaves_nothing_and_can_be_sent_again(bench: Bench) -> None:
    """For every class of error that a commit can end with. It needs a database of the session on PostgreSQL."""
    with bench.session() as session:
        _first(bench, session)
        for state in _STATES:
            args = request(session, f"failing-{state}", nonce=issue(bench, session))
            if amended(bench, session, "failing", state) is None:
                return
            got = session.call("register", args).words
            if got.startswith("accepted"):
                bench.fail("fail_open", f"a commit that ended with {state}", expected="no acceptance", received=got)
            rows = session.observe("state")
            key = keys_of(args)["logical_request_key"]
            left = [name for name in ("registration", "nonce_consume") if key in str(rows[name])]
            if left:
                bench.fail(
                    "lost_durability", f"a commit that ended with {state}", expected="no row", received=f"{left}"
                )
            amended(bench, session, "working")
            if got not in ("refused COMMIT_FAILED", "indeterminate"):
                continue
            status = session.accepted("resolve_status", {"logical_request_key": key})["status"]
            bench.must_be(status, "NOT_COMMITTED", f"the status behind {state}")
            bench.must_be(session.call("register", args), "accepted new", f"the same again behind {state}")


# Longer than an answer may take.
_LATE_S = "2.2"


@clause("RS4A-S1-2", "RS4A-S1-1")
def test_a_commit_that_comes_too_late_is_not_told_as_failed(bench: Bench) -> None:
    """What was refused is not there afterwards. It needs a database of the session on PostgreSQL, as above."""
    with bench.session(workers=2) as session:
        args = request(session, "late", nonce=issue(bench, session))
        _first(bench, session, 1)
        before = {name: len(session.observe("state")[name]) for name in ("nonce_issue", "registration")}
        if amended(bench, session, "late", _LATE_S) is None:
            return
        handles = session.start("issue_nonce", issuing(session, 60)), session.start("register", args, 1)
        told = dict(zip(before, map(session.finish, handles), strict=True))
        # This waits for both.
        amended(bench, session, "working")
        state = session.observe("state")
        for name, answer in told.items():
            more = len(state[name]) - before[name]
            if more > (answer.outcome != "refused") or more < (answer.outcome == "accepted"):
                verdict = "state_leak" if more else "lost_durability"
                bench.fail(
                    verdict, f"{answer.words} of a late commit", expected="what is true", received=f"{more} rows"
                )
        key = {"logical_request_key": keys_of(args)["logical_request_key"]}
        status = session.accepted("resolve_status", key)["status"]
        due = "COMMITTED" if len(state["registration"]) > before["registration"] else "NOT_COMMITTED"
        bench.must_be(status, due, "the status behind it")


_POINTS = ("before_consume", "after_nonce_consume", "after_registration", "before_commit", "after_commit")


@clause("RS4A-S1-1", "RS4A-S1-2", provocations=("hold_at",))
def test_a_connection_that_is_lost_at_any_statement_leaves_all_or_nothing(bench: Bench) -> None:
    """Before each statement of the transaction and behind the last. What is told is true."""
    with bench.session() as session:
        for point in _POINTS:
            args = request(session, f"lost-{point}", nonce=issue(bench, session))
            key = keys_of(args)["logical_request_key"]
            session.provoke("hold_at", {"point": point, "fault": "lose_answer"})
            got = session.call("register", args).words
            told = {"accepted new": "COMMITTED", "refused COMMIT_FAILED": "NOT_COMMITTED", "indeterminate": ""}
            if got not in told:
                bench.must_be(got, "indeterminate", f"a connection lost at {point}")
            status = session.accepted("resolve_status", {"logical_request_key": key})["status"]
            if told.get(got, "") not in ("", status):
                bench.fail("lost_durability", f"told {got} at {point}", expected=told[got], received=status)
            rows = session.observe("state")
            stored = {name: key in str(rows[name]) for name in ("registration", "nonce_consume")}
            if set(stored.values()) != {status == "COMMITTED"}:
                bench.fail(
                    "lost_durability", f"{status} behind {point}", expected="both rows or none", received=str(stored)
                )
            again = "accepted prior" if status == "COMMITTED" else "accepted new"
            bench.must_be(session.call("register", args), again, f"the same again behind {point}")


@clause("RS4A-S1-1", "RS4A-RP-02", provocations=("hold_at",))
def test_a_failpoint_that_a_refused_call_does_not_reach_stops_no_later_one(bench: Bench) -> None:
    """What is malformed never comes to a transaction. The next registration does, and meets nothing there."""
    with bench.session() as session:
        for method in ("register", "compensate"):
            args = request(session, f"behind-{method}", nonce=issue(bench, session))
            malformed = tampered(session, request(session, "armed", nonce="never-issued-armed"), "without an attempt")
            session.provoke("hold_at", {"point": "before_commit", "fault": "abort"})
            bench.must_be(session.call(method, malformed), "refused REQUEST_MALFORMED", f"{method} without an attempt")
            bench.must_be(
                session.call("register", args), "accepted new", f"a registration behind a {method} that was malformed"
            )
