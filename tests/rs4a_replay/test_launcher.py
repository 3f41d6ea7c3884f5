"""Launchers leave nothing behind, however they end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from holdfast.reference_impl.postgres import connect, with_database
from holdfast.reference_impl.rs4a_replay.entry import Rs4aReplay
from holdfast.reference_impl.session import OpenRequest, StateWanted, SurfaceWanted
from holdfast.servers.serving import Launched
from tests import warm
from tests.rs4a_replay.conftest import NOW, ROOT, Pipe


def wanted(folder: Path, **config: str) -> bytes:
    return json.dumps({"contract": "rs4a-replay", "dir": str(folder), "config": config}).encode() + b"\n"


def start(folder: Path, **config: str) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "holdfast.reference_impl", "launch"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(wanted(folder, **config))
    child.stdin.flush()
    return child, json.loads(child.stdout.readline())


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").split(")")[1].split()[0] != "Z"
    return False


@pytest.mark.parametrize("end", ["eof", pytest.param("SIGTERM", marks=pytest.mark.sweep), "SIGINT"])
@pytest.mark.parametrize("store", ["postgres", "sqlite"])
def test_a_launcher_takes_everything_down(store: str, end: str, tmp_path: Path) -> None:
    child, ready = start(tmp_path, store=store)
    assert all(is_running(pid) for pid in ready["processes"])
    assert all(Path(path).is_dir() for path in ready["paths"])
    if end != "eof":
        child.send_signal(getattr(signal, end))
    child.communicate(timeout=60)
    assert child.returncode == 0
    assert not any(is_running(pid) for pid in ready["processes"])
    assert list(tmp_path.iterdir()) == []


def test_the_server_dies_with_a_launcher_that_was_killed(tmp_path: Path) -> None:
    child, ready = start(tmp_path)
    child.kill()
    child.communicate()
    deadline = time.monotonic() + 60
    while any(is_running(pid) for pid in ready["processes"]) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(is_running(pid) for pid in ready["processes"])
    # The kit's janitor normally removes its folder; here the test must.
    for path in ready["paths"]:
        shutil.rmtree(path)


def test_on_a_server_of_somebody_else_only_what_was_made_is_dropped(postgres: Launched, tmp_path: Path) -> None:
    ours = conninfo_to_dict(postgres.ready.config["dsn"])["dbname"]
    server = with_database(postgres.ready.config["dsn"], "postgres")
    with connect(server) as connection:
        # The fixture's own sweeper makes and renames databases meanwhile.
        databases = f"SELECT datname FROM pg_database WHERE NOT starts_with(datname, '{ours}') ORDER BY 1"
        before = connection.execute(databases).fetchall()
        roles = connection.execute("SELECT rolname FROM pg_roles ORDER BY 1").fetchall()
        child, ready = start(tmp_path, dsn=server)
        workdir = tmp_path / "w"
        workdir.mkdir()
        config = {**ready["config"]}
        implementation = Rs4aReplay()
        implementation.open(OpenRequest(StateWanted.FRESH, SurfaceWanted.READY, workdir, NOW, config)).close()
        implementation.shut_down()
        child.communicate(timeout=60)
        assert child.returncode == 0
        assert "password" in ready["config"]["writer_dsn"]
        assert connection.execute(databases).fetchall() == before
        assert connection.execute("SELECT rolname FROM pg_roles ORDER BY 1").fetchall() == roles


def test_a_used_database_is_provisioned_again_before_it_is_handed_out(postgres: Launched, tmp_path: Path) -> None:
    implementation = Rs4aReplay()
    workdirs = [tmp_path / "one", tmp_path / "two"]
    for workdir in workdirs:
        workdir.mkdir()
        time.sleep(0.3)
        request = OpenRequest(StateWanted.FRESH, SurfaceWanted.READY, workdir, NOW, postgres.ready.config)
        session = implementation.open(request)
        state = getattr(session.call("state", {}), "value", None)
        assert state is not None
        assert not any(state.values())
        session.call("break_surface", {"how": "unreachable"})
        session.close()
        workdir.rmdir()
    implementation.shut_down()


def test_a_server_that_is_down_is_one_clear_line(tmp_path: Path) -> None:
    asked = wanted(tmp_path, dsn=f"host={tmp_path} password=hunter2").decode()
    done = warm.cold(warm.REFERENCE, "launch", input=asked)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "hunter2" not in done.stderr


@pytest.mark.parametrize("line", [b"", b"{}\n", b"no json\n", b'{"contract":"rs4a-replay","dir":"/tmp"}\n'])
def test_a_launcher_that_is_not_told_what_is_wanted_says_what_it_expected(line: bytes) -> None:
    done = warm.cold(warm.REFERENCE, "launch", input=line, text=False)
    assert done.returncode == 1
    assert done.stdout == b""
    assert b"expected one JSON line" in done.stderr


# The adapter as a process: protocol v1 over a real pipe, and nothing else on it.


@pytest.mark.parametrize(
    "line",
    [
        b"not json\n",
        b"[]\n",
        b'{"op":"bye"}\n',
        b'{"id":"1","id":"2","op":"bye"}\n',
        b'{"id":"1","op":"dance"}\n',
        b'{"id":"1","op":"call","method":"register","args":{}}\n',
        b'{"id":"1","op":"open","contract":"nope","state":"fresh","workdir":"/","clock":"2026-01-01T00:00:00Z"}\n',
        b'{"id":"1","op":"open","contract":"rs4a-replay","state":"fresh","workdir":"/nowhere","clock":"x"}\n',
        b'{"id":"1","op":"hello","protocol":2,"challenge":"c"}\n',
        b'"' + b"x" * (1 << 20) + b'"\n',
    ],
    ids=["text", "array", "no-id", "twice", "op", "no-session", "contract", "workdir", "protocol", "long"],
)
def test_a_request_that_makes_no_sense_is_a_fault_and_the_next_one_is_answered(pipe: Pipe, line: bytes) -> None:
    pipe.send_line(line)
    assert pipe.answer()["outcome"] == "fault"
    assert pipe.ask("hello", protocol=1, kit="k", challenge="c")["ok"]["challenge"] == "c"


@pytest.mark.parametrize("end", ["eof", "sigterm"])
def test_end_of_file_and_sigterm_end_it_cleanly(pipe: Pipe, sqlite: Launched, tmp_path: Path, end: str) -> None:
    pipe.open(tmp_path, sqlite.ready.config)
    if end == "sigterm":
        pipe.process.send_signal(signal.SIGTERM)
    out, log = pipe.process.communicate(timeout=60)
    assert (pipe.process.returncode, out, log) == (0, b"", b"")
