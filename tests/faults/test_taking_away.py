"""What the layers take away with: files, locks, mounts and processes, each by itself."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from holdfast.conformance.faults import mounts, stored
from holdfast.conformance.faults.locks import Hold, locked
from holdfast.conformance.faults.mounts import Disk
from holdfast.conformance.faults.probe import mounting
from holdfast.conformance.faults.processes import Marked, environment_of
from holdfast.conformance.faults.stored import Stored
from tests.conftest import missing
from tests.faults.stores.catalogue import ENVIRONMENT
from tests.pace import busy

_PATIENCE_S = 20.0


@pytest.fixture
def store(tmp_path: Path) -> Stored:
    folder, base = tmp_path / "work", tmp_path / "base"
    for place in (folder, base):
        (place / "inner").mkdir(parents=True)
        (place / "settings").write_bytes(b"as before" * 10)
        (place / "old").write_bytes(b"1" * 50)
    (folder / "old").write_bytes(b"2" * 50)
    (folder / "large").write_bytes(bytes(range(256)) * 40)
    (folder / "inner" / "small").write_bytes(b"some text")
    (folder / "empty").touch()
    (folder / "log.scratch").write_bytes(b"no promise")
    (folder / "link").symlink_to("large")
    with sqlite3.connect(folder / "facts.db") as db:
        db.execute("CREATE TABLE fact (name TEXT)")
    db.close()
    return stored.stored(folder, base, ("*.scratch",), 0)


def test_the_store_is_what_the_work_changed_or_made_and_then_the_rest(store: Stored) -> None:
    assert set(store.sizes) == {"settings", "old", "large", "inner/small", "empty", "facts.db"}
    # By size; what the work did not touch comes last, what is empty not at all.
    assert store.chosen == ("large", "facts.db", "old", "inner/small", "settings")


def test_files_are_taken_away_alone_and_all_at_once(store: Stored) -> None:
    for variants in (stored.missing(store), stored.foreign(store), stored.corrupt(store, 0)):
        taken = [one.files for one in variants]
        assert [len(files) for files in taken] == [5, 1, 1, 1, 1, 1]
        assert set(taken[0]) == set(store.chosen)
    assert len(list(stored.truncated(store))) == 12


def test_a_variant_does_what_it_says_and_can_be_undone(store: Stored, tmp_path: Path) -> None:
    def contents(folder: Path) -> dict[str, bytes]:
        return {name: (folder / name).read_bytes() for name in store.sizes if (folder / name).exists()}

    every = [*stored.missing(store), *stored.truncated(store), *stored.corrupt(store, 1), *stored.foreign(store)]
    for number, variant in enumerate([*every, *stored.damages(store, 1)]):
        folder = tmp_path / f"copy-{number}"
        stored_before = contents(store.folder)
        subprocess.run(["cp", "-a", store.folder, folder], check=True)
        variant.apply(folder)
        assert (contents(folder) != stored_before) == variant.changes(store.folder), variant.text
        variant.undo(folder, store.folder)
        assert contents(folder) == stored_before, variant.text


def test_garbage_and_damage_are_drawn_from_the_seed(store: Stored) -> None:
    first, again, other = ([one.text for one in stored.damages(store, seed)] for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert {text.split()[0] for text in first} >= {"bit", "bytes", "large"}
    (one, same), (another, _) = (
        [next(iter(stored.corrupt(store, seed))).change(b"x" * 5000) for _ in range(2)] for seed in (1, 2)
    )
    assert one == same != another
    assert one is not None
    assert len(one) == 5000
    assert one.endswith(b"x" * (5000 - 4096))


def test_a_foreign_file_is_of_another_format(store: Stored, tmp_path: Path) -> None:
    replaced = next(iter(stored.foreign(store))).change
    database = replaced((store.folder / "facts.db").read_bytes())
    assert database is not None
    (tmp_path / "other.db").write_bytes(database)
    with sqlite3.connect(tmp_path / "other.db") as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("measurement",)]
    db.close()
    text = replaced(b"\x00" * 9000)
    assert text is not None
    assert len(text) == 9000
    assert text.startswith(b"This file belongs to something else")


def test_a_store_without_a_byte_looks_like_none(store: Stored) -> None:
    every, alone = list(stored.missing(store))[:2]
    assert store.empty_without(every)
    assert not store.empty_without(alone)
    cut, half = list(stored.truncated(store))[:2]
    assert store.empty_without(cut)
    assert not store.empty_without(half)
    base = store.folder.parent / "base"
    assert cut.empties(store.folder, base)
    assert not half.empties(store.folder, base)
    assert not cut.empties(store.folder, None)


def test_what_another_process_is_about_to_write_can_be_read_and_not_written(tmp_path: Path) -> None:
    path, other = tmp_path / "database", tmp_path / "file"
    other.write_bytes(b"1")
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as mine:
        mine.execute("CREATE TABLE t (x)")
        with locked([path, other], Hold.WRITER) as count:
            assert count == 1
            assert mine.execute("SELECT count(*) FROM t").fetchone() == (0,)
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                mine.execute("INSERT INTO t VALUES (1)")
        mine.execute("INSERT INTO t VALUES (1)")


def test_both_kinds_of_locks_are_held_by_another_process_and_let_go(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"1")
    with path.open("r+b") as file:
        with locked([path]) as count:
            assert count == 1
            with pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with pytest.raises(OSError, match="Resource temporarily") as raised:
                fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 1 << 31)
            assert raised.value.errno in (errno.EACCES, errno.EAGAIN)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_what_somebody_holds_already_is_left_out(tmp_path: Path) -> None:
    path, mine = tmp_path / "file", tmp_path / "mine"
    for one in (path, mine):
        one.write_bytes(b"1")
    with path.open("r+b") as file, mine.open("r+b") as other:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 100)
        fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with locked([path, mine, tmp_path / "gone"]) as count:
            assert count == 1
            for start in (99, 110):
                with pytest.raises(BlockingIOError):
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, start)
    with pytest.raises(OSError, match=r"expected the number of files.*No such file"), locked([tmp_path / "gone"]):
        pass


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    """A work directory, on a machine where one can be mounted."""
    if unable := mounting():
        missing(unable)
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def _under(disk: Disk, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    argv = [*mounts.argv(disk, folder, folder.parent / "mark", 16384), *command]
    return subprocess.run(argv, capture_output=True, text=True, timeout=busy(_PATIENCE_S), check=False)


@pytest.mark.parametrize(
    ("disk", "script", "there", "status", "said", "error", "left"),
    [
        (
            Disk.READ_ONLY,
            "cat there; id -u; echo 1 > new",
            6,
            2,
            f"before{os.getuid()}\n",
            "Read-only file",
            {"there": 6},
        ),
        (Disk.AS_IT_IS, "echo 1 > new", 6, 0, "", "", {"there": 6, "new": 2}),
        (
            Disk.SMALL,
            "cat there; rm there; head -c 99999 /dev/zero > new; exit 7",
            6,
            7,
            "before",
            "No space left on device",
            {"new": 16384},
        ),
        # A disk that is too small for what there is is none.
        (Disk.SMALL, "echo ran", 30000, 125, "", "mounts: ", {"there": 30000}),
    ],
)
def test_a_command_meets_its_disk_and_leaves_what_it_could_write(
    disk: Disk, script: str, there: int, status: int, said: str, error: str, left: dict[str, int], mounted: Path
) -> None:
    (mounted / "there").write_text("before".ljust(there, "."))
    done = _under(disk, mounted, "/bin/sh", "-c", f"cd {mounted}; {script}")
    assert (done.returncode, done.stdout) == (status, said)
    assert error in done.stderr
    assert {one.name: one.stat().st_size for one in mounted.iterdir()} == left
    assert (mounted.parent / "mark").exists() is (status != 125)
    # Behind it there is no mount.
    (mounted / "new").touch()


def test_a_command_that_is_not_there_is_told(mounted: Path) -> None:
    done = _under(Disk.READ_ONLY, mounted, "/nowhere/store")
    assert done.returncode == 127
    assert "/nowhere/store: No such file" in done.stderr


@pytest.mark.parametrize(
    ("disk", "said", "left"),
    [(Disk.READ_ONLY, "Read-only file system", 6), (Disk.SMALL, "No space left on device", 4096)],
)
def test_it_takes_no_root(disk: Disk, said: str, left: int) -> None:
    if os.geteuid() or not (setpriv := shutil.which("setpriv")):
        pytest.skip("everything here is done without root, or there is no setpriv")
    unprivileged = "65534"
    # Not below a folder that only root may pass.
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as place:
        folder = Path(place, "work")
        folder.mkdir()
        (folder / "there").write_text("before")
        for one in (Path(place), folder, folder / "there"):
            os.chown(one, int(unprivileged), int(unprivileged))
        script = 'id -u; head -c 9999 /dev/zero > "$1/there"'
        argv = [*mounts.argv(disk, folder, Path(place, "mark"), 4096), "/bin/sh", "-c", script, "sh", str(folder)]
        become = [setpriv, "--reuid", unprivileged, "--regid", unprivileged, "--clear-groups"]
        done = subprocess.run(
            [*become, *argv], capture_output=True, text=True, timeout=busy(_PATIENCE_S), check=False, env=ENVIRONMENT
        )
        if "No module named" in done.stderr or "Permission denied" in done.stderr:
            pytest.skip(f"this code is not for others to read: {done.stderr}")
        assert done.stdout == f"{unprivileged}\n"
        assert said in done.stderr
        assert (folder / "there").stat().st_size == left


def test_a_small_disk_ends_with_what_the_command_left_running(mounted: Path) -> None:
    script = f'{sys.executable} -c "import os, time; os.setsid(); time.sleep(60)" & echo $!; sleep 0.3'
    done = _under(Disk.SMALL, mounted, "/bin/sh", "-c", f"({script}) > {mounted}/pid")
    assert done.returncode == 0
    assert not psutil.pid_exists(int((mounted / "pid").read_text()))


def test_a_command_that_is_told_to_end_still_hands_back(mounted: Path) -> None:
    mark = mounted.parent / "mark"
    script = 'echo 1 > "$1/new"; echo ready; exec sleep 60'
    argv = [*mounts.argv(Disk.SMALL, mounted, mark, 16384), "/bin/sh", "-c", script, "sh", str(mounted)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.terminate()
        assert child.wait(busy(_PATIENCE_S)) == 128 + signal.SIGKILL
    assert (mounted / "new").exists()
    assert mark.exists()


# Each leaves a process that sleeps: a child, one that left its session and parent, one that emptied its environment
# as well, and one that did all of that and works in the folder.
_SLEEP = "import time; time.sleep(60)"
_DAEMON = "['sh', '-c', 'setsid \"$0\" -c \"$1\" & exit 0', sys.executable, " + f"{_SLEEP!r}]"
HIDING = {
    "a child": f"subprocess.Popen([sys.executable, '-c', {_SLEEP!r}])",
    "a daemon": f"subprocess.Popen({_DAEMON}).wait()",
    "a child without the mark": f"subprocess.Popen([sys.executable, '-c', {_SLEEP!r}], env={{}})",
    "a daemon without the mark": (
        f"subprocess.Popen({_DAEMON}, env={{'PATH': os.environ['PATH']}}, cwd=sys.argv[1]).wait()"
    ),
}


@pytest.mark.parametrize("text", HIDING.values(), ids=HIDING)
def test_no_process_can_hide_by_leaving_its_parent(text: str, tmp_path: Path) -> None:
    program = f"import os, subprocess, sys\n{text}\nprint('ready', flush=True)\nsys.stdin.read()"
    marked = Marked(tmp_path)
    argv = [*marked.under(), sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            (found,) = marked.dependencies()
            assert found.pid != child.pid
            assert marked.stop() == 1
            assert found.status() == psutil.STATUS_STOPPED
            marked.go_on()
            until = time.monotonic() + busy(_PATIENCE_S)
            while found.status() == psutil.STATUS_STOPPED and time.monotonic() < until:
                time.sleep(0.01)
            assert found.status() != psutil.STATUS_STOPPED
            assert not marked.one_reads_the_requests() or text == HIDING["a child"] or "env={}" in text
            assert marked.kill() == 1
            assert marked.dependencies() == []
            assert child.poll() is None
        finally:
            marked.kill()
            child.kill()


def test_a_process_that_becomes_another_program_keeps_its_mark() -> None:
    again = 'i=$1; [ $i -gt 0 ] && exec sh -c "$0" "$0" $((i-1)); echo done; exec sleep 60'
    with subprocess.Popen(["sh", "-c", again, again, "2000"], stdout=subprocess.PIPE, env={"MARK": "yes"}) as child:
        try:
            assert child.stdout is not None
            for _ in range(1000):
                assert "MARK=yes" in environment_of(child.pid)
        finally:
            child.kill()


def test_a_process_without_variables_has_none() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE, env={}) as child:
        try:
            assert [one for one in environment_of(child.pid) if one] == []
        finally:
            child.kill()


def test_nothing_else_is_struck(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", _SLEEP], cwd=tmp_path) as other:
        try:
            marked = Marked(tmp_path)
            assert marked.dependencies() == []
            argv = [*marked.under(), sys.executable, "-c", "print('ready', flush=True); input()"]
            with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
                assert child.stdout is not None
                child.stdout.readline()
                # It worked here before the implementation did.
                assert marked.dependencies() == []
                assert marked.kill() == 0
                child.kill()
            assert other.poll() is None
        finally:
            other.kill()
