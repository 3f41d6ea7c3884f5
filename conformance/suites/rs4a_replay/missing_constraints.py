"""A store that another tool has rebuilt without its constraints: a registrar refuses it, or still refuses rows."""

from __future__ import annotations

from typing import Any

from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import shift
from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.rs4a_replay.ddl_changes import amended
from holdfast.conformance.suites.rs4a_replay.model_state import keys_of
from holdfast.conformance.suites.rs4a_replay.requests import issue, must_be, principal, request, shown
from holdfast.conformance.suites.session import SuiteSession


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
        first = request(session, "first", nonce=issue(bench, session))
        must_be(bench, "the first registration", shown(session.call("register", first)), "accepted new")
        again = request(session, "first", nonce=issue(bench, session))
        must_be(bench, "a second one", shown(session.call("register", again)), "refused REPLAY_DUPLICATE")
        other = request(session, "other", nonce=issue(bench, session))
        _refuses(bench, session, first, "as it was made")
        for worker in range(session.workers):
            session.kill(worker)
        found = session.loosen(path, holding=keys_of(first)["replay_key"] if hollow else "")
        for worker in range(session.workers):
            session.reopen(worker)
        failed = [f"{each['path']}: {each['error']}" for each in found if each["error"]]
        if failed:
            bench.fail("not_reached", f"a database keeps its constraints: {failed[0]}")
        lost = [each["path"] for each in found if each["tables"]]
        admitted = [method for method, answer in _asked(session, other) if answer.effect == "new"]
        if admitted:
            _refuses(bench, session, first, f"without constraints, where {admitted[0]} was admitted")
        if not lost:
            must_be(bench, "another registration", " ".join(admitted), "issue_nonce register")
    return lost


def _asked(session: SuiteSession, args: dict[str, Any], *, worker: int = 1) -> list[tuple[str, Answer]]:
    window = {"not_before": session.now, "not_after": shift(session.now, "+60s")}
    issued = session.call("issue_nonce", {"binding": {"principal": principal(session)}, "window": window})
    return [("issue_nonce", issued), ("register", session.call("register", args, worker))]


def _refuses(bench: Bench, session: SuiteSession, args: dict[str, Any], when: str) -> None:
    """The store refuses a second row of a consumed key by itself."""
    columns = bench.contract.relations["registration"].columns
    row = {name: text for name, text in args["request"].items() if name in columns}
    row |= {**keys_of(args), "decision_id": f"second {when}", "inert": True, "committed_at": session.now}
    row["replay_key"] = session.hex64(f"second {when}")
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
        first = request(session, "first", nonce=issue(bench, session))
        must_be(bench, "the first registration", shown(session.call("register", first)), "accepted new")
        again = request(session, "first", nonce=issue(bench, session))
        must_be(bench, "the same again", shown(session.call("register", again)), "refused REPLAY_DUPLICATE")
        names = amended(bench, session, "copied")
        if names is None:
            return
        # Issued now, because a surface that was not fit may be refused from then on.
        last, second, *others = (
            request(session, f"other-{number}", nonce=issue(bench, session)) for number in range(len(names) + 2)
        )
        # Both processes have seen the surface as it was.
        must_be(bench, "a second one", shown(session.call("register", second, 1)), "accepted new")
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
        first = request(session, "first", nonce=issue(bench, session))
        must_be(bench, "the first registration", shown(session.call("register", first)), "accepted new")
        again, other = (request(session, label, nonce=issue(bench, session)) for label in ("first", "other"))
        must_be(bench, "the same again", shown(session.call("register", again)), "refused REPLAY_DUPLICATE")
        if amended(bench, session, "lacking") is None:
            return
        for method, answer in _asked(session, other, worker=0):
            if answer.outcome != "refused":
                expected, received = "refused", shown(answer)
                bench.fail("fail_open", f"{method} where a column is gone", expected=expected, received=received)
        gate = session.observe("gate")
        if gate["surface"] in ("PRESENT_UNPROVEN", "FIT"):
            bench.fail("fail_open", "the gate where a column is gone", expected="UNKNOWN", received=gate["surface"])


def _holds(bench: Bench, session: SuiteSession, first: dict[str, Any], other: dict[str, Any], when: str) -> None:
    """Nothing is admitted, or the store refuses a second row by itself."""
    admitted = [method for method, answer in _asked(session, other) if answer.effect == "new"]
    if admitted:
        _refuses(bench, session, first, f"{when}, where {admitted[0]} was admitted")
