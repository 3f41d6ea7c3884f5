"""PostgreSQL in the session's workdir: what is there opens again, wherever it was copied, however its server went."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from holdfast.reference_impl.postgres import connect
from holdfast.reference_impl.rs4a_replay.entry import implementation
from holdfast.reference_impl.session import OpenError, OpenRequest, StateWanted, SurfaceWanted
from holdfast.servers.serving import Launched
from holdfast.specs.schema import explain, published_validator
from tests import warm
from tests.rs4a_replay.conftest import NOW, WINDOW, Desk, Pipe, opening, submission
from tests.rs4a_replay.test_launcher import is_running

FRESH, EXISTING = StateWanted.FRESH, StateWanted.EXISTING


def opened(
    launched: Launched,
    workdir: Path,
    state: StateWanted,
    *,
    surface: SurfaceWanted = SurfaceWanted.READY,
) -> Desk:
    workdir.mkdir(exist_ok=True)
    return Desk(implementation().open(OpenRequest(state, surface, workdir, NOW, launched.ready.config)))


def postmaster(workdir: Path) -> int:
    return int((workdir / "rs4a-replay" / "data" / "postmaster.pid").read_text(encoding="ascii").split()[0])


def await_end(pid: int) -> None:
    deadline = time.monotonic() + 60
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(pid)


def copied(workdir: Path, name: str) -> Path:
    """As the kit rebuilds a state of the disk: everything is its own, nothing is readable for others, no sockets."""
    target = workdir.with_name(name)
    shutil.copytree(workdir, target, ignore=lambda _, names: [each for each in names if each == ".s.PGSQL.5432"])
    for path in target.rglob("*"):
        os.lchown(path, os.geteuid(), os.getegid())
        path.chmod(0o700 if path.is_dir() else 0o600)
    return target


@pytest.fixture
def workdir(open_folder: Path) -> Path:
    return open_folder / "w"


def test_a_copy_from_under_a_running_server_opens_while_that_server_runs(cluster: Launched, workdir: Path) -> None:
    """Its postmaster.pid names a living server, which is another one's."""
    desk = opened(cluster, workdir, FRESH)
    desk.accepted("register", submission(desk.nonce()))
    with connect(f"host={workdir}/rs4a-replay/socket user=postgres dbname=postgres") as admin:
        admin.execute("CHECKPOINT")
    other = opened(cluster, copied(workdir, "x"), EXISTING)
    assert other.counts() == (1, 1)
    assert postmaster(workdir.with_name("x")) != postmaster(workdir)
    assert desk.accepted("register", submission(desk.nonce(), target="dot://acme/other")).value["replayed"] is False
    assert other.counts() == (1, 1)
    other.session.close()
    desk.session.close()


def test_after_a_killed_server_the_store_recovers_though_its_number_belongs_to_somebody_else(
    cluster: Launched, workdir: Path
) -> None:
    desk = opened(cluster, workdir, FRESH)
    desk.accepted("register", submission(desk.nonce()))
    os.kill(postmaster(workdir), signal.SIGKILL)
    await_end(postmaster(workdir))
    desk.session.close()
    bystander = opened(cluster, workdir.with_name("bystander"), FRESH)
    stale = workdir / "rs4a-replay" / "data" / "postmaster.pid"
    lines = stale.read_text(encoding="ascii").splitlines(keepends=True)
    stale.write_text("".join([f"{postmaster(workdir.with_name('bystander'))}\n", *lines[1:]]), encoding="ascii")
    desk = opened(cluster, workdir, EXISTING)
    assert desk.counts() == (1, 1)
    desk.session.close()
    assert bystander.counts() == (0, 0)
    bystander.session.close()


def test_a_server_that_somebody_else_runs_on_the_folder_is_not_started_over(cluster: Launched, workdir: Path) -> None:
    desk = opened(cluster, workdir, FRESH)
    server = postmaster(workdir)
    # A process without our lock may still run a server there.
    for name in ("owner.lock", "server.lock"):
        (workdir / "rs4a-replay" / name).unlink()
    with pytest.raises(OpenError, match=f"process {server} is one"):
        opened(cluster, workdir, EXISTING)
    assert desk.counts() == (0, 0)
    desk.session.close()


def test_a_second_session_on_the_folder_shares_the_server_and_leaves_it_running(
    cluster: Launched, workdir: Path
) -> None:
    first = opened(cluster, workdir, FRESH)
    second = opened(cluster, workdir, EXISTING)
    nonce = first.nonce()
    assert second.accepted("register", submission(nonce)).value["replayed"] is False
    second.session.close()
    assert first.counts() == (1, 1)
    with pytest.raises(OpenError, match="another session has it"):
        opened(cluster, workdir, FRESH)
    first.session.close()


def test_half_a_copy_of_the_template_is_no_cluster(cluster: Launched, workdir: Path) -> None:
    folder = workdir / "rs4a-replay"
    (folder / "unfinished").mkdir(parents=True)
    with pytest.raises(OpenError, match="found none; open it `fresh` first"):
        opened(cluster, workdir, EXISTING)
    desk = opened(cluster, workdir, FRESH)
    assert desk.counts() == (0, 0)
    assert not (folder / "unfinished").exists()
    desk.session.close()


