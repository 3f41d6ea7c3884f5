"""Workers against a fake adapter that follows a mini-script: what each word does to the request that it meets.

A loaded machine may be late, and still be right: what is measured has room on both sides.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from holdfast.conformance.adapter.messages import MAX_LINE, KitFaultError
from holdfast.conformance.adapter.pool import MAX_DEAD_IN_A_ROW, Exhausted, WorkerPool
from holdfast.conformance.adapter.process import GONE_S, Deadlines
from holdfast.conformance.adapter.wire import Sending
from holdfast.conformance.adapter.worker import AdapterCommand, GreetingError, Prepared, Worker
from holdfast.servers.environment import scrubbed_environment
from holdfast.servers.errors import StartError
from holdfast.servers.janitor import Janitor
from tests.pace import busy

FAKE = str(Path(__file__).resolve().parent / "fake_adapter.py")
# Scaled so that a hang takes little time. A loaded machine may be late by SLACK_S, scaled, and still be right.
DEADLINES = Deadlines(start=20.0, op=0.25, session=5.0, quit=0.2, terminate=0.2)
SLACK_S = 2.0
CALL = {"op": "call", "method": "put", "args": {}}

FINE: tuple[Any, ...] = ("ok", "stderr", ["value", 7], ["late", 0.01])
# Where the machine did not let the kit or the adapter run, it is said to be busy.
SILENT = {"hang", "busy"}
# What each word does to the request it meets: the kinds of event that may stand for it.
FATAL: dict[str, set[str]] = {
    **dict.fromkeys(("nothing", "half", "deaf", "late"), SILENT),
    **{word: {"garbage"} for word in "wrong-id half-exit garbage blank list no-outcome invalid long".split()},
    **{word: {"crash"} for word in ("exit", "signal")},
    **{word: {"eof"} for word in ("leave", "close")},
}
# The words after which the process is gone, and how a request that finds it so stands for everything that is open.
GONE: dict[str, set[str]] = {"exit": {"crash"}, "signal": {"crash"}, "leave": {"eof"}, "half-exit": {"eof"}}
ENTRIES: dict[str, Any] = {
    **{word: word for word in FATAL},
    "exit": ["exit", 3],
    "leave": ["exit", 0],
    "signal": ["signal", int(signal.SIGTERM)],
    "late": ["late", 5.0],
}


def command(script: list[Any], greeting: str = "ok") -> AdapterCommand:
    """The fake adapter with its script."""
    argv = (sys.executable, "-S", FAKE, json.dumps(script), greeting)
    return AdapterCommand(argv, scrubbed_environment(), DEADLINES)


# Each word by itself, so that every one of them is met in every run of the tests.


@pytest.fixture
def janitor() -> Any:
    """A janitor of its own."""
    with Janitor() as made:
        yield made


def worker_of(janitor: Janitor, script: list[Any], greeting: str = "ok") -> Worker:
    """A greeted worker."""
    worker = Worker(command(script, greeting), janitor=janitor, number=0, epoch_ns=time.monotonic_ns())
    worker.await_greeting()
    return worker


@pytest.mark.parametrize("word", sorted(FATAL))
def test_a_fatal_word_ends_the_worker_and_every_request_after_it(word: str, janitor: Janitor) -> None:
    worker = worker_of(janitor, ["ok", ENTRIES[word], "ok"])
    # It stands still until the last request has left: on a busy machine it would be gone before that.
    worker.process.pause()
    for _ in range(3):
        worker.send(CALL)
    worker.process.resume()
    assert worker.receive(timeout=60).answer == {"outcome": "ok"}
    first, second = worker.receive(timeout=DEADLINES.op), worker.receive(timeout=DEADLINES.op)
    worker.kill()
    assert first.event is not None
    # What is silent about one request may speak, or fall, over the next.
    later = {"garbage", "crash", "eof"} if word in ("nothing", "half") else set()
    assert first.event.kind.value in FATAL[word] | later
    assert second.event is first.event


@pytest.mark.parametrize("word", sorted(GONE))
def test_a_request_that_finds_nobody_stands_for_everything_that_is_open(word: str, janitor: Janitor) -> None:
    worker = worker_of(janitor, ["ok", ENTRIES[word]])
    for _ in range(2):
        worker.send(CALL)
    assert worker.process.wait_for_end(timeout=60) is not None
    worker.send(CALL)
    assert worker.dead is not None
    assert worker.dead.kind.value in GONE[word]
    assert [worker.receive(timeout=60).event for _ in range(3)] == [worker.dead] * 3
    worker.kill()


@pytest.mark.parametrize("word", ["nothing", "half"])
def test_what_is_silent_is_a_hang(word: str, janitor: Janitor) -> None:
    worker = worker_of(janitor, [word])
    reply = worker.exchange(CALL, timeout=DEADLINES.op)
    worker.kill()
    assert reply.event is not None
    assert reply.event.kind.value in SILENT


@pytest.mark.parametrize("entry", [*FINE, "twice", "early"], ids=str)
def test_a_right_answer_is_an_answer_whatever_comes_after_it(entry: Any, janitor: Janitor) -> None:
    worker = worker_of(janitor, [entry])
    reply = worker.exchange(CALL, timeout=60)
    worker.kill()
    assert reply.answer == {"outcome": "ok"} | ({"value": 7} if entry == ["value", 7] else {})


def test_an_answer_that_came_before_its_request_is_garbage(janitor: Janitor) -> None:
    """An adapter that sends the next answer before its request did not read the store."""
    worker = worker_of(janitor, ["early", "ok"])
    assert worker.exchange(CALL, timeout=60).answer is not None
    # Until the surplus line has come.
    time.sleep(0.1)
    reply = worker.exchange(CALL, timeout=60)
    worker.kill()
    assert reply.event is not None
    assert reply.event.kind.value == "garbage"
    assert "before the request was sent" in reply.event.detail


def test_what_comes_over_a_socket_is_held_to_the_protocol_as_a_line_is(janitor: Janitor) -> None:
    worker = worker_of(janitor, [])
    replies = []
    came: Any
    for came in ({"outcome": "ok", "value": 7}, {"outcome": "splendid"}, {"outcome": "ok"}):
        # What a connection holds from the beginning is what it gives.
        worker.send_prepared(Prepared("1", b"", Sending(came)))
        replies.append(worker.receive(timeout=DEADLINES.op))
    worker.kill()
    assert [reply.answer for reply in replies] == [{"outcome": "ok", "value": 7}, None, {"outcome": "ok"}]
    assert replies[1].event is not None
    assert replies[1].event.kind.value == "garbage"


@pytest.mark.parametrize(
    ("greeting", "kind"),
    [
        ('["exit", 1]', "crash"),
        ('["exit", 0]', "eof"),
        ("garbage", "garbage"),
        ("wrong-id", "garbage"),
        ("no-outcome", "garbage"),
        ("half-exit", "garbage"),
        ("close", "eof"),
    ],
)
def test_a_worker_that_does_not_say_hello_is_gone_with_its_reason(greeting: str, kind: str, janitor: Janitor) -> None:
    worker = Worker(command([], greeting), janitor=janitor, number=0, epoch_ns=time.monotonic_ns())
    with pytest.raises(GreetingError) as caught:
        worker.await_greeting()
    assert caught.value.event.kind.value == kind
    assert not psutil.pid_exists(worker.process.pid)


def test_workers_that_start_together_wait_together(janitor: Janitor) -> None:
    slow = Deadlines(start=0.5, op=0.2, quit=0.1, terminate=0.1)
    argv = (sys.executable, "-S", FAKE, "[]", "nothing")
    pool = WorkerPool(AdapterCommand(argv, scrubbed_environment(), slow), janitor=janitor)
    started = time.monotonic()
    pool.warm_up(6)
    assert time.monotonic() - started < 0.5 + busy(SLACK_S)
    assert [pool.current(number) for number in range(6)] == [None] * 6
    pool.close()


def test_workers_that_die_are_replaced_within_a_budget_and_a_case_that_goes_well_fills_it(janitor: Janitor) -> None:
    pool = WorkerPool(command([["exit", 3]]), janitor=janitor)
    for _ in range(MAX_DEAD_IN_A_ROW):
        worker = pool.get(0)
        assert pool.get(0) is worker
        assert worker.exchange(CALL, timeout=60).event is worker.dead is not None
        assert pool.get(0) is not worker
        pool.abandon([0], "it died", died=True)
    with pytest.raises(Exhausted):
        pool.get(1)
    pool.settle()
    for died in (True, True, False, True):
        pool.abandon([], "it ended early", died=died)
    assert pool.get(1).dead is None
    pool.close()


def test_of_an_abandoned_session_the_workers_that_owe_nothing_are_kept(janitor: Janitor) -> None:
    pool = WorkerPool(command([]), janitor=janitor)
    kept, owing = pool.get(0), pool.get(1)
    owing.send(CALL)
    pool.abandon([0, 1], "it ended early", died=False)
    assert (pool.current(0), pool.current(1)) == (kept, None)
    assert pool.replaced == [(1, "it ended early")]
    assert not psutil.pid_exists(owing.process.pid)
    pool.kill(0)
    assert pool.current(0) is None
    pool.close()


def test_standard_error_is_kept_up_to_its_limit_and_says_what_is_missing(janitor: Janitor) -> None:
    worker = worker_of(janitor, ["stderr"] * 20)
    for _ in range(20):
        assert worker.exchange(CALL, timeout=60).answer is not None
    worker.kill()
    assert worker.process.log.startswith("chatter ")
    assert worker.process.log.endswith("bytes more")
    assert len(worker.process.log) < 66_000


def test_an_adapter_that_does_not_read_is_a_hang_and_not_a_block(janitor: Janitor) -> None:
    worker = worker_of(janitor, ["deaf"])
    big = {**CALL, "args": {"text": "x" * 300_000}}
    started = time.monotonic()
    for _ in range(4):
        worker.send(big)
    assert time.monotonic() - started < 2 * DEADLINES.op + busy(SLACK_S)
    assert worker.dead is not None
    assert worker.dead.kind.value in SILENT
    worker.kill()


@pytest.mark.parametrize(
    "request_",
    [
        {"op": "shout"},
        {"op": "call", "method": "Not A Method", "args": {}},
        {"op": "call", "method": "put"},
        {"op": "clock", "now": "soon"},
        {"op": "call", "method": "put", "args": {"text": "x" * MAX_LINE}},
    ],
    ids=lambda request: str(request)[:40],
)
def test_a_request_that_breaks_the_protocol_never_leaves_the_kit(request_: dict[str, Any], janitor: Janitor) -> None:
    worker = worker_of(janitor, [])
    with pytest.raises(KitFaultError, match="holdfast built a request"):
        worker.send(request_)
    assert worker.dead is None
    assert not worker.busy
    assert worker.exchange(CALL, timeout=60).answer == {"outcome": "ok"}
    worker.kill()


def test_an_answer_nested_deeper_than_evidence_can_hold_is_garbage(janitor: Janitor) -> None:
    nested: Any = 1
    for _ in range(150):
        nested = [nested]
    worker = worker_of(janitor, [["value", nested]])
    reply = worker.exchange(CALL, timeout=60)
    worker.kill()
    assert reply.event is not None
    assert "nested deeper" in reply.event.detail


def test_a_command_that_cannot_start_is_named(janitor: Janitor, tmp_path: Path) -> None:
    for argv in (("./no-such-adapter",), (str(tmp_path),)):
        pool = WorkerPool(AdapterCommand(argv, scrubbed_environment(), DEADLINES), janitor=janitor)
        with pytest.raises(StartError, match=argv[0]):
            pool.get(0)
        pool.warm_up(3)
        pool.close()


def test_an_adapter_sees_only_the_variables_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    assert not {"DATABASE_PASSWORD", "PYTHONPATH"} & scrubbed_environment().keys()
    assert scrubbed_environment(("DATABASE_PASSWORD",))["DATABASE_PASSWORD"] == "hunter2"
    assert scrubbed_environment()["PATH"] == os.environ["PATH"]


def test_a_pool_that_is_closed_while_workers_owe_answers_does_not_wait_for_them(janitor: Janitor) -> None:
    slow = Deadlines(start=20.0, op=0.2, quit=30.0, terminate=30.0)
    argv = (sys.executable, "-S", FAKE, '["deaf"]')
    pool = WorkerPool(AdapterCommand(argv, scrubbed_environment(), slow), janitor=janitor)
    for number in range(3):
        pool.get(number).send(CALL)
    started = time.monotonic()
    pool.close()
    assert time.monotonic() - started < busy(SLACK_S)


def test_workers_are_shut_down_together_and_in_order_unless_the_run_is_aborted(janitor: Janitor) -> None:
    stubborn = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"import sys\nsys.argv[1:] = ['[]']\nexec(open({FAKE!r}).read())\ntime.sleep(60)\n"
    )
    for end, low, high in ((WorkerPool.close, 1.0, 2.0), (WorkerPool.abort, 0.0, 0.8)):
        slow = Deadlines(start=20.0, op=5.0, quit=0.5, terminate=0.5)
        argv = (sys.executable, "-S", "-c", stubborn)
        pool = WorkerPool(AdapterCommand(argv, scrubbed_environment(), slow), janitor=janitor)
        pool.warm_up(4)
        pids = [worker.process.pid for number in range(4) if (worker := pool.current(number))]
        started = time.monotonic()
        end(pool)
        assert low <= time.monotonic() - started < high + busy(SLACK_S) / 2
        assert len(pids) == 4
        assert not [pid for pid in pids if psutil.pid_exists(pid)]


def test_a_pipe_held_by_what_left_the_group_does_not_hold_the_kit(tmp_path: Path) -> None:
    """A daemon in a session of its own survives the group; the kit goes on, and the janitor finds it at the end."""
    noted = tmp_path / "pid"
    daemon = (
        "import subprocess, sys\nwords = [sys.executable, '-S', '-c', 'import time; time.sleep(600)']\n"
        "child = subprocess.Popen(words, start_new_session=True)\n"
        f"open({str(noted)!r}, 'w').write(str(child.pid))\n"
        f"sys.argv[1:] = ['[]']\nexec(open({FAKE!r}).read())\n"
    )
    janitor = Janitor()
    argv = (sys.executable, "-S", "-c", daemon)
    worker = Worker(AdapterCommand(argv, scrubbed_environment(), DEADLINES), janitor=janitor, number=0, epoch_ns=0)
    worker.await_greeting()
    escaped = psutil.Process(int(noted.read_text(encoding="utf-8")))
    started = time.monotonic()
    worker.kill()
    assert time.monotonic() - started < 2 * GONE_S + busy(SLACK_S)
    janitor.close()
    psutil.wait_procs([escaped], timeout=60)
    assert not escaped.is_running() or escaped.status() == psutil.STATUS_ZOMBIE
