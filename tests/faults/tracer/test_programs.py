"""Whole programs: what they do in many threads and processes is recorded in one order, and replays byte for byte."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.conformance.faults import recording
from holdfast.conformance.faults.recording import Event, Mapped, Names, Sync, Write
from holdfast.conformance.faults.tracer import Injection
from tests.faults.tracer.traced import PATIENCE_S, run, trace, whole

pytestmark = pytest.mark.usefixtures("tracer")

SQLITE = """
import sqlite3
base = sqlite3.connect("kv.db", isolation_level=None)
base.execute("PRAGMA journal_mode={mode}").fetchall()
base.execute("PRAGMA synchronous=FULL")
base.execute("PRAGMA wal_autocheckpoint=5")
base.execute("CREATE TABLE kv (k, v)")
for each in range(8):
    base.execute("BEGIN")
    base.execute("INSERT INTO kv VALUES (?, ?)", (each, "x" * 3000))
    base.execute("INSERT INTO kv VALUES (?, ?)", (-each, "y"))
    base.execute("COMMIT")
    os.write(1, b".")
"""
# Raw mode: bytes in, bytes out.
ROCKS = """
from rocksdict import Options, Rdict, WriteBatch, WriteOptions
options = Options(raw_mode=True)
options.create_if_missing(True)
base = Rdict("rocks", options)
synced = WriteOptions()
synced.sync = True
base.set_write_options(synced)
for each in range(8):
    base[b"k%d" % each] = b"v" * 3000
    os.write(1, b".")
base.flush()
base.close()
"""


@pytest.mark.parametrize("mode", ["WAL", "DELETE", "TRUNCATE"])
def test_sqlite(mode: str, tmp_path: Path) -> None:
    done = whole(SQLITE.format(mode=mode), tmp_path)
    syncs = [one.number for one in done.recording.operations if isinstance(one.action, Sync)]
    events = [one.number for one in done.recording.operations if isinstance(one.action, Event)]
    assert len(events) == 8
    # Each answer comes after a sync of its own.
    for before, event in zip([0, *events], events, strict=False):
        assert any(before < sync < event for sync in syncs)
    if mode == "WAL":
        assert any(isinstance(action, Mapped) for action in done.actions)


def test_sqlite_killed_anywhere(tmp_path: Path) -> None:
    for point in (20, 57):
        (tmp_path / str(point)).mkdir()
        done = run(SQLITE.format(mode="WAL"), tmp_path / str(point), Injection(kill=point))
        assert (done.recording.ending.fired, done.differences) == (True, ())
        operations = done.recording.operations
        # What a map held at the kill may come behind.
        assert all(isinstance(one.action, Mapped) for one in operations[point - 1 :])


def test_rocksdb(tmp_path: Path) -> None:
    pytest.importorskip("rocksdict")
    folder = next(path for path in sys.path if path.endswith("site-packages"))
    done = whole(f"sys.path.append({folder!r})\n" + ROCKS, tmp_path)
    assert len([one for one in done.recording.operations if isinstance(one.action, Event)]) >= 8
    assert any(isinstance(action, Names) for action in done.actions)


def test_threads_write_one_at_a_time(tmp_path: Path) -> None:
    source = """
fd = make("shared", flags=os.O_APPEND)
def work(name):
    for each in range(20):
        os.write(fd, b"%s%02d\\n" % (name, each))
        os.close(make(b"%s%d" % (name, each), b"own"))
        if each % 3 == 0: os.rename(b"%s%d" % (name, each), name)
threads = [threading.Thread(target=work, args=(name,)) for name in (b"a", b"b", b"c")]
for one in threads: one.start()
for one in threads: one.join()
"""
    done = whole(source, tmp_path)
    shared = [one.offset for one in done.actions if isinstance(one, Write) and one.file == 1]
    assert shared == list(range(0, 240, 4))
    assert len({one.task for one in done.recording.operations}) == 4
    assert [one.number for one in done.recording.operations] == list(range(1, len(done.recording.operations) + 1))


def test_processes_of_every_kind_are_followed(tmp_path: Path) -> None:
    source = """
