"""Data that no power loss of the model can reach is not proven. Data that only seems so raises no error."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.conformance.faults import helpers
from holdfast.conformance.faults.dependencies import Dependencies
from holdfast.conformance.faults.lines import puts
from holdfast.conformance.faults.probe import Probe
from holdfast.conformance.faults.recording import Ending, Life
from holdfast.conformance.faults.report import Layer, SweepReport
from holdfast.conformance.faults.sweep import Sweep
from tests.conftest import missing
from tests.faults.stores.catalogue import swept
from tests.faults.tracer.traced import run

pytestmark = pytest.mark.usefixtures("tracer")

# A store whose folder holds a pointer, written anew and synced for each operation, to what `keep` and `get` have.
_STORE = """
import json, mmap, os, socket, sys, uuid
where, folder = sys.argv[1], sys.argv[-1]
pointer = os.path.join(folder, "pointer")
{ways}
def point(text):
    with open(pointer + "~", "w") as stream:
        stream.write(text); stream.flush(); os.fsync(stream.fileno())
    os.rename(pointer + "~", pointer)
    handle = os.open(folder, os.O_RDONLY); os.fsync(handle); os.close(handle)
facts = get(open(pointer).read()) if os.path.exists(pointer) else {{}}
print("READY", flush=True)
for line in sys.stdin:
    words = line.split()
    if words == ["DUMP"]:
        print(json.dumps(facts), flush=True)
        continue
    facts |= {{words[1] + ".left": words[2], words[1] + ".right": words[2]}}
    name = uuid.uuid4().hex
    keep(name, facts); point(name)
    print("OK", flush=True)
"""
_INSIDE = """
def get(name): return json.load(open(f"{folder}/{name}"))
def keep(name, facts):
    with open(f"{folder}/{name}", "w") as stream:
        json.dump(facts, stream); stream.flush(); os.fsync(stream.fileno())
"""
_FILES = {
    "written": """
def get(name): return json.load(open(f"{where}/{name}"))
def keep(name, facts): open(f"{where}/{name}", "w").write(json.dumps(facts))
""",
    "renamed": """
def get(name): return json.load(open(f"{where}/{name}"))
def keep(name, facts):
    open(f"{where}/~", "w").write(json.dumps(facts)); os.rename(f"{where}/~", f"{where}/{name}")
""",
    "mapped": """
def opened(name):
    handle = os.open(f"{where}/{name}", os.O_RDWR | os.O_CREAT); os.ftruncate(handle, 4096)
    return mmap.mmap(handle, 4096)
def get(name): return json.loads(opened(name)[:].rstrip(b"\\0"))
def keep(name, facts): data = json.dumps(facts).encode(); opened(name)[: len(data)] = data
""",
    "moved_out_and_in": """
def get(name):
    os.rename(f"{where}/{name}", f"{folder}/back"); return json.load(open(f"{folder}/back"))
def keep(name, facts):
    open(f"{folder}/out", "w").write(json.dumps(facts)); os.rename(f"{folder}/out", f"{where}/{name}")
""",
}
_ASKED = """
def ask(name, facts):
    one = {connected}
    one.sendall(json.dumps([name, facts]).encode()); told = json.loads(one.recv(65536)); one.close()
    return told
def get(name): return ask(name, {{}})
keep = ask
"""
_UNIX = 'socket.socket(socket.AF_UNIX); one.connect("\\0" + where)'
_UDP = 'socket.socket(type=socket.SOCK_DGRAM); one.connect(("127.0.0.1", int(where)))'
# What asynchronous programs do: the connection is there later.
_TCP = """socket.socket(); one.setblocking(False)
    try: one.connect(("127.0.0.1", int(where)))
    except BlockingIOError: pass
    one.setblocking(True)"""
_PIPE = """
def ask(name, facts):
    os.mkfifo(f"{where}/{os.getpid()}")
    with open(f"{where}/ask", "w") as stream: stream.write(json.dumps([name, facts, f"{where}/{os.getpid()}"]) + "\\n")
    with open(f"{where}/{os.getpid()}") as stream: told = json.loads(stream.readline())
    os.unlink(f"{where}/{os.getpid()}")
    return told
