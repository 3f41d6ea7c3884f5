"""Several statements in one message: what fails, what stays behind, and how a lost connection shows."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors

from holdfast.reference_impl.postgres import Link
from holdfast.reference_impl.postgres_pipeline import Step, rehearse, run
from holdfast.servers.serving import Launched

ADD = "INSERT INTO pg_temp.kept (name) VALUES (%s) RETURNING name"


@pytest.fixture
def link(postgres: Launched) -> Iterator[Link]:
    link = Link(postgres.ready.config["dsn"])
    link.connection().execute("CREATE TEMPORARY TABLE kept (name text PRIMARY KEY, good boolean)")
    yield link
    link.drop()


def kept(link: Link) -> list[object]:
    return [name for (name,) in link.connection().execute("SELECT name FROM pg_temp.kept ORDER BY name").fetchall()]


def test_each_step_is_answered_with_its_tag_and_its_first_row(link: Link) -> None:
    values = Step("SELECT %s::text, %s::boolean, %s::text", ("é'\"\\", True, None))
    begun, row, committed = run(link.connection(), Step("BEGIN"), values, Step("COMMIT"))
    assert (begun.tag, begun.row) == ("BEGIN", None)
    assert (row.tag, row.row) == ("SELECT 1", ("é'\"\\", True, None))
    assert committed.tag == "COMMIT"


def test_the_first_step_that_fails_is_the_last_that_runs_and_the_connection_goes_on(link: Link) -> None:
    with pytest.raises(errors.UniqueViolation):
        run(link.connection(), Step(ADD, ("a",)), Step(ADD, ("a",)), Step(ADD, ("b",)))
    assert kept(link) == []
    assert run(link.connection(), Step(ADD, ("a",)))[0].row == ("a",)
    assert kept(link) == ["a"]


def test_a_commit_of_a_failed_transaction_says_rollback(link: Link) -> None:
    with pytest.raises(errors.UniqueViolation):
        run(link.connection(), Step("BEGIN"), Step(ADD, ("a",)), Step(ADD, ("a",)))
    assert run(link.connection(), Step("COMMIT"))[0].tag == "ROLLBACK"
    assert kept(link) == []


def test_what_is_rehearsed_leaves_nothing_behind(link: Link) -> None:
    for _ in range(2):
        rehearse(link.connection(), Step(ADD, ("a",)))
    assert kept(link) == []


def test_a_rehearsal_that_fails_says_so_and_the_next_one_is_its_own(link: Link) -> None:
    run(link.connection(), Step(ADD, ("a",)))
    for _ in range(2):
        with pytest.raises(errors.UniqueViolation):
            rehearse(link.connection(), Step(ADD, ("a",)))
    rehearse(link.connection(), Step(ADD, ("b",)))
    assert kept(link) == ["a"]


def test_a_statement_runs_after_each_way_to_roll_back(link: Link) -> None:
    connection = link.connection()
    for name in "abc":
        run(connection, Step("BEGIN"), Step(ADD, (name,)))
        connection.execute("ROLLBACK")
        with pytest.raises(errors.UniqueViolation):
            run(connection, Step("BEGIN"), Step(ADD, (name,)), Step(ADD, (name,)))
        connection.execute("ROLLBACK")
        rehearse(connection, Step(ADD, (name,)))
        assert run(connection, Step(ADD, (name,)), Step("SELECT 1"))[0].row == (name,)
    assert kept(link) == ["a", "b", "c"]


@pytest.mark.parametrize("waiting", [True, False])
def test_a_lost_connection_is_an_operational_error_and_is_known_to_be_lost(
    link: Link, postgres: Launched, *, waiting: bool
) -> None:
    connection = link.connection()
    pid = connection.info.backend_pid

    def end() -> None:
        with psycopg.connect(postgres.ready.config["dsn"], autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))

    ending = threading.Timer(0.3 if waiting else 0.0, end)
    ending.start()
    if not waiting:
        ending.join()
    with pytest.raises(psycopg.OperationalError):
        run(connection, Step("SELECT pg_sleep(30)" if waiting else "SELECT 1"))
    ending.join()
    assert not link.is_open
    with pytest.raises(psycopg.OperationalError):
        run(connection, Step("SELECT 1"))
    assert run(link.connection(), Step("SELECT 1"))[0].row == (1,)


def test_text_with_a_nul_is_refused_and_not_cut_off(link: Link) -> None:
    with pytest.raises(psycopg.DataError, match="NUL"):
        run(link.connection(), Step(ADD, ("a",)), Step(ADD, ("a\0b",)))
    assert kept(link) == []
