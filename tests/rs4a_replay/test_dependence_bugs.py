"""The planted bugs of lost stores do what their titles say."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.reference_impl.postgres import connect
from holdfast.reference_impl.rs4a_replay.provision import sqlite_paths
from holdfast.servers.serving import Launched
from tests.rs4a_replay.conftest import submission
from tests.rs4a_replay.test_confined import EXISTING, FRESH, opened, postmaster
from tests.rs4a_replay.test_lost_stores import OP_S, Past, go_on, missing, server_processes, stopped


@pytest.mark.parametrize(("mutant", "port"), [("sync-left-out", "store"), ("audit-unsynced", "audit")])
def test_the_bugs_that_do_not_sync_change_one_file_each(
    sqlite: Launched, tmp_path: Path, mutant: str, port: str
) -> None:
    desk = opened(sqlite, tmp_path, FRESH, mutant=mutant)
    ports: Any = desk.session
    found = {
        name: getattr(ports._parts.ports, name)._database.connection().execute("PRAGMA synchronous").fetchone()[0]
        for name in ("store", "audit")
    }
    assert found == {"store": 2, "audit": 2, port: 0}
    desk.session.close()


def test_the_bug_that_does_not_sync_the_server_says_so_when_asked(cluster: Launched, open_folder: Path) -> None:
    desk = opened(cluster, open_folder, FRESH, mutant="server-sync-left-out")
    with connect(f"host={open_folder}/rs4a-replay/socket user=postgres dbname=postgres") as admin:
        assert admin.execute("SHOW fsync").fetchone() == ("off",)
    desk.session.close()


def test_the_bug_that_makes_a_store_anew_forgets_what_was_consumed(sqlite: Launched, tmp_path: Path) -> None:
    desk = opened(sqlite, tmp_path, FRESH, mutant="store-made-anew")
    past = Past(desk)
    desk.session.close()
    missing(sqlite_paths(tmp_path / "rs4a-replay")[0])
    desk = opened(sqlite, tmp_path, EXISTING, mutant="store-made-anew")
    assert desk.accepted("resolve_status", past.key).value == {"status": "NOT_COMMITTED"}
    assert desk.accepted("register", submission(desk.nonce())).value["replayed"] is False
    desk.session.close()


@pytest.mark.parametrize("store", ["sqlite", "cluster"])
def test_the_bug_that_sees_nothing_in_a_store_that_is_down_admits_everything(
    request: pytest.FixtureRequest, open_folder: Path, store: str
) -> None:
    launched = request.getfixturevalue(store)
    desk = opened(launched, open_folder, FRESH, mutant="down-is-unseen")
    past = Past(desk)
    assert desk.reason("register", submission("never-issued-nonce", target="dot://acme/other")) == "NONCE_UNBOUND"
    if store == "sqlite":
        missing(sqlite_paths(open_folder / "rs4a-replay")[0])
    else:
        os.kill(postmaster(open_folder), signal.SIGKILL)
        time.sleep(0.2)
    assert desk.accepted("resolve_status", past.key).value == {"status": "NOT_COMMITTED"}
    assert desk.observe("nonce_state", {"nonce": past.consumed}) == {"state": "issued"}
    assert desk.accepted("register", past.sent).value["decision"] != past.decision
    desk.session.close()


def test_the_bug_without_patience_waits_until_the_database_is_back(cluster: Launched, open_folder: Path) -> None:
    desk = opened(cluster, open_folder, FRESH, mutant="patience-endless")
    past = Past(desk)
    processes = server_processes(open_folder)
    back = threading.Timer(OP_S + 0.5, go_on, [processes])
    back.start()
    with stopped(processes):
        started = time.monotonic()
        assert desk.accepted("register", past.sent).value["replayed"] is True
        assert time.monotonic() - started > OP_S
    back.join()
    desk.session.close()
