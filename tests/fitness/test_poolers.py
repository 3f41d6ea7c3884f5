"""A pooler before the server: it is recognised before anything is set, and its other clients notice nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from typer.testing import CliRunner

from holdfast.conformance.cli.commands import app
from holdfast.conformance.fitness.deadline import NEVER
from holdfast.conformance.fitness.errors import FitnessError
from holdfast.conformance.fitness.model import Part, RelationName, Surface
from holdfast.conformance.fitness.postgres import poolers as signs_of
from holdfast.conformance.fitness.postgres.connecting import Connection
from holdfast.conformance.fitness.postgres.poolers import must_be_direct
from holdfast.conformance.fitness.postgres.snapshot import reading, take
from holdfast.conformance.fitness.target import target_of
from tests.fitness.documented import surface_ddl
from tests.fitness.lives import LiveServer
from tests.fitness.poolers import SETTINGS, Pooler, pgbouncer, settings_of
from tests.fitness.relays import relay

DATABASE = "pooled"
DOCUMENTED_SURFACE = Surface("s", {Part.EFFECT: RelationName("surface", "consumed_request")}, "registrar")
_MODES = ("transaction", "session", "statement")


@pytest.fixture(scope="module")
def live(live_server: LiveServer) -> Iterator[LiveServer]:
    """A surface, and what other clients of its database use."""
    with live_server.database(DATABASE, surface_ddl()) as connection:
        connection.execute("CREATE SEQUENCE numbers; CREATE TABLE work (n bigint)")
        yield live_server


@pytest.fixture(scope="module", params=_MODES)
def pooler(request: pytest.FixtureRequest, live: LiveServer) -> Iterator[Pooler]:
    """A real PgBouncer in each of its modes."""
    with pgbouncer(live, request.param) as made:
        yield made


@pytest.fixture(scope="module")
def transactions(live: LiveServer) -> Iterator[Pooler]:
    """One that gives its session to another client after each transaction."""
    with pgbouncer(live, "transaction") as made:
        yield made


def other_client(pooler: Pooler) -> tuple[str, ...]:
    """What another client finds in the pool; it does what clients do."""
    with psycopg.connect(pooler.dsn_of(DATABASE), autocommit=True, prepare_threshold=None) as other:
        other.execute("SELECT nextval('numbers')")
        other.execute("INSERT INTO work VALUES (1)")
        other.execute("CREATE TABLE made (n bigint)")
        other.execute("DROP TABLE made")
        return settings_of(other)


# What others notice


@pytest.mark.parametrize("words", [(), ("--effect", "surface.consumed_request"), ("--effect", "surface.none")])
def test_nothing_is_looked_at_through_a_pooler_and_its_other_clients_notice_nothing(
    pooler: Pooler, words: tuple[str, ...]
) -> None:
    before = other_client(pooler)
    result = CliRunner().invoke(app, ["fitness", pooler.dsn_of(DATABASE), *words])
    assert result.exit_code == 64
    assert "PgBouncer" in result.stderr
    assert "give the address of the server itself" in " ".join(result.stderr.split())
    assert dict(zip(SETTINGS, other_client(pooler), strict=True)) == dict(zip(SETTINGS, before, strict=True))


def test_the_live_probe_is_not_made_through_a_pooler(live: LiveServer, transactions: Pooler) -> None:
    before = other_client(transactions)
    writer = transactions.dsn_of(DATABASE, user="registrar")
    result = CliRunner().invoke(app, ["fitness", live.dsn_of(DATABASE), "--probe-live", "--live-dsn", writer])
    assert result.exit_code == 64
    assert "PgBouncer" in result.stderr
    assert other_client(transactions) == before


def test_who_sends_settings_with_the_connection_is_told_of_the_pooler_that_refuses_them(transactions: Pooler) -> None:
    dsn = make_conninfo(transactions.dsn_of(DATABASE), options="-c work_mem=5MB")
    result = CliRunner().invoke(app, ["fitness", dsn])
    assert result.exit_code == 64
    assert "PgBouncer" in result.stderr


def _asked(connection: Connection) -> None:
    connection.execute("SELECT relname FROM pg_class").fetchall()


def _refused(connection: Connection) -> None:
    _asked(connection)
    raise FitnessError("there is no such relation")


def _failed(connection: Connection) -> None:
    connection.execute("SELECT 1 / 0")


def _interrupted(connection: Connection) -> None:
    _asked(connection)
    raise KeyboardInterrupt


def _cut(connection: Connection) -> None:
    """What a SIGKILL is for the other side."""
    _asked(connection)
    os.close(os.dup2(os.open(os.devnull, os.O_RDWR), connection.fileno()))


@pytest.mark.parametrize("end", [_asked, _refused, _failed, _interrupted, _cut])
def test_a_reading_leaves_nothing_in_a_pool_however_it_ends(
    transactions: Pooler, end: Callable[[Connection], None]
) -> None:
    """Even through a pooler that was not recognised."""
    before = other_client(transactions)
    with (
        suppress(FitnessError, psycopg.Error, KeyboardInterrupt),
        reading(target_of(transactions.dsn_of(DATABASE)), NEVER, "a reading") as connection,
    ):
        assert connection.execute("SHOW transaction_read_only").fetchone() == ("on",)
        end(connection)
    assert other_client(transactions) == before


def test_whatever_a_reading_sets_is_set_for_its_transaction_alone(
    live: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, str]] = []
    execute = Connection.execute

    def watched(connection: Connection, query: str, *rest: Any, **more: Any) -> Any:
        sent.append((connection.info.transaction_status.name, str(query)))
        return execute(connection, query, *rest, **more)

    monkeypatch.setattr(Connection, "execute", watched)
    with reading(target_of(live.dsn_of(DATABASE)), NEVER, "a reading") as connection:
        take(connection, DOCUMENTED_SURFACE)
    assert {status for status, _ in sent} == {"INTRANS"}
    set_by_it = [query for _, query in sent if query.lstrip().upper().startswith("SET")]
    assert len(set_by_it) > 5
    assert all(query.startswith(("SET LOCAL ", "SET TRANSACTION ")) for query in set_by_it)


@pytest.mark.sweep
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_command_that_is_stopped_at_any_moment_leaves_nothing_in_the_pool(pooler: Pooler, number: int) -> None:
    before, chance = other_client(pooler), random.Random(number)
    command = [sys.executable, "-P", "-m", "holdfast.conformance.cli", "fitness", pooler.dsn_of(DATABASE)]
    for _ in range(12):
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.3, 1.6))
        child.send_signal(number)
        child.wait(timeout=30)
        assert other_client(pooler) == before


# How a pooler is recognised


def test_each_sign_by_itself_shows_a_pooler(pooler: Pooler, monkeypatch: pytest.MonkeyPatch) -> None:
    target = target_of(pooler.dsn_of(DATABASE))
    other_client(pooler)
    monkeypatch.setattr(signs_of, "_CLOCK_S", 0.05)
    time.sleep(0.2)
    session, bound = signs_of._asked(target, NEVER)
    assert len(list(signs_of._signs(session))) == 2
    assert list(signs_of._outlives(bound, session, NEVER))


def test_a_pooler_that_hands_on_the_real_number_is_recognised_too(live: LiveServer) -> None:
    with relay(live, keeps=True) as kept:
        target = target_of(kept.dsn_of(DATABASE))
        for _ in range(2):
            with pytest.raises(FitnessError, match="a connection pooler answers here"):
                must_be_direct(target, NEVER)


def test_a_server_itself_is_never_taken_for_a_pooler(live: LiveServer) -> None:
    """By its socket, and through a forwarded port, where the addresses of both sides differ; and a slow one."""
    for _ in range(20):
        must_be_direct(target_of(live.dsn_of(DATABASE)), NEVER)
    with relay(live) as forwarded, relay(live, delay=0.05) as slow:
        for _ in range(10):
            must_be_direct(target_of(forwarded.dsn_of(DATABASE)), NEVER)
        must_be_direct(target_of(slow.dsn_of(DATABASE)), NEVER)


@pytest.mark.sweep
def test_a_busy_server_is_never_taken_for_a_pooler(live: LiveServer) -> None:
    target = target_of(live.dsn_of(DATABASE))
    burn = [sys.executable, "-c", "while True: pass"]
    burning = [subprocess.Popen(burn) for _ in range(4)]
    try:
        with relay(live, delay=0.2) as slow:
            for _ in range(100):
                must_be_direct(target, NEVER)
            for _ in range(10):
                must_be_direct(target_of(slow.dsn_of(DATABASE)), NEVER)
    finally:
        for each in burning:
            each.kill()
            each.wait()


def test_of_several_hosts_the_one_that_answered_is_kept_to(live: LiveServer) -> None:
    with relay(live) as forwarded:
        dsn = make_conninfo(forwarded.dsn_of(DATABASE), host="127.0.0.1,127.0.0.1", port=f"1,{forwarded.port}")
        bound = must_be_direct(target_of(dsn), NEVER)
    assert f"port {forwarded.port}" in bound.described
    assert ",1" not in bound.dsn