def get(name): return ask(name, {})
keep = ask
"""

Make = Callable[..., Sweep]


@pytest.fixture
def sweep_of(tmp_path: Path) -> Iterator[Make]:
    """A function from what a store does, and where, to its sweep."""
    made: list[Sweep] = []
    parent = tmp_path / "work"
    parent.mkdir()

    def make(ways: str, where: str, *played: str) -> Sweep:
        command = (sys.executable, "-S", "-c", _STORE.format(ways=ways), where)
        made.append(swept(command, puts(3), patience=20, least=1, parent=parent, played=played))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def elsewhere(tmp_path: Path) -> str:
    """A folder outside of every work directory."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return str(folder)


def _serve(one: socket.socket) -> None:
    """A stranger that keeps facts in its memory, until its socket is closed."""
    kept: dict[str, dict[str, str]] = {}

    def answer(data: bytes) -> bytes:
        name, facts = json.loads(data)
        kept.setdefault(name, {}).update(facts)
        return json.dumps(kept[name]).encode()

    with suppress(OSError):
        while True:
            if one.type == socket.SOCK_DGRAM:
                data, sender = one.recvfrom(65536)
                if not data:
                    return
                one.sendto(answer(data), sender)
            else:
                with one.accept()[0] as client:
                    if data := client.recv(65536):
                        client.sendall(answer(data))


@pytest.fixture(params=["UNIX", "TCP", "UDP"])
def stranger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str, str]]:
    """How it is connected to, where, and how a report calls it."""
    kind = request.param
    name = f"holdfast-{os.getpid()}-{tmp_path.name}"
    one = socket.socket(
        socket.AF_UNIX if kind == "UNIX" else socket.AF_INET,
        socket.SOCK_DGRAM if kind == "UDP" else socket.SOCK_STREAM,
    )
    one.bind("\0" + name if kind == "UNIX" else ("127.0.0.1", 0))
    if kind != "UDP":
        one.listen()
    thread = threading.Thread(target=_serve, args=(one,))
    thread.start()
    where = name if kind == "UNIX" else str(one.getsockname()[1])
    told = f"the UNIX socket @{name}" if kind == "UNIX" else f"the {kind} address 127.0.0.1:{where}"
    yield {"UNIX": _UNIX, "TCP": _TCP, "UDP": _UDP}[kind], where, told
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
    thread.join()


def _not_proven(report: SweepReport, words: str) -> None:
    assert not report.clean
    assert (report.tried, report.findings) == (0, ())
    assert "may lie outside of its work directory" in report.unproven[0]
    assert words in report.unproven[0]


@pytest.mark.parametrize("way", list(_FILES))
def test_files_elsewhere_are_not_proven(way: str, sweep_of: Make, elsewhere: str) -> None:
    sweep = sweep_of(_FILES[way], elsewhere)
    for layer in (Layer.POWER, Layer.KILL, Layer.RECOVERY):
        _not_proven(sweep.trial(layer).report(0), f"the file {elsewhere}/")


# It does not run under the tracer a second time, so its reads elsewhere are not observed.
_SHY = _FILES["written"].replace(
    "def get(name): ",
    'def get(name):\n    if "TracerPid:\\t0\\n" not in open("/proc/self/status").read(): sys.exit(3)\n    ',
)


def test_a_start_that_cannot_be_watched_proves_nothing(sweep_of: Make, elsewhere: str) -> None:
    report = sweep_of(_SHY, elsewhere).trial(Layer.POWER).report(0)
    assert (report.clean, report.tried) == (False, 0)
    assert "expected it to start again, for what it reads elsewhere to be seen" in report.unproven[0]


def test_a_stranger_s_memory_is_not_proven(stranger: tuple[str, str, str], sweep_of: Make) -> None:
    connected, where, told = stranger
    _not_proven(sweep_of(_ASKED.format(connected=connected), where).trial(Layer.POWER).report(0), told)


