"""A kill comes before operation N and leaves nothing behind; torn and short writes and errors hit what they should."""

from __future__ import annotations

import errno
import signal
import subprocess
import time
from pathlib import Path

import pytest

from holdfast.conformance.faults import recording
from holdfast.conformance.faults.recording import Event, Failed, Operation, Recording, Sync, Write
from holdfast.conformance.faults.tracer import Injection
from tests.faults.tracer.traced import PATIENCE_S, program, run, whole
from tests.hostile.verify import processes_of
from tests.pace import busy

pytestmark = pytest.mark.usefixtures("tracer")

# A name, a write, a sync, an event, a rename, another event: operations 1 to 6.
STORE = """
fd = make("a", b"12345678")
os.fsync(fd)
os.write(1, b"1")
os.rename("a", "b")
os.write(1, b"2")
"""
SAID = (b"", b"", b"", b"", b"1", b"1", b"12")
TEARDOWN_S = 5.0


def without_times(whole: Recording, count: int) -> list[Operation]:
    """The first operations, as far as they are the same in every run: channels have the numbers of pipes."""
    same = []
    for one in whole.operations[:count]:
        action = one.action._replace(channel="") if isinstance(one.action, Event) else one.action
        same.append(Operation(one.number, 0, 0, one.call, action))
    return same


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """The whole run of STORE."""
    done = whole(STORE, tmp_path_factory.mktemp("untouched"))
    assert len(done.recording.operations) == 6
    return done.recording


@pytest.mark.parametrize("point", range(1, 7))
def test_a_kill_leaves_the_state_before_the_point(point: int, untouched: Recording, tmp_path: Path) -> None:
    done = run(STORE, tmp_path, Injection(kill=point))
    assert (done.status, done.recording.ending.status, done.recording.ending.fired) == (-9, -9, True)
    assert without_times(done.recording, 9) == without_times(untouched, point - 1)
    assert done.differences == ()
    assert done.output == SAID[point - 1]


DATABASE = """
import sqlite3
db = sqlite3.connect("facts.db", timeout=0, isolation_level=None)
db.execute("PRAGMA journal_mode = MODE").fetchone()
db.execute("CREATE TABLE t (x)")
db.execute("INSERT INTO t VALUES (1)")
os.close(os.open("../armed", os.O_CREAT))
for x in (2, 3):
    try:
        db.execute("INSERT INTO t VALUES (?)", (x,))
    except sqlite3.OperationalError as error:
        print(error)
print(db.execute("SELECT group_concat(x) FROM t").fetchone()[0], flush=True)
"""


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_program_gets_the_lock_of_a_database_once_and_can_read_it_on(mode: str, tmp_path: Path) -> None:
    fault = Injection(overtake=(str(tmp_path / "work" / "facts.db"), f"{tmp_path}/armed"))
    done = run(DATABASE.replace("MODE", mode), tmp_path, fault)
    assert done.output == b"database is locked\n1,2\n", done.errors
    assert done.recording.ending.fired


def test_a_log_whose_index_is_made_first_leaves_the_program_its_lock(tmp_path: Path) -> None:
    fault = Injection(overtake=(str(tmp_path / "work" / "facts.db"), f"{tmp_path}/armed"))
    again = (
        'db.close()\nos.close(os.open("../armed", os.O_CREAT))\ndb = sqlite3.connect("facts.db", isolation_level=None)'
    )
    source = DATABASE.replace("MODE", "WAL").replace('os.close(os.open("../armed", os.O_CREAT))', again)
    done = run(source.replace("isolation_level=None)\nfor", "timeout=0, isolation_level=None)\nfor"), tmp_path, fault)
    assert done.output == b"database is locked\n1,2\n", done.errors


def test_a_point_behind_the_end_is_not_reached(tmp_path: Path) -> None:
    done = whole(STORE, tmp_path, Injection(kill=7))
    assert not done.recording.ending.fired