fd = make("shared", b"parent")
child = os.fork()
if not child:
    os.write(fd, b" child")
    os.execv("/bin/sh", ["sh", "-c", "echo sub > sub; (echo deep > deep); cat shared > copy"])
os.waitpid(child, 0)
subprocess.run(["cp", "shared", "again"], check=True)
"""
    done = whole(source, tmp_path)
    assert {path.name for path in done.workdir.iterdir()} == {"shared", "sub", "deep", "copy", "again"}
    assert len({one.task for one in done.recording.operations}) == 5


def test_processes_that_are_killed_in_the_middle_of_a_call(tmp_path: Path) -> None:
    source = """
def work(name):
    for each in range(10**6):
        fd = make("%s%d" % (name, each % 4), bytes(20000), os.O_APPEND)
        os.ftruncate(fd, 5000)
        m = mmap.mmap(fd, 5000); m[each % 5000] = 1; m.close()
        os.close(fd)
        os.rename("%s%d" % (name, each % 4), "%s" % name)
for each in range(12):
    child = os.fork()
    if not child:
        threading.Thread(target=work, args=("t%d" % each,), daemon=True).start()
        work("m%d" % each)
    time.sleep(0.02 + each % 5 / 300)
    os.kill(child, 9)
    os.waitpid(child, 0)
"""
    done = whole(source, tmp_path)
    assert len(done.actions) > 100


def test_a_map_is_inherited_and_outlives_its_descriptor(tmp_path: Path) -> None:
    source = """
fd = make("a", bytes(4096))
m = mmap.mmap(fd, 4096)
os.close(fd)
child = os.fork()
if not child:
    m[7] = 7
    os._exit(0)
os.waitpid(child, 0)
os.write(1, b"!")
"""
    done = whole(source, tmp_path)
    assert any(isinstance(action, Mapped) for action in done.actions)


def test_a_child_that_outlives_its_parent_is_seen_to_its_end(tmp_path: Path) -> None:
    script = "(sleep 0.3; echo late > late) > /dev/null & exit 4"
    done = trace(["sh", "-c", script], tmp_path)
    assert (done.status, done.recording.ending.status, done.differences) == (4, 4, ())
    assert (done.workdir / "late").read_text() == "late\n"


def test_a_program_ends_as_it_would_alone(tmp_path: Path) -> None:
    assert trace(["sh", "-c", "kill -TERM $$"], tmp_path).status == -signal.SIGTERM
    none = trace(["no-such-program"], tmp_path)
    assert (none.status, none.recording.ending.status) == (127, 127)
    assert "no-such-program" in none.errors


def test_pipes_are_the_program_s_own(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    source = "line = sys.stdin.readline(); os.write(1, line.encode()); os.close(1); sys.stdin.read()"
    argv = Injection().argv(tmp_path / "recording", work, [sys.executable, "-S", "-c", "import os, sys\n" + source])
    with subprocess.Popen(argv, cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tracer:
        assert tracer.stdin is not None
        assert tracer.stdout is not None
        before = time.monotonic_ns()
        tracer.stdin.write(b"hello\n")
        tracer.stdin.flush()
        assert tracer.stdout.readline() == b"hello\n"
        after = time.monotonic_ns()
        # The program has closed its output but runs: the tracer must not hold it open.
        assert tracer.stdout.read() == b""
        assert tracer.poll() is None
        tracer.stdin.close()
        assert tracer.wait(PATIENCE_S) == 0
    (said,) = recording.read(tmp_path / "recording").operations
    assert isinstance(said.action, Event)
    assert before <= said.at <= after


def test_a_stopped_program_stays_stopped(tmp_path: Path) -> None:
    script = "(sleep 0.2; echo on; kill -CONT $$) & kill -STOP $$; echo went"
    done = trace(["sh", "-c", script], tmp_path)
    assert (done.status, done.output) == (0, b"on\nwent\n")


def test_what_cannot_be_traced_fails_with_a_reason(tmp_path: Path) -> None:
    argv = Injection().argv(tmp_path / "recording", tmp_path / "absent", ["true"])
    done = subprocess.run(argv, capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 125
    assert b"absent" in done.stderr
