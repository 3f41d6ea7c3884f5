"""Every wait of `fitness` ends on this side for every behaviour of the server, and says which one it was."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any, Self

import psycopg
import pytest
from typer.testing import CliRunner

from holdfast.conformance.cli.commands import app
from holdfast.conformance.fitness.deadline import NEVER, Deadline
from holdfast.conformance.fitness.errors import FitnessError, LostError
from holdfast.conformance.fitness.gather import Names, assess
from holdfast.conformance.fitness.model import EvidenceClass, Standing
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres import clone as clones_of
from holdfast.conformance.fitness.postgres import connecting
from holdfast.conformance.fitness.postgres import probes as live_of
from holdfast.conformance.fitness.postgres.connecting import Connection, Guest, Session, WaitedError
from holdfast.conformance.fitness.postgres.poolers import must_be_direct
from holdfast.conformance.fitness.postgres.probes import live_connection
from holdfast.conformance.fitness.postgres.scratch import Scratch, bare_server
from holdfast.conformance.fitness.postgres.snapshot import reading
from holdfast.conformance.fitness.target import target_of
from holdfast.conformance.fitness.trying.rows import gone
from holdfast.servers.errors import StartError
from tests.fitness.documented import DOCUMENTED, surface_ddl
from tests.fitness.lives import LiveServer
from tests.fitness.relays import relay
from tests.pace import busy

DATABASE = "stalled"
# What docs/fitness.md says that comes on top of --timeout at worst.
_BEYOND_S = 30.0
# A function that catches what ends a statement, and goes on.
_STUBBORN = """
CREATE FUNCTION stubborn() RETURNS void LANGUAGE plpgsql AS $$
BEGIN LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$
"""


@pytest.fixture(scope="module")
def live(live_server: LiveServer) -> Iterator[LiveServer]:
    """A surface."""
    with live_server.database(DATABASE, surface_ddl()) as connection:
        connection.execute(_STUBBORN)
        # Nothing of the surface: its catalogue can be read while this one is locked.
        connection.execute("CREATE TABLE bystander (n bigint)")
        yield live_server


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after a wait is short, too."""
    monkeypatch.setattr(connecting, "_CANCEL_S", 0.2)
    monkeypatch.setattr(clones_of, "_TERMINATE_S", 0.2)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell that runs the tests in the background may ignore SIGINT, and then the children inherit this."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def dsn(live: LiveServer) -> str:
    return live.dsn_of(DATABASE)


def sessions_of(live: LiveServer, kind: str) -> int:
    with psycopg.connect(live.dsn) as connection:
        row = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE query LIKE %s", (kind,)).fetchone()
        assert row is not None
        return int(row[0])


# A server that stops answering


def _stalled(live: LiveServer, clones: Scratch, limit: int, timeout: float) -> None:
    with relay(live, limit=limit) as stalling:
        began = time.monotonic()
        said = ""
        try:
            assessed = assess(stalling.dsn_of(DATABASE), DOCUMENTED, Policy(), server=clones, timeout=timeout)
        except FitnessError as error:
            said = str(error)
        else:
            assert assessed.evidence is not None
            said = assessed.evidence.lost[EvidenceClass.CATALOGUE]
            assert {each.standing for each in assessed.judgement.findings} == {Standing.UNPROVEN}, limit
        waits = ("connecting, and asking", "the first reading", "the second reading")
        assert any(f"cannot be asked: {wait}" in said for wait in waits), limit
        assert stalling.stalled.is_set(), limit
        assert time.monotonic() - began < timeout + busy(_BEYOND_S), limit


def _whole(live: LiveServer, clones: Scratch) -> int:
    """How many bytes a whole assessment takes."""
    with relay(live) as counting:
        assess(counting.dsn_of(DATABASE), DOCUMENTED, Policy(), server=clones)
        return counting.passed


@pytest.mark.usefixtures("hasty")
def test_a_server_that_stops_answering_is_waited_for_no_longer_than_was_said(live: LiveServer, clones: Scratch) -> None:
    # One while it is connected to, and one while its catalogue is read.
    for limit, timeout in ((0, 1.0), (20_000, 3.0)):
        _stalled(live, clones, limit, timeout)


