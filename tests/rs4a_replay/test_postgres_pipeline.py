"""Several statements in one message: what fails, what stays behind, and what a lost connection looks like."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors

from holdfast.reference_impl.postgres import Link
from holdfast.reference_impl.postgres_pipeline import Step
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


def test_each_step_is_answered_with_its_tag_and_its_first_row_as_text(link: Link) -> None:
    values = Step("SELECT %s::text, %s::boolean, %s::text", ("é'\"\\", True, None))
    begun, row, committed = link.pipeline().run(Step("BEGIN"), values, Step("COMMIT"))
    assert (begun.tag, begun.row) == ("BEGIN", None)
    assert (row.tag, row.row) == ("SELECT 1", ("é'\"\\", "t", None))
    assert committed.tag == "COMMIT"


def test_the_first_step_that_fails_is_the_last_that_runs_and_the_connection_goes_on(link: Link) -> None:
    with pytest.raises(errors.UniqueViolation):
        link.pipeline().run(Step(ADD, ("a",)), Step(ADD, ("a",)), Step(ADD, ("b",)))
    assert kept(link) == []
    assert link.pipeline().run(Step(ADD, ("a",)))[0].row == ("a",)
    assert kept(link) == ["a"]


def test_a_commit_of_a_failed_transaction_says_rollback(link: Link) -> None:
    with pytest.raises(errors.UniqueViolation):
        link.pipeline().run(Step("BEGIN"), Step(ADD, ("a",)), Step(ADD, ("a",)))
    assert link.pipeline().run(Step("COMMIT"))[0].tag == "ROLLBACK"
    assert kept(link) == []


@pytest.mark.parametrize("begun", [True, False])
def test_what_is_rehearsed_leaves_nothing_behind(link: Link, *, begun: bool) -> None:
    for _ in range(2):
        if begun:
            link.pipeline().begin_rehearsal(Step(ADD, ("a",)))
        link.pipeline().rehearse(Step(ADD, ("a",)))
    assert kept(link) == []


def test_a_rehearsal_that_fails_says_so_and_the_next_one_is_its_own(link: Link) -> None:
    link.pipeline().run(Step(ADD, ("a",)))
    for _ in range(2):
        link.pipeline().begin_rehearsal(Step(ADD, ("a",)))
        with pytest.raises(errors.UniqueViolation):
            link.pipeline().rehearse(Step(ADD, ("a",)))
    link.pipeline().rehearse(Step(ADD, ("b",)))
    assert kept(link) == ["a"]


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_rehearsal_that_nobody_asked_about_spoils_nothing(link: Link, name: str) -> None:
    link.pipeline().run(Step(ADD, ("a",)))
    link.pipeline().begin_rehearsal(Step(ADD, (name,)))
    link.pipeline().run(Step(ADD, ("c",)))
    link.pipeline().begin_rehearsal(Step(ADD, (name,)))
    link.pipeline().begin_rehearsal(Step(ADD, ("d",)))
    link.pipeline().rehearse(Step(ADD, ("d",)))
    assert kept(link) == ["a", "c"]


@pytest.mark.parametrize("waiting", [True, False])
def test_a_lost_connection_is_an_operational_error_and_is_known_to_be_lost(
    link: Link, postgres: Launched, *, waiting: bool
) -> None:
    pipeline, pid = link.pipeline(), link.connection().info.backend_pid

    def end() -> None:
        with psycopg.connect(postgres.ready.config["dsn"], autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))

    ending = threading.Timer(0.3 if waiting else 0.0, end)
    ending.start()
    if not waiting:
        ending.join()
    with pytest.raises(psycopg.OperationalError):
        pipeline.run(Step("SELECT pg_sleep(30)" if waiting else "SELECT 1"))
    ending.join()
    assert not link.is_open
    with pytest.raises(psycopg.OperationalError):
        pipeline.run(Step("SELECT 1"))
    assert link.pipeline().run(Step("SELECT 1"))[0].row == ("1",)


def test_text_with_a_nul_is_refused_and_not_cut_off(link: Link) -> None:
    with pytest.raises(psycopg.DataError, match="NUL"):
        link.pipeline().run(Step(ADD, ("a\0b",)))
    assert kept(link) == []