@pytest.mark.parametrize("store", ["sqlite", "cluster"])
def test_a_workdir_may_be_called_anything(request: pytest.FixtureRequest, open_folder: Path, store: str) -> None:
    launched = request.getfixturevalue(store)
    workdir = open_folder / "a 'b'; \"c\" ?d=%41#"
    for state in (FRESH, EXISTING):
        desk = opened(launched, workdir, state)
        desk.accepted("register", submission(desk.nonce(), target=f"dot://acme/{state.value}"))
        desk.session.close()
    assert sorted(each.name for each in open_folder.iterdir()) == [workdir.name]


def test_a_path_too_long_for_a_socket_is_said_with_what_to_do(cluster: Launched, open_folder: Path) -> None:
    with pytest.raises(OpenError, match="use a workdir with a shorter path"):
        opened(cluster, open_folder / ("x" * 90), FRESH)
    with pytest.raises(OpenError, match="without commas"):
        opened(cluster, open_folder / "x,y", FRESH)


@pytest.mark.skipif(os.geteuid() != 0, reason="without root the server runs as the user of the tests")
def test_a_closed_folder_above_the_workdir_is_named(cluster: Launched, tmp_path: Path) -> None:
    closed = next(folder for folder in reversed(tmp_path.parents) if not folder.stat().st_mode & 0o001)
    with pytest.raises(OpenError, match=f"chmod o.x {closed}"):
        opened(cluster, tmp_path / "w", FRESH)


def test_a_killed_adapter_leaves_no_server_and_all_that_it_acknowledged(
    cluster: Launched, workdir: Path, pipe: Pipe
) -> None:
    workdir.mkdir()
    assert pipe.open(workdir, cluster.ready.config)["outcome"] == "ok"
    issued = pipe.ask("call", method="issue_nonce", args={"binding": {"principal": "agent-1"}, "window": WINDOW})
    sent = submission(issued["value"]["nonce"])
    assert pipe.ask("call", method="register", args=sent)["outcome"] == "accepted"
    server = postmaster(workdir)
    pipe.process.kill()
    pipe.process.wait()
    # At once: the last processes of the server are awaited.
    desk = opened(cluster, workdir, EXISTING)
    assert not is_running(server)
    assert desk.counts() == (1, 1)
    desk.session.close()


@pytest.mark.parametrize("moment", [0, 3])
def test_an_adapter_killed_while_it_starts_its_server_leaves_none(
    cluster: Launched, workdir: Path, pipe: Pipe, moment: int
) -> None:
    workdir.mkdir()
    pipe.send("open", **opening(workdir, cluster.ready.config))
    data = workdir / "rs4a-replay" / "data"
    deadline = time.monotonic() + 60
    while not (data / "postmaster.pid").exists() and time.monotonic() < deadline:
        time.sleep(0.0005)
    time.sleep(0.004 * moment)
    pipe.process.kill()
    pipe.process.wait()
    desk = opened(cluster, workdir, EXISTING)
    servers = [
        Path(cwd).name
        for cwd in Path("/proc").glob("[0-9]*")
        if _works_in(cwd, data) and int(cwd.name) != postmaster(workdir) and _parent(cwd) != postmaster(workdir)
    ]
    assert servers == []
    assert desk.counts() == (0, 0)
    desk.session.close()


def _works_in(process: Path, folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return (process / "cwd").samefile(folder)
    return False


def _parent(process: Path) -> int:
    with contextlib.suppress(OSError):
        return int((process / "stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])
    return 0


def test_the_kit_asks_for_confined_stores_in_a_line_that_fits_its_schema(tmp_path: Path) -> None:
    from holdfast.servers.janitor import Janitor
    from holdfast.servers.launcher import Launcher
    from holdfast.servers.serving import Stores

    script = "import sys; open(sys.argv[1], 'w').write(sys.stdin.readline()); print('{\"config\": {}}', flush=True)"
    for stores in Stores:
        heard = tmp_path / stores.value
        with Janitor() as janitor:
            command = [sys.executable, "-c", script, str(heard)]
            launcher = Launcher(
                command, contract="rs4a-replay", folder=tmp_path, config={"a": "b"}, janitor=janitor, stores=stores
            )
            launcher.close()
        line = json.loads(heard.read_text(encoding="utf-8"))
        assert explain(published_validator("launcher-request"), line) is None
        assert line["confined"] is (stores is Stores.CONFINED)


def test_the_launcher_of_the_reference_makes_confined_stores_if_asked(open_folder: Path) -> None:
    wanted = {"contract": "rs4a-replay", "dir": str(open_folder), "config": {}, "confined": True}
    done = warm.cold(warm.REFERENCE, "launch", input=json.dumps(wanted) + "\n", check=True)
    ready = json.loads(done.stdout)
    assert explain(published_validator("launcher"), ready) is None
    assert set(ready["config"]) == {"store", "cluster", "writer"}
    assert ready["processes"] == []
    assert list(open_folder.iterdir()) == []