@pytest.mark.parametrize(
    ("write", "half"),
    [
        ('os.write(make("a"), b"123456")', b"123"),
        ('os.pwrite(make("a"), b"123456", 0)', b"123"),
        ('os.writev(make("a"), [b"123456"])', b"123"),
        ('os.writev(make("a"), [b"12", b"34567", b"89"])', b"1234"),
        ('os.pwritev(make("a"), [b"1", b"234"], 0)', b"12"),
        ('fd = os.open(__import__("sys").executable, 0); os.sendfile(make("a"), fd, 1, 2)', b"E"),
    ],
)
class TestHalves:
    """A write of every kind can be done by half."""

    def test_torn(self, write: str, half: bytes, tmp_path: Path) -> None:
        done = run(write, tmp_path, Injection(kill=2, torn=True))
        assert (done.status, done.recording.ending.fired) == (-9, True)
        assert done.actions[1:] == [Write(1, 0, half)]
        assert done.differences == ()
        assert (done.workdir / "a").read_bytes() == half

    def test_short(self, write: str, half: bytes, tmp_path: Path) -> None:
        # The program gets the number of bytes done, and its input is unchanged.
        *before, last = write.split("; ")
        done = whole("\n".join([*before, f"print({last})"]), tmp_path, Injection(short=1))
        assert done.recording.ending.fired
        assert done.actions[1:] == [Write(1, 0, half)]
        assert int(done.output) == len(half)


def test_torn_at_what_is_no_write_is_a_kill(untouched: Recording, tmp_path: Path) -> None:
    done = run(STORE, tmp_path, Injection(kill=3, torn=True))
    assert without_times(done.recording, 9) == without_times(untouched, 2)


def test_a_short_write_is_one_and_the_next_is_whole(tmp_path: Path) -> None:
    source = 'fd = make("a", b"1"); os.writev(fd, [b"2345"]); os.writev(fd, [b"67"])'
    done = whole(source, tmp_path, Injection(short=2))
    assert done.actions[1:] == [Write(1, 0, b"1"), Write(1, 1, b"23"), Write(1, 3, b"67")]


def test_behind_half_of_a_write_the_rest_is_refused_once(tmp_path: Path) -> None:
    source = """
fd = make("a")
print(os.write(fd, b"1234"))
try: os.write(fd, b"34")
except OSError as error: print(errno.errorcode[error.errno])
print(os.write(fd, b"34"), flush=True)
"""
    done = whole(source, tmp_path, Injection(short=2, error=errno.ENOSPC, at=3, once=True))
    assert done.output.split() == [b"2", b"ENOSPC", b"2"]


TRIES = """
def attempt(what):
    try: what()
    except OSError as error: print(errno.errorcode[error.errno])
    else: print("done")
    sys.stdout.flush()
fd = make("a")
attempt(lambda: os.write(fd, b"12"))
attempt(lambda: os.fsync(fd))
attempt(lambda: os.rename("a", "b"))
"""


def test_an_error_from_a_point_on_spares_events(tmp_path: Path) -> None:
    done = whole(TRIES, tmp_path, Injection(error=errno.ENOSPC, at=2))
    assert done.output.split() == [b"ENOSPC"] * 3
    assert done.recording.ending.fired
    assert done.actions[1:] == [Failed(28), Sync(1, error=28), Failed(28)]


def test_an_error_once(tmp_path: Path) -> None:
    # Operation 3 is the event that says how the write went, so the sync is the first on files there or later.
    done = whole(TRIES, tmp_path, Injection(error=errno.EIO, at=3, once=True))
    assert done.output.split() == [b"done", b"EIO", b"done"]
    assert Sync(1, error=errno.EIO) in done.actions


FAMILY = """
make("a", b"1")
if not os.fork():
    os.setsid()
    if os.fork(): os._exit(0)
    threading.Thread(target=time.sleep, args=(60,)).start()
    time.sleep(60)
child = subprocess.Popen(["sleep", "60"])
threading.Thread(target=time.sleep, args=(60,)).start()
time.sleep(0.2)
"""


def test_nothing_is_left_of_a_whole_family(tmp_path: Path) -> None:
    done = run(FAMILY + 'make("b")', tmp_path, Injection(kill=3))
    assert (done.status, done.recording.ending.fired, done.differences) == (-9, True, ())
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_end_of_the_tracer_is_the_end_of_all(number: int, tmp_path: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "recording"
    work.mkdir()
    argv = Injection().argv(out, work, program(FAMILY + 'os.write(1, b"!"); time.sleep(60)'))
    with subprocess.Popen(argv, cwd=work, stdout=subprocess.PIPE) as tracer:
        assert tracer.stdout is not None
        assert tracer.stdout.read(1) == b"!"
        assert len(processes_of(tmp_path)) >= 4
        tracer.send_signal(number)
        assert tracer.wait(PATIENCE_S) == -signal.SIGKILL
    deadline = time.monotonic() + busy(TEARDOWN_S)
    while processes_of(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert processes_of(tmp_path) == []
    if number == signal.SIGKILL:
        with pytest.raises(recording.RecordingError, match="did not finish"):
            recording.read(out)
    else:
        assert recording.read(out).ending.status == -signal.SIGKILL
