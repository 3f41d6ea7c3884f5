"""A hang of the adapter and a hang of the machine: real processes that are stopped, starved, or really hung."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.conformance.adapter.messages import Event
from holdfast.conformance.adapter.pool import WorkerPool
from holdfast.conformance.adapter.process import AdapterProcess, Deadlines
from holdfast.conformance.adapter.starvation import BEAT_S, HEARTBEAT, SERVERS, Heartbeat, Watch
from holdfast.conformance.adapter.worker import AdapterCommand
from holdfast.conformance.cases.drive import Driver
from holdfast.conformance.cases.expect import failure_of
from holdfast.conformance.cases.session import EXCHANGE, START, Action, open_request
from holdfast.conformance.steps.calls import FINISH
from holdfast.conformance.steps.calls import START as START_STEP
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.servers.environment import adapter_environment
from holdfast.servers.janitor import Janitor
from tests.hostile.verify import ADAPTERS, LIMIT_S, adapter, environment, temp_folder
from tests.pace import busy
from tests.process.leftovers import until

TWO_PROCESSORS = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="the kit and the crowd need a processor each"
)
SHELF = "toy/once/a-put-key-stands-on-the-shelf"
# Deadlines of a request: of the kit's own runs here, and of the processes that are watched alone.
SLOW, OP_S = 0.25, 0.6
# A stop that comes so soon after the request leaves most of its deadline; it is tried so often.
_SOON_S, _TRIALS = 0.2, 10


def stopped(folder: Path, takes: str, seconds: float) -> Mapping[str, Any]:
    """How a case ended the first time, in a run whose kit is stopped for so long while the adapter is asked.

    On a busy machine the stop may come when the deadline of the request is nearly over; then it is tried again.
    """
    for number in range(_TRIALS):
        line, after_s = stopped_once(folder / str(number), takes, seconds)
        if after_s < _SOON_S:
            return line
    pytest.fail(f"in {_TRIALS} trials the kit could not be stopped in time")


def stopped_once(folder: Path, takes: str, seconds: float) -> tuple[Mapping[str, Any], float]:
    """The verdict line, and how long after the adapter was asked the kit was stopped."""
    folder.mkdir()
    mark, evidence = folder / "mark", folder / "run.jsonl"
    with temp_folder() as temp:
        words = ["verify", "--contract", "toy", "--case", SHELF, "--evidence", str(evidence), "--slow", str(SLOW)]
        kit = subprocess.Popen(
            [sys.executable, "-m", "holdfast.conformance.cli", *words, "--", *adapter("marks", str(mark), takes)],
            env=environment(temp),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            until(lambda: mark.exists() or kit.poll() is not None, within=busy(LIMIT_S))
            os.kill(kit.pid, signal.SIGSTOP)
            after_s = time.time() - mark.stat().st_mtime
            time.sleep(seconds)
            os.kill(kit.pid, signal.SIGCONT)
            assert kit.wait(busy(LIMIT_S)) == 12
        finally:
            kit.kill()
            kit.wait()
    lines = [json.loads(line) for line in evidence.read_text(encoding="utf-8").splitlines()]
    return next(line for line in lines if line["type"] in {"attempt", "verdict"}), after_s


def test_a_kit_that_was_stopped_does_not_call_the_adapter_hung(tmp_path: Path) -> None:
    line = stopped(tmp_path, "for-ever", 1.5)
    assert (line["type"], line["silence"]) == ("attempt", "busy"), line
    assert "the machine was too busy" in line["detail"]


def test_an_answer_that_came_while_the_kit_was_stopped_is_an_answer(tmp_path: Path) -> None:
    line = stopped(tmp_path, "0.2", 1.5)
    assert line["verdict"] == "conforms", line


@contextmanager
def crowded(cpu: int, burners: int) -> Iterator[Sequence[subprocess.Popen[bytes]]]:
    """One processor on which `burners` other processes want to run."""
    words = ["-c", f"import os; os.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"]
    running = [subprocess.Popen([sys.executable, *words]) for _ in range(burners)]
    try:
        yield running
    finally:
        for one in running:
            one.kill()
            one.wait()


def asked(takes: str, folder: Path) -> Event | None:
    """What comes of a put that takes so long, on the last processor; None for an answer."""
    cpu = max(os.sched_getaffinity(0))
    program = f"import os, runpy, sys; os.sched_setaffinity(0, {{{cpu}}}); sys.argv[:1] = []; sys.path[:0] = [{str(ADAPTERS)!r}]; runpy.run_path(sys.argv[0], run_name='__main__')"  # noqa: E501
    command = [sys.executable, "-c", program, *adapter("marks", str(folder / "mark"), takes)[1:]]
    with Janitor() as janitor:
        deadlines = Deadlines(start=60.0, op=OP_S, session=60.0)
        process = AdapterProcess(command, janitor=janitor, environment=adapter_environment(), deadlines=deadlines)
        try:
            opened = {"op": "open", "contract": "toy", "state": "fresh", "workdir": str(folder), "id": "1"}
            put = {"op": "call", "method": "put", "args": {"key": "k", "nonce": "n"}, "id": "2"}
            assert process.send(json.dumps(opened).encode() + b"\n", timeout=busy(60)) is None
            assert not isinstance(process.receive(timeout=busy(60)), Event)
            with crowded(cpu, 6):
                assert process.send(json.dumps(put).encode() + b"\n", timeout=busy(60)) is None
                came = process.receive(timeout=OP_S)
            return came if isinstance(came, Event) else None
        finally:
            process.kill()


@TWO_PROCESSORS
def test_an_adapter_that_gets_no_processor_is_not_called_hung(tmp_path: Path) -> None:
    came = asked("work-1.5", tmp_path)
    assert came is not None, "it cannot have worked for 1.5 s in twice its deadline"
    assert came.kind is FailureMode.BUSY, came
    assert "the machine was too busy" in came.detail


@TWO_PROCESSORS
def test_an_adapter_that_sleeps_is_not_excused_by_a_crowd(tmp_path: Path) -> None:
    came = asked("for-ever", tmp_path)
    assert came is not None
    # Where the kit itself got no processor time, the cause is unknown.
    assert came.kind is FailureMode.HANG or "holdfast itself" in came.detail, came


def test_a_heartbeat_that_is_in_time_has_lost_nothing_and_one_that_was_held_says_how_long() -> None:
    heart = Heartbeat()
    began = time.monotonic_ns()
    assert heart.lost(began, began) == 0.0
    # It was never started, which is to it as if its process had stood still.
    time.sleep(6 * BEAT_S)
    ended = time.monotonic_ns()
    assert heart.lost(began, ended) >= 4 * BEAT_S
    assert heart.lost(began, ended) <= (ended - began) / 1e9


OPENED = open_request("toy", "fresh", clock=START, seed="s", config={})
LOOK = {"op": "call", "method": "state", "args": {}}


@contextmanager
def driven(folder: Path, takes: str, *, op: float, session: float) -> Iterator[Driver]:
    """Drives the worker of an adapter that takes so long for each call."""
    deadlines = Deadlines(start=60.0, op=op, session=session)
    command = AdapterCommand(adapter("slow_every_time", takes), adapter_environment(), deadlines)
    with Janitor() as janitor:
        pool = WorkerPool(command, janitor=janitor)
        # As if the run had begun long ago: a moment that stands alone is a large number.
        pool.epoch_ns -= 10**13
        pool.get(0)
        yield Driver(pool, folder, config={})
        pool.abort()


@pytest.mark.parametrize("session", [1.5, 60.0])
def test_a_session_whose_time_is_used_up_says_so_and_one_with_more_time_ends(session: float, tmp_path: Path) -> None:
    with driven(tmp_path, "0.4", op=60.0, session=session) as driver:
        asked = [driver.execute(Action(EXCHANGE, "asked", ((0, request),))) for request in (OPENED, *[LOOK] * 5)]
    records = [record for each in asked for record in each]
    if session == 60.0:
        assert all(record.answer for record in records)
        return
    silent = next(record for record in records if record.answer is None)
    assert silent.n > 1, "what came in its time was taken"
    judged = failure_of(silent)
    assert judged is not None
    assert judged.verdict is Verdict.NO_VERDICT
    if "the machine was too busy" not in judged.detail:
        assert judged.silence is FailureMode.BUDGET, judged
        assert "1.5 s of the session are used up" in judged.detail
    assert "--slow" in judged.advice


def test_a_session_with_a_call_that_was_sent_and_not_yet_awaited_has_spent_no_less_than_nothing(tmp_path: Path) -> None:
    with driven(tmp_path, "60", op=60.0, session=0.3) as driver:
        driver.execute(Action(EXCHANGE, "opened", ((0, OPENED),)))
        driver.execute(Action(START_STEP, "sent", ((0, LOOK),)))
        (record,) = driver.execute(Action(FINISH, "awaited"))
    assert record.event is not None
    assert record.event["kind"] in {"budget", "busy"}, record.event
    assert not re.search(r"-\d", record.event["detail"]), record.event
    assert 0 <= driver.budget.left <= driver.budget.seconds


def test_a_request_that_had_nearly_all_of_its_deadline_hangs_though_the_session_ended_sooner(tmp_path: Path) -> None:
    with driven(tmp_path, "60", op=0.5, session=0.5) as driver:
        (record,) = driver.execute(Action(EXCHANGE, "asked", ((0, LOOK),)))
    assert record.event is not None
    assert record.event["kind"] in {"hang", "busy"}, record.event


# The parent of a vfork waits in the state D, as one that waits for a disk, until its child ends.
WAITS = "import ctypes, time; ctypes.CDLL(None).vfork() or time.sleep(60)"


@pytest.mark.parametrize(("program", "waits"), [(WAITS, True), ("import time; time.sleep(60)", False)])
def test_who_waits_for_a_disk_when_the_time_is_over_is_not_to_blame(program: str, waits: bool) -> None:
    HEARTBEAT.start()
    child = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    try:
        state = Path(f"/proc/{child.pid}/stat")
        assert until(lambda: state.read_text().rpartition(")")[2].split()[0] == ("D" if waits else "S"), within=30)
        watch = Watch(child.pid)
        time.sleep(2 * BEAT_S)
        assert ("disk" in watch.starved()) is waits
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def test_an_adapter_that_ends_while_it_is_looked_at_is_no_fault_of_the_kit(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(path: object) -> Any:
        raise FileNotFoundError(2, "No such file or directory", str(path))

    monkeypatch.setattr(os, "listdir", gone)
    monkeypatch.setattr(os, "scandir", gone)
    watch = Watch(os.getpid())
    watch.look()
    assert watch.starved() == ""


@TWO_PROCESSORS
def test_an_adapter_that_waits_for_a_server_without_a_processor_is_not_to_blame() -> None:
    cpu = max(os.sched_getaffinity(0))
    adapter = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        with crowded(cpu, 5) as (server, *_):
            # Until all of them run; only then is the processor short.
            time.sleep(1.0)
            for servers, due in (((), False), ((server.pid,), True)):
                SERVERS.update(servers)
                watch = Watch(adapter.pid)
                watch.look()
                time.sleep(1.0)
                found = watch.starved()
                assert bool(found) is due or "holdfast itself" in found, found
    finally:
        SERVERS.discard(server.pid)
        adapter.kill()
        adapter.wait()
