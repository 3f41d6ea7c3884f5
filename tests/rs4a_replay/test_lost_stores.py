"""A store that cannot be read: refused or left open, in time, never taken for an empty store."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from holdfast.reference_impl.answers import Accepted, Answer, Fault, Indeterminate, Ok, Refused
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.postgres import connect
from holdfast.reference_impl.rs4a_replay import postgres_store
from holdfast.reference_impl.rs4a_replay.provision import sqlite_paths
from holdfast.reference_impl.rs4a_replay.reserve import Reserving
from holdfast.reference_impl.rs4a_replay.store import CommitUncertainError, Insert, RolledBackError
from holdfast.reference_impl.session import OpenError
from holdfast.servers.serving import Launched
from tests.rs4a_replay.conftest import WINDOW, Desk, submission
from tests.rs4a_replay.test_confined import EXISTING, FRESH, await_end, opened, postmaster

# The protocol's limit for an operation; the reference means to answer in 1.5 s, and the machine may be busy.
OP_S = 2.0
PAGE = 4096


def timed(desk: Desk, method: str, args: Any = None) -> Answer:
    started = time.monotonic()
    answer = desk.call(method, args)
    assert time.monotonic() - started < OP_S, f"{method} took {time.monotonic() - started:.2f} s: {answer}"
    return answer


class Past:
    """What a desk has acknowledged, so that it can be asked for again."""

    def __init__(self, desk: Desk) -> None:
        self.consumed, self.issued = desk.nonce(), desk.nonce()
        self.sent = submission(self.consumed)
        self.decision = desk.accepted("register", self.sent).value["decision"]
        self.key = {"logical_request_key": self.decision["logical_request_key"]}

    def assert_nothing_guessed(self, desk: Desk, *, least: int = 0) -> None:
        """Each answer is a refusal, open, or the truth; `least` operations are enough where each takes its time."""
        operations: tuple[tuple[str, Any], ...] = (
            ("resolve_status", self.key),
            ("register", self.sent),
            ("register", submission(self.issued)),
            ("register", submission(self.issued, target="dot://acme/other")),
            ("compensate", submission(self.issued)),
            ("issue_nonce", {"binding": {"principal": "agent-1"}, "window": WINDOW}),
            ("maintain", {}),
        )
        for method, args in operations[: least or None]:
            assert isinstance(timed(desk, method, args), Refused | Indeterminate), method
        for nonce, state in ((self.consumed, "consumed"), (self.issued, "issued")):
            answer = timed(desk, "nonce_state", {"nonce": nonce})
            assert answer == Ok({"state": state}) or isinstance(answer, Fault)

    def assert_whole(self, desk: Desk) -> None:
        """Everything acknowledged is there, nothing else, and the store takes new work."""
        assert desk.counts() == (1, 1)
        assert desk.accepted("register", self.sent).value == {"decision": self.decision, "replayed": True}
        assert desk.accepted("resolve_status", self.key).value["status"] == "COMMITTED"
        assert desk.accepted("register", submission(self.issued, target="dot://acme/other")).value["replayed"] is False


def missing(path: Path) -> None:
    path.unlink()


def truncated(path: Path) -> None:
    os.truncate(path, 0)


def halved(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 // PAGE * PAGE)


def garbage(path: Path) -> None:
    with open(path, "r+b") as file:
        file.write(b"\xa5" * PAGE)


def foreign(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE messages (body TEXT)")
    connection.commit()
    connection.close()


DAMAGES = (missing, truncated, halved, garbage, foreign)
HITS = ("surface", "audit", "both")
# Within a session SQLite does not read again what it has in memory, and puts back what its log still holds.
MENDED = {(garbage, hit) for hit in HITS} | {(truncated, "audit"), (halved, "audit")}
CASES = [
    pytest.param(damage, hit, when, id=f"{damage.__name__}-{hit}-{when}")
    for damage in DAMAGES
    for hit in HITS
    for when in ("between sessions", "within one")
    if when == "between sessions" or (damage, hit) not in MENDED
]


@pytest.mark.parametrize(("damage", "hit", "when"), CASES)
def test_a_damaged_sqlite_store_is_refused_and_left_as_it_is(
    sqlite: Launched, tmp_path: Path, damage: Callable[[Path], None], hit: str, when: str
) -> None:
    workdir, kept = tmp_path / "w", tmp_path / "kept"
    desk = opened(sqlite, workdir, FRESH)
    past = Past(desk)
    desk.session.close()
    shutil.copytree(workdir, kept)
    if when == "within one":
        desk = opened(sqlite, workdir, EXISTING)
        assert isinstance(desk.call("resolve_status", past.key), Accepted)
        assert isinstance(desk.call("nonce_state", {"nonce": past.issued}), Ok)
    paths = sqlite_paths(workdir / "rs4a-replay")
    struck = {"surface": paths[:1], "audit": paths[1:], "both": paths}[hit]
    for path in struck:
        damage(path)
    left = {path: path.read_bytes() if path.exists() else None for path in struck}
    if when == "between sessions":
        desk = opened(sqlite, workdir, EXISTING)
    past.assert_nothing_guessed(desk)
    desk.session.close()
    if when == "between sessions" or damage not in (truncated, halved):
        # Closing the audit, SQLite writes what its log holds into what is left of the file.
        assert {path: path.read_bytes() if path.exists() else None for path in struck} == left
    shutil.rmtree(workdir)
    shutil.copytree(kept, workdir)
    desk = opened(sqlite, workdir, EXISTING)
    past.assert_whole(desk)
    desk.session.close()


@contextmanager
def locked(paths: tuple[Path, ...]) -> Iterator[None]:
    """Another process has the files for itself."""
    script = (
        "import sqlite3, sys\n"
        "held = [sqlite3.connect(path, isolation_level=None) for path in sys.argv[1:]]\n"
        "for each in held:\n"
        "    each.execute('PRAGMA locking_mode = EXCLUSIVE')\n"
        "    each.execute('BEGIN EXCLUSIVE')\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, paths)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    try:
        yield
    finally:
        child.communicate()


@pytest.mark.parametrize(
    "hit", [pytest.param("surface", marks=pytest.mark.sweep), pytest.param("audit", marks=pytest.mark.sweep), "both"]
)
def test_a_sqlite_store_that_another_process_has_locked_is_refused_in_time_and_works_afterwards(
    sqlite: Launched, tmp_path: Path, hit: str
) -> None:
    desk = opened(sqlite, tmp_path, FRESH)
    past = Past(desk)
    desk.session.close()
    surface, audit = sqlite_paths(tmp_path / "rs4a-replay")
    desk = opened(sqlite, tmp_path, EXISTING)
    with locked({"surface": (surface,), "audit": (audit,), "both": (surface, audit)}[hit]):
        past.assert_nothing_guessed(desk)
    past.assert_whole(desk)
    desk.session.close()


def server_processes(workdir: Path) -> list[int]:
    server = postmaster(workdir)
    children = Path(f"/proc/{server}/task/{server}/children").read_text(encoding="ascii")
    return [server, *map(int, children.split())]


@contextmanager
def stopped(processes: list[int]) -> Iterator[None]:
    """As a machine that hangs: the sockets are open, and no answer comes."""
    for each in processes:
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        go_on(processes)


def go_on(processes: list[int]) -> None:
    for each in reversed(processes):
        os.kill(each, signal.SIGCONT)


def test_a_session_on_a_database_that_does_not_answer_is_closed_in_time(cluster: Launched, open_folder: Path) -> None:
    desk = opened(cluster, open_folder, FRESH)
    past = Past(desk)
    processes = server_processes(open_folder)
    for each in processes:
        os.kill(each, signal.SIGSTOP)
    started = time.monotonic()
    desk.session.close()
    assert time.monotonic() - started < OP_S
    for each in processes:
        await_end(each)
    desk = opened(cluster, open_folder, EXISTING)
    past.assert_whole(desk)
    desk.session.close()


@pytest.mark.parametrize("connections", [pytest.param("new", marks=pytest.mark.sweep), "used"])
def test_a_database_that_does_not_answer_is_refused_in_time_and_works_afterwards(
    cluster: Launched, open_folder: Path, connections: str
) -> None:
    desk = opened(cluster, open_folder, FRESH)
    past = Past(desk)
    if connections == "new":
        desk.session.close()
        desk = opened(cluster, open_folder, EXISTING)
    with stopped(server_processes(open_folder)):
        past.assert_nothing_guessed(desk, least=3)
        started = time.monotonic()
        assert isinstance(desk.call("state"), Fault)
        assert time.monotonic() - started < OP_S
    past.assert_whole(desk)
    desk.session.close()


def test_a_write_without_an_answer_is_open_and_may_be_sent_again(cluster: Launched, open_folder: Path) -> None:
    desk = opened(cluster, open_folder, FRESH)
    desk.nonce()
    service: Any = desk.session
    store, patience = service._parts.ports.store, service._parts.patience
    row = {"logical_request_key": "ab" * 32, "decision_id": "d", "recorded_at": "2026-01-01T00:00:00Z"}
    with stopped(server_processes(open_folder)):
        patience.begin()
        with pytest.raises(CommitUncertainError):
            store.append([Insert("tombstone", row)])
    patience.begin()
    assert store.append([Insert("tombstone", row)]) in (0, 1)
    assert desk.observe("state")["tombstone"] == [row]
    desk.session.close()


@pytest.mark.parametrize(
    ("severity", "due"), [("ERROR", RolledBackError), ("PANIC", CommitUncertainError), (None, CommitUncertainError)]
)
def test_what_became_of_a_write_is_open_unless_the_server_goes_on_behind_its_error(
    severity: str | None, due: type[Exception], cluster: Launched, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Said(psycopg.OperationalError):
        diag: Any = SimpleNamespace(severity_nonlocalized=severity)

    def fail(*_: Any) -> None:
        raise Said

    desk = opened(cluster, open_folder, FRESH)
    service: Any = desk.session
    monkeypatch.setattr(postgres_store, "run", fail)
    with pytest.raises(due):
        service._parts.ports.store.append([])
    desk.session.close()


@contextmanager
def killed(processes: list[int]) -> Iterator[None]:
    """As a machine that is gone."""
    for each in processes:
        os.kill(each, signal.SIGKILL)
    yield


@pytest.mark.parametrize("lost", [stopped, killed])
def test_a_commit_without_an_answer_is_open_and_resolved_once_the_database_is_back(
    cluster: Launched, open_folder: Path, lost: Callable[[list[int]], AbstractContextManager[None]]
) -> None:
    desk = opened(cluster, open_folder, FRESH)
    sent = submission(desk.nonce())
    key = {"logical_request_key": desk.observe("derive_keys", sent)["logical_request_key"]}
    desk.call("hold_at", {"point": "before_commit", "fault": "hold"})
    answers: list[Answer] = []
    registering = threading.Thread(target=lambda: answers.append(desk.call("register", sent)))
    registering.start()
    hold = open_folder / "hold"
    while not (hold / "before_commit.reached").exists():
        time.sleep(0.005)
    with lost(server_processes(open_folder)):
        released = time.monotonic()
        (hold / "before_commit.release").touch()
        registering.join()
        assert time.monotonic() - released < OP_S
    (answer,) = answers
    # A line that is cut shows before the COMMIT leaves on it; one without answers does not.
    assert isinstance(answer, Indeterminate) or (lost is killed and isinstance(answer, Refused))
    if lost is killed:
        desk.session.close()
        desk = opened(cluster, open_folder, EXISTING)
    status = desk.accepted("resolve_status", key).value["status"]
    assert desk.counts() == ((1, 1) if status == "COMMITTED" else (0, 0))
    desk.accepted("register", sent)
    assert desk.counts() == (1, 1)
    desk.session.close()


def test_a_database_that_is_gone_is_refused_and_what_was_acknowledged_survives(
    cluster: Launched, open_folder: Path
) -> None:
    desk = opened(cluster, open_folder, FRESH)
    past = Past(desk)
    for each in server_processes(open_folder):
        os.kill(each, signal.SIGKILL)
    past.assert_nothing_guessed(desk)
    desk.session.close()
    desk = opened(cluster, open_folder, EXISTING)
    past.assert_whole(desk)
    desk.session.close()


@pytest.mark.parametrize("relation", ["registration", "nonce_consume"])
def test_a_table_that_lost_its_rows_is_not_one_in_which_nothing_was_seen(
    cluster: Launched, open_folder: Path, relation: str
) -> None:
    desk = opened(cluster, open_folder, FRESH)
    past = Past(desk)
    with connect(f"host={open_folder}/rs4a-replay/socket user=postgres dbname=postgres") as admin:
        ((path,),) = admin.execute(f"SELECT pg_relation_filepath('rs4a_replay.{relation}')").fetchall()
    desk.session.close()
    os.truncate(open_folder / "rs4a-replay" / "data" / str(path), 0)
    desk = opened(cluster, open_folder, EXISTING)
    assert isinstance(desk.call("state"), Fault)
    answer = timed(desk, "nonce_state", {"nonce": past.consumed})
    assert isinstance(answer, Fault) is (relation == "nonce_consume")
    assert isinstance(answer, Fault) or answer == Ok({"state": "consumed"})
    assert isinstance(timed(desk, "register", past.sent), Refused)
    if relation == "registration":
        assert isinstance(timed(desk, "resolve_status", past.key), Refused)
    else:
        assert desk.accepted("resolve_status", past.key).value["status"] == "COMMITTED"
    desk.session.close()


@pytest.mark.parametrize("damage", [missing, truncated, garbage])
def test_a_cluster_that_cannot_start_says_so_when_it_is_opened(
    cluster: Launched, open_folder: Path, damage: Callable[[Path], None]
) -> None:
    opened(cluster, open_folder, FRESH).session.close()
    damage(open_folder / "rs4a-replay" / "data" / "global" / "pg_control")
    with pytest.raises(OpenError, match="expected PostgreSQL to be ready"):
        opened(cluster, open_folder, EXISTING)


def test_a_session_goes_on_when_the_database_was_restarted_under_it(cluster: Launched, open_folder: Path) -> None:
    desk = opened(cluster, open_folder, FRESH)
    past = Past(desk)
    # SIGKILL of one process makes a server restart all others.
    backend = next(each for each in server_processes(open_folder)[1:] if b"holdfast_writer" in _title(each))
    os.kill(backend, signal.SIGKILL)
    desk.recovered()
    past.assert_whole(desk)
    desk.session.close()


def _title(process: int) -> bytes:
    return Path(f"/proc/{process}/cmdline").read_bytes()


def test_patience_is_one_budget_for_an_operation_and_begins_anew_with_the_next() -> None:
    patience = Patience(0.05)
    assert 0 < patience.left() <= 0.05
    assert Reserving(patience, 0.05).left() == 0.0
    time.sleep(0.06)
    assert patience.left() == 0.0
    patience.begin()
    assert patience.left() > 0