def test_the_command_waits_no_longer_than_its_timeout_and_names_the_wait(live: LiveServer) -> None:
    with relay(live, limit=0) as stalling:
        result = CliRunner().invoke(app, ["fitness", stalling.dsn_of(DATABASE), "--timeout", "1"])
    assert result.exit_code == 64
    said = " ".join(result.stderr.split())
    # What is left of the second when it is asked.
    assert re.search(r"connecting, and asking whether a pooler is in between: no connection within (1|0\.\d+) s", said)
    assert "with a longer --timeout" in said


@pytest.mark.usefixtures("hasty")
def test_a_dump_of_a_server_that_stops_answering_is_given_up(live: LiveServer, clones: Scratch) -> None:
    with relay(live, limit=5_000) as stalling, pytest.raises(LostError, match="pg_dump did not end in"):
        clones_of._dump(target_of(stalling.dsn_of(DATABASE)), replace(clones, deadline=Deadline.after(0.5)))
    assert stalling.stalled.is_set()


@pytest.mark.sweep
def test_a_server_may_stop_answering_after_any_byte(live: LiveServer, clones: Scratch) -> None:
    chance, whole = random.Random(15), _whole(live, clones)
    for _ in range(20):
        _stalled(live, clones, chance.randrange(whole * 9 // 10), 10.0)


def _postmaster(live: LiveServer) -> int:
    with psycopg.connect(live.dsn) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
        assert row is not None
        return int((Path(str(row[0])) / "postmaster.pid").read_text().split()[0])


@contextmanager
def _stopped(process: int) -> Iterator[None]:
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def test_a_server_that_is_stopped_is_not_waited_for(live: LiveServer, dsn: str) -> None:
    """The system takes connections for it, so that connecting to it never fails."""
    with _stopped(_postmaster(live)), pytest.raises(WaitedError, match="no connection within"):
        must_be_direct(target_of(dsn), Deadline.after(0.3))


def test_a_session_that_is_stopped_is_not_waited_for(dsn: str) -> None:
    with (
        closing(Connection.reach(dsn, purpose="a reading", longest=0.3, deadline=NEVER)) as connection,
        _stopped(connection.info.backend_pid),
    ):
        with pytest.raises(WaitedError, match=r"a reading: no answer within 0\.3 s"):
            connection.execute("SELECT 1")
        assert connection.closed


def test_a_name_that_nobody_resolves_is_not_waited_for(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unresolved(Connection):
        @classmethod
        def connect(cls, *_: Any, **__: Any) -> Self:
            # As getaddrinfo() does, which cannot be interrupted.
            time.sleep(2)
            raise psycopg.OperationalError("no such host")

    began = time.monotonic()
    with pytest.raises(WaitedError, match="no connection within"):
        Unresolved.reach(dsn, purpose="a reading", longest=1, deadline=Deadline.after(0.2))
    assert time.monotonic() - began < busy(1.5)


def test_each_of_several_hosts_that_do_not_answer_is_given_up(dsn: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        hosts = f"postgresql://auditor@127.0.0.1:{port},127.0.0.1:{port},127.0.0.1:{port}/registry"
        began = time.monotonic()
        with pytest.raises(FitnessError, match="no connection within"):
            assess(hosts, Names(), Policy(), timeout=0.5)
        assert time.monotonic() - began < busy(_BEYOND_S)


@pytest.mark.usefixtures("hasty", "interruptible")
def test_interrupting_a_wait_for_a_session_that_does_not_answer_ends_it(dsn: str) -> None:
    connection = Connection.reach(dsn, purpose="a reading", longest=60, deadline=NEVER)
    soon = Timer(0.2, signal.raise_signal, (signal.SIGINT,))
    began = time.monotonic()
    with _stopped(connection.info.backend_pid):
        soon.start()
        with pytest.raises(KeyboardInterrupt):
            connection.execute("SELECT 1")
    assert connection.closed
    assert time.monotonic() - began < busy(10)


@pytest.mark.sweep
@pytest.mark.usefixtures("interruptible")
def test_interrupting_a_command_whose_server_does_not_answer_ends_it(live: LiveServer) -> None:
    with relay(live, limit=4000) as stalling:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "holdfast.conformance.cli", "fitness", stalling.dsn_of(DATABASE)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        with child:
            assert stalling.stalled.wait(30)
            child.send_signal(signal.SIGINT)
            _, said = child.communicate(timeout=_BEYOND_S)
    assert child.returncode == 12, said
    assert "interrupted; nothing was proven" in said


# Programs and servers of its own


@pytest.mark.usefixtures("hasty")
def test_a_program_that_does_not_end_is_ended(tmp_path: Path, clones: Scratch, dsn: str) -> None:
    program = tmp_path / "pg_dump"
    program.write_text(f"#!/bin/sh\ntrap '' TERM\necho $$ >{tmp_path}/process\nwhile :; do sleep 0.1; done\n")
    program.chmod(0o755)
    endless = replace(clones, programs=tmp_path, deadline=Deadline.after(0.5))
    with pytest.raises(LostError, match=r"pg_dump did not end in 0\.\d+ s"):
        clones_of._dump(target_of(dsn), endless)
    assert _gone(int((tmp_path / "process").read_text()))


_DUMPING = """
import sys
from holdfast.servers.janitor import Janitor
from holdfast.conformance.fitness.deadline import NEVER
from holdfast.conformance.fitness.postgres.clone import _run
with Janitor() as janitor:
    environment = {"PATH": sys.argv[2], **janitor.mark}
    _run(["sh", "-c", "echo $$ >" + sys.argv[1] + "; exec sleep 60"], environment=environment, deadline=NEVER)
"""


def test_a_dump_does_not_outlive_a_command_that_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "process"
    child = subprocess.Popen([sys.executable, "-c", _DUMPING, str(note), os.environ["PATH"]])
    deadline = Deadline.after(20)
    while not (note.exists() and note.read_text().strip()) and deadline.left():
        time.sleep(0.02)
    child.kill()
    child.wait()
    assert _gone(int(note.read_text()))


def _gone(process: int) -> bool:
    deadline = Deadline.after(10)
    while deadline.left():
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.sweep
def test_a_scratch_server_that_does_not_come_is_not_waited_for() -> None:
    began = time.monotonic()
    with pytest.raises(StartError), bare_server({}, deadline=Deadline.after(0.05)):
        pytest.fail("a server was handed out")
    assert time.monotonic() - began < busy(_BEYOND_S)


# Functions that go on when their time is over


def test_a_function_that_goes_on_when_its_time_is_over_is_not_waited_for(
    dsn: str, monkeypatch: pytest.MonkeyPatch, live: LiveServer
) -> None:
    monkeypatch.setattr(connecting, "STATEMENT_MS", 200)
    monkeypatch.setattr(connecting, "GRACE_S", 0.2)
    session = Session("writer", "registrar", dsn)
    began = time.monotonic()
    _, answer = session.send("SELECT stubborn()")
    assert time.monotonic() - began < busy(5)
    assert gone(answer)
    assert "no answer within 0.4 s" in answer.message
    session.close()
    with psycopg.connect(live.dsn, autocommit=True) as keeper:
        keeper.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT stubborn%'")


def test_nothing_of_the_live_probe_goes_on_when_nobody_waits_for_it(
    live: LiveServer, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_of, "_STATEMENT_MS", 200)
    monkeypatch.setattr(live_of, "GRACE_S", 0.2)
    with closing(live_connection(target_of(live.dsn_of(DATABASE, user="registrar")), NEVER)) as connection:
        connection.execute("BEGIN")
        connection.execute("SET LOCAL statement_timeout = 100")
        connection.execute("INSERT INTO surface.consumed_nonce SELECT 'n', repeat('a', 64)")
        with pytest.raises(WaitedError):
            connection.execute("SELECT stubborn()")
    deadline = Deadline.after(10)
    while sessions_of(live, "SELECT stubborn%") and deadline.left():
        time.sleep(0.02)
    assert sessions_of(live, "SELECT stubborn%") == 0
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT count(*) FROM surface.consumed_nonce").fetchone() == (0,)


# Who is in the way

_PASSWORD = "s3cret-Pa55-word"


@contextmanager
def _held(dsn: str, relation: str) -> Iterator[int]:
    """A session that changes a relation, and whose last statement holds a secret."""
    with psycopg.connect(dsn, application_name="migration") as holder:
        holder.execute(f"LOCK TABLE {relation} IN ACCESS EXCLUSIVE MODE".encode())
        holder.execute(f"SELECT length('{_PASSWORD}')".encode())
        yield holder.info.backend_pid
        holder.rollback()


def _said(dsn: str, *statements: str) -> str:
    """What a reading says that ends at the last of these statements."""
    with pytest.raises(FitnessError) as raised:
        _read(dsn, *statements)
    return str(raised.value)


def _read(dsn: str, *statements: str) -> None:
    with reading(target_of(dsn), NEVER, "a reading") as connection:
        connection.slow = 0.1
        for statement in statements:
            connection.execute(statement.encode())


_BLOCKED = ("SET LOCAL lock_timeout = '600ms'", "SELECT count(*) FROM surface.consumed_request")


def test_a_lock_that_does_not_come_is_said_with_who_holds_it_since_when_and_what_to_do(dsn: str) -> None:
    with _held(dsn, "surface.consumed_request") as process:
        said = _said(dsn, *_BLOCKED)
    assert "a reading: canceling statement due to lock timeout" in said
    assert "it waits for surface.consumed_request (AccessShareLock)" in said
    assert f"in its way is process {process} of role 'postgres', application 'migration'" in said
    assert "whose transaction began at 20" in said
    assert "ask its owner to end it" in said
    assert "begins with 'SELECT length'" in said
    assert _PASSWORD not in said


def test_a_role_that_may_not_see_others_is_told_their_process_and_role_all_the_same(live: LiveServer, dsn: str) -> None:
    with _held(dsn, "surface.consumed_request") as process:
        said = _said(live.dsn_of(DATABASE, user="registrar"), *_BLOCKED)
    assert f"in its way is process {process} of role 'postgres'" in said
    assert "may not see what it does" in said


def test_a_time_out_without_anybody_in_the_way_says_so(dsn: str) -> None:
    said = _said(dsn, "SET LOCAL statement_timeout = '300ms'", "SELECT pg_sleep(60)")
    assert "a reading: canceling statement due to statement timeout" in said
    assert "no session was seen to be in its way" in said


def test_a_dump_that_waits_for_a_lock_says_who_holds_it_and_the_rest_is_judged(
    dsn: str, clones: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clones_of, "_LOCK_WAIT_S", 1)
    monkeypatch.setattr(clones_of, "SLOW_S", 0.2)
    with _held(dsn, "bystander") as process:
        assessed = assess(dsn, DOCUMENTED, Policy(), server=clones)
    assert assessed.evidence is not None
    said = assessed.evidence.lost[EvidenceClass.CLONE]
    assert "pg_dump ended with status 1" in said
    assert "it waits for public.bystander" in said
    assert f"in its way is process {process} of role 'postgres', application 'migration'" in said
    assert EvidenceClass.CATALOGUE not in assessed.evidence.lost
    assert assessed.judgement.status.value == "REPLAY_SURFACE_NOT_FIT"


def test_an_answer_of_the_live_probe_says_who_is_in_its_way(live: LiveServer, dsn: str) -> None:
    with (
        _held(dsn, "surface.consumed_nonce") as process,
        closing(live_connection(target_of(live.dsn_of(DATABASE, user="registrar")), NEVER)) as connection,
        suppress(psycopg.Error),
        connection.transaction(force_rollback=True),
    ):
        connection.execute("SET LOCAL lock_timeout = '600ms'")
        guest = Guest("live", "registrar", connection)
        _, answer = guest.send("INSERT INTO surface.consumed_nonce VALUES ('n', repeat('a', 64))")
    assert answer.sqlstate == "55P03"
    assert f"process {process} of role 'postgres'" in answer.message