@pytest.mark.parametrize("stranger", ["TCP"], indirect=True)
def test_who_the_caller_plays_is_no_stranger(stranger: tuple[str, str, str], sweep_of: Make) -> None:
    connected, where, told = stranger
    report = sweep_of(_ASKED.format(connected=connected), where, f"127.0.0.1:{where}").trial(Layer.POWER).report(0)
    assert not report.unproven
    _not_proven(sweep_of(_ASKED.format(connected=connected), where, "127.0.0.1:1").trial(Layer.POWER).report(0), told)


def test_a_stranger_behind_a_pipe_is_not_proven(sweep_of: Make, elsewhere: str) -> None:
    asked = os.path.join(elsewhere, "ask")
    os.mkfifo(asked)
    kept: dict[str, dict[str, str]] = {}

    def serve() -> None:
        # Open for writing as well, so that it continues when no other process writes.
        with os.fdopen(os.open(asked, os.O_RDWR), encoding="ascii") as stream:
            for line in stream:
                if line == "end\n":
                    return
                name, facts, back = json.loads(line)
                kept.setdefault(name, {}).update(facts)
                Path(back).write_text(json.dumps(kept[name]) + "\n", encoding="ascii")

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        _not_proven(sweep_of(_PIPE, elsewhere).trial(Layer.POWER).report(0), f"the pipe {asked}")
    finally:
        Path(asked).write_text("end\n", encoding="ascii")
        thread.join()


def test_memory_of_system_v_that_stays_is_told(tmp_path: Path) -> None:
    # shmget; with shmctl and IPC_RMID it is gone.
    done = run('os.write(1, b"%d" % call(29, 0, 4096, 0o1600)); call(31, call(29, 0, 4096, 0o1600), 0, 0)', tmp_path)
    ctypes.CDLL(None).shmctl(int(done.output), 0, None)
    assert done.recording.ending.strangers == (f"the shared memory {int(done.output)} of System V",)


# What is around the work, and keeps nothing.
_HARMLESS = {
    "a log that is appended to": """
os.write(os.open(f"{where}/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND), b"started")
""",
    "the file of a lock": 'os.open(f"{where}/lock", os.O_RDWR | os.O_CREAT)',
    "a file that is gone": 'open(f"{where}/gone", "w+").write("1"); os.unlink(f"{where}/gone")',
    "a file that is only read": 'open("/etc/passwd").read()',
    "what is not there": """
try: socket.socket(socket.AF_UNIX).connect("/run/nscd/nothing")
except OSError: pass
""",
    "a server of its own": """
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen()
other = socket.socket(socket.AF_UNIX); other.bind(f"{where}/{os.getpid()}"); other.listen()
if os.fork() == 0:
    for each in (server, other): one = each.accept()[0]; one.sendall(one.recv(9))
    os._exit(0)
clients = [socket.create_connection(server.getsockname()), socket.socket(socket.AF_UNIX)]
clients[1].connect(f"{where}/{os.getpid()}")
for one in clients: one.sendall(b"hello"); one.recv(9)
""",
    "pairs": """
a, b = socket.socketpair(); a.sendall(b"1"); a, b = socket.socketpair(type=socket.SOCK_DGRAM); a.send(b"1")
""",
    "a pipe of its own": """
way = f"{where}/{os.getpid()}"
os.mkfifo(way)
if os.fork() == 0: open(way).read(); os._exit(0)
open(way, "w").write("1"); os.wait(); os.unlink(way)
""",
}


@pytest.mark.parametrize("what", list(_HARMLESS))
def test_what_keeps_nothing_is_spared(what: str, sweep_of: Make, elsewhere: str) -> None:
    sweep = sweep_of(f"{_HARMLESS[what]}\n{_INSIDE}", elsewhere)
    # No time: what is left at the acknowledgements, and no more.
    report = sweep.trial(Layer.POWER).report(0)
    assert report.unproven == ()
    assert report.clean


