"""A store that cannot be read: refused or left open, in time, never taken for an empty store."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from holdfast.reference_impl.answers import Fault, Ok, Refused
from holdfast.reference_impl.postgres import connect
from holdfast.reference_impl.rs4a_replay import postgres_store
from holdfast.reference_impl.rs4a_replay.store import CommitUncertainError, Insert, RolledBackError
from holdfast.servers.serving import Launched
from tests.rs4a_replay.conftest import submission
from tests.rs4a_replay.test_confined import EXISTING, FRESH, opened, postmaster


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


@pytest.mark.parametrize("relation", ["registration", "nonce_consume"])
def test_a_table_that_lost_its_rows_is_not_one_in_which_nothing_was_seen(
    cluster: Launched, open_folder: Path, relation: str
) -> None:
    desk = opened(cluster, open_folder, FRESH)
    consumed = desk.nonce()
    sent = submission(consumed)
    key = {"logical_request_key": desk.accepted("register", sent).value["decision"]["logical_request_key"]}
    with connect(f"host={open_folder}/rs4a-replay/socket user=postgres dbname=postgres") as admin:
        ((path,),) = admin.execute(f"SELECT pg_relation_filepath('rs4a_replay.{relation}')").fetchall()
    desk.session.close()
    os.truncate(open_folder / "rs4a-replay" / "data" / str(path), 0)
    desk = opened(cluster, open_folder, EXISTING)
    assert isinstance(desk.call("state"), Fault)
    answer = desk.call("nonce_state", {"nonce": consumed})
    assert isinstance(answer, Fault) is (relation == "nonce_consume")
    assert isinstance(answer, Fault) or answer == Ok({"state": "consumed"})
    assert isinstance(desk.call("register", sent), Refused)
    if relation == "registration":
        assert isinstance(desk.call("resolve_status", key), Refused)
    else:
        assert desk.accepted("resolve_status", key).value["status"] == "COMMITTED"
    desk.session.close()