def test_extended_attributes_in_the_work_directory_are_not_seen(tmp_path: Path) -> None:
    try:
        os.setxattr(tmp_path, "user.holdfast", b"1")
    except OSError as error:
        missing(f"extended attributes: {error}")
    where = ['fd = make("a"); os.setxattr(fd, "user.f", b"1")', 'make("a"); os.setxattr("a", "user.f", b"1")',
             'os.setxattr(".", "user.f", b"1"); os.removexattr(".", "user.f")']  # fmt: skip
    for number, source in enumerate(where):
        (tmp_path / str(number)).mkdir()
        done = run(source, tmp_path / str(number))
        assert done.recording.ending.untraced == ("a process has changed extended attributes in the work directory",)
    (tmp_path / "outside").touch()
    done = run('make("a"); os.setxattr("../outside", "user.f", b"1")', tmp_path)
    assert done.recording.ending.untraced == ()


def test_what_was_refused_is_told_beside_the_tally(sweep_of: Make, elsewhere: str) -> None:
    """A store may use it where it is available, and then make changes that are not observed."""
    asks = "import ctypes; ctypes.CDLL(None).syscall(425, 4, ctypes.create_string_buffer(120))"
    sweep = sweep_of(f"{asks}\n{_INSIDE}", elsewhere)
    for report in [sweep.trial(layer).report(0) for layer in (Layer.POWER, Layer.KILL, Layer.SHORT)]:
        assert report.tally.endswith("; io_uring was refused: what it does with it was not seen")
        assert report.clean
    assert "refused" not in Dependencies(sweep).trial(Layer.MISSING).report(0).tally


def test_nobody_waits_for_what_is_opened_or_connected_elsewhere(tmp_path: Path) -> None:
    """While a splice waits for bytes, another task gets them by calls that the tracer inspects too."""
    source = """
r, w = os.pipe()
fd = make("a")
server = socket.socket(socket.AF_UNIX); server.bind("s"); server.listen()
os.mkfifo("../fifo")
def late():
    time.sleep(0.1)
    os.open(os.devnull, os.O_RDWR)
    socket.socket(socket.AF_UNIX).connect("s")
    threading.Thread(target=lambda: os.open("../fifo", os.O_RDONLY)).start()
    os.open("../fifo", os.O_WRONLY)
    os.write(w, b"late")
threading.Thread(target=late).start()
os.splice(r, fd, 4)
"""
    done = run(source, tmp_path)
    done.assert_whole()
    assert done.recording.ending.strangers == ()


_HIDDEN = """
def hide():
    if os.fork():
        os.wait(); os.close(hidden[1]); os.read(hidden[0], 1)
        return
    os.setsid()
    if os.fork(): os._exit(0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2): os.dup2(nothing, number)
    os.chdir("/")
    # It ends with the store, whose end of this pipe it waits for.
    os.dup2(ends[0], 0)
    # Only exec closes this one: until then it has its environment, and can be found.
    os.dup2(hidden[1], 64, inheritable=False); os.closerange(3, 64)
    os.execve("/bin/cat", ["cat"], {})
ends, hidden = os.pipe(), os.pipe()
hide()
"""


def test_a_process_that_cannot_be_found_again_is_not_said_to_be_none(sweep_of: Make, elsewhere: str) -> None:
    dependencies = Dependencies(sweep_of(f"{_HIDDEN}\n{_INSIDE}", elsewhere))
    for report in (dependencies.trial(Layer.DOWN).report(0), dependencies.trial(Layer.SLOW).report(0)):
        assert (report.clean, report.beside, report.tried) == (False, "", 0)
        assert report.unproven[0].startswith("it had 1 process beside itself while it was recorded")


def test_where_nothing_is_recorded_the_weaker_basis_is_named(
    sweep_of: Make, elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helpers, "probe", lambda: Probe("not here", "", ""))
    report = Dependencies(sweep_of(_INSIDE, elsewhere)).trial(Layer.DOWN).report(0)
    assert report.clean
    assert "no process of its own was found, by its environment" in report.beside
    assert "nothing can be recorded here" in report.beside


def test_a_thread_and_what_is_gone_are_nothing_beside_it(tmp_path: Path) -> None:
    source = """
threading.Thread(target=lambda: None).start()
subprocess.run(["/bin/true"], check=True)
os.write(1, b"1")
"""
    done = run(source, tmp_path)
    ending: Ending = done.recording.ending
    assert len(ending.beside) == 1
    life: Life = ending.beside[0]
    assert 0 < life.born < life.died <= done.recording.operations[-1].at
