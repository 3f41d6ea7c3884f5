"""The protocol as a state machine: workers against a fake adapter that follows a mini-script, and a small model.

The model knows what each word of the script does to a request. What it does not decide is left to the clock: whether
a late answer comes in time is asked of the deadline with room on both sides.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.conformance.adapter.messages import MAX_LINE, KitFaultError, Reply
from holdfast.conformance.adapter.pool import MAX_DEAD_IN_A_ROW, Exhausted, WorkerPool
from holdfast.conformance.adapter.process import GONE_S, Deadlines
from holdfast.conformance.adapter.worker import AdapterCommand, GreetingError, Worker
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
    "wrong-id": {"garbage"},
    "nothing": SILENT,
    "half": SILENT,
    "half-exit": {"garbage"},
    "garbage": {"garbage"},
    "blank": {"garbage"},
    "list": {"garbage"},
    "no-outcome": {"garbage"},
    "invalid": {"garbage"},
    "long": {"garbage"},
    "exit": {"crash"},
    "leave": {"eof"},
    "signal": {"crash"},
    "close": {"eof"},
    "deaf": SILENT,
    "late": SILENT,
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
# The right answer, and then something that is no answer to the next request.
DOUBLE = ("twice",)
SCRIPTS = st.lists(
    st.one_of(
        st.sampled_from(FINE),
        st.sampled_from(FINE),
        st.sampled_from(DOUBLE),
        st.sampled_from(sorted(FATAL)).map(lambda word: ENTRIES[word]),
    ),
    max_size=6,
)


def word_of(entry: Any) -> str:
    """The name of an entry in FATAL."""
    if entry == ["exit", 0]:
        return "leave"
    return str(entry[0] if isinstance(entry, list) else entry)


@dataclass
class Expected:
    """What the model says of one worker: what is open, and what the script does next."""

    script: deque[Any]
    open: deque[Any] = field(default_factory=deque)
    # The event that stands for everything from here on; None while the worker lives.
    dead: set[str] | None = None
    # A second answer to the last request waits in the pipe.
    surplus: bool = False

    def sent(self) -> None:
        """A request left; the script decides its fate in order."""
        entry = self.script.popleft() if self.script else "ok"
        self.open.append(entry)

    def met_its_end(self) -> None:
        """A request found no reader any more. What the worker had said before is not asked."""
        if self.dead is None:
            self.dead = next(GONE[word] for word in map(word_of, self.open) if word in GONE)

    def due(self) -> set[str] | None:
        """What the oldest open request gets: None for an answer, or the possible kinds of event."""
        entry = self.open.popleft()
        if self.dead is not None:
            return self.dead
        if self.surplus:
            self.dead = {"garbage"}
            return self.dead
        if entry == "twice":
            self.surplus = True
            return None
        if entry in FINE:
            return None
        self.dead = possible(entry, pipelined=bool(self.open))
        return self.dead


def possible(entry: Any, *, pipelined: bool) -> set[str]:
    """The kinds of event for an entry. What is silent about one request may speak, or fall, over the next."""
    word = word_of(entry)
    return {*SILENT, "garbage", "crash", "eof"} if pipelined and word in ("nothing", "half") else FATAL[word]


def command(script: list[Any], greeting: str = "ok") -> AdapterCommand:
    """The fake adapter with its script."""
    argv = (sys.executable, "-S", FAKE, json.dumps(script), greeting)
    return AdapterCommand(argv, scrubbed_environment(), DEADLINES)


class Protocol(RuleBasedStateMachine):
    """One pool of up to three workers; each has the same script, and gets it anew when it is replaced."""

    janitor: Janitor

    @initialize(script=SCRIPTS)
    def begin(self, script: list[Any]) -> None:
        self.janitor = Janitor()
        self.pool = WorkerPool(command(script), janitor=self.janitor)
        self.script = script
        self.model: dict[int, Expected] = {}
        self.workers: dict[int, Worker] = {}
        self.pids: set[int] = set()
        self.deaths = 0
        self.ids: dict[int, int] = {}

    # What happens

    @rule(number=st.integers(0, 2))
    def start(self, number: int) -> None:
        """A worker is asked for: the same one as long as it lives, a fresh one in the place of a dead one."""
        before = self.workers.get(number)
        if before is not None and before.dead is None:
            assert self.pool.get(number) is before
            return
        if self.deaths >= MAX_DEAD_IN_A_ROW:
            with pytest.raises(Exhausted):
                self.pool.get(number)
            return
        worker = self.pool.get(number)
        assert worker is not before
        assert worker.greeting.implementation["name"] == "fake"
        assert not worker.busy
        self.workers[number], self.model[number] = worker, Expected(deque(self.script))
        self.pids.add(worker.process.pid)

    def alive(self, number: int) -> bool:
        return number in self.workers and self.workers[number].dead is None

    @precondition(lambda self: bool(self.workers))
    @rule(data=st.data(), count=st.integers(1, 3))
    def send(self, data: st.DataObject, count: int) -> None:
        """Requests leave without waiting."""
        number = data.draw(st.sampled_from(sorted(self.workers)))
        for _ in range(count):
            started = time.monotonic()
            self.workers[number].send(CALL)
            assert time.monotonic() - started < DEADLINES.op + busy(SLACK_S)
            self.model[number].sent()
            if self.workers[number].dead is not None:
                self.model[number].met_its_end()
        assert self.workers[number].busy

    @precondition(lambda self: any(model.open for model in self.model.values()))
    @rule(data=st.data())
    def receive(self, data: st.DataObject) -> None:
        """The oldest open request gets its one reply."""
        number = data.draw(st.sampled_from(sorted(n for n, model in self.model.items() if model.open)))
        started = time.monotonic()
        reply = self.workers[number].receive(timeout=DEADLINES.op)
        assert time.monotonic() - started < DEADLINES.op + min(GONE_S, DEADLINES.op) + busy(SLACK_S)
        self.check(number, reply)

    def check(self, number: int, reply: Reply) -> None:
        worker, model = self.workers[number], self.model[number]
        due = model.due()
        assert (reply.answer is None) is not (reply.event is None)
        assert reply.answer is None or reply.received_us >= reply.sent_us >= 0
        if due is None:
            assert reply.event is None, reply.event
            assert reply.answer is not None
            assert reply.answer["outcome"] == "ok"
            assert "id" not in reply.answer
            assert worker.dead is None
        else:
            assert reply.event is not None, reply.answer
            assert reply.event.kind.value in due, reply.event
            assert worker.dead is reply.event

    @precondition(lambda self: any(w.dead is not None for w in self.workers.values()))
    @rule(data=st.data())
    def ask_the_dead(self, data: st.DataObject) -> None:
        """A dead worker never answers again, and costs no time."""
        number = data.draw(st.sampled_from(sorted(n for n, w in self.workers.items() if w.dead is not None)))
        worker = self.workers[number]
        while self.model[number].open:
            self.check(number, worker.receive(timeout=DEADLINES.op))
        dead = worker.dead
        started = time.monotonic()
        reply = worker.exchange(CALL, timeout=DEADLINES.op)
        assert time.monotonic() - started < 0.1 + busy(SLACK_S)
        assert reply.answer is None
        assert reply.event is dead

    @precondition(lambda self: bool(self.workers))
    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        """Killed on purpose: gone at once, and the budget is not touched."""
        number = data.draw(st.sampled_from(sorted(self.workers)))
        worker = self.workers.pop(number)
        del self.model[number]
        pid = worker.process.pid
        self.pool.kill(number)
        assert worker.dead is not None
        assert not psutil.pid_exists(pid)
        assert self.pool.current(number) is None

    @precondition(lambda self: bool(self.workers))
    @rule(data=st.data())
    def stop(self, data: st.DataObject) -> None:
        """Shut down in order, for every behaviour."""
        number = data.draw(st.sampled_from(sorted(self.workers)))
        worker = self.workers.pop(number)
        del self.model[number]
        started = time.monotonic()
        self.pool.stop(number)
        limit = DEADLINES.op + min(GONE_S, DEADLINES.op) + DEADLINES.quit + DEADLINES.terminate
        assert time.monotonic() - started < limit + busy(SLACK_S)
        assert not psutil.pid_exists(worker.process.pid)

    @precondition(lambda self: bool(self.workers))
    @rule(died=st.booleans())
    def abandon(self, died: bool) -> None:
        """A session did not end in order: healthy workers are kept, the others ended; deaths in a row count once."""
        healthy = {n for n, w in self.workers.items() if w.dead is None and not w.busy}
        self.pool.replaced.clear()
        self.pool.abandon(sorted(self.workers), "the test says so", died=died)
        self.deaths = self.deaths + 1 if died else 0
        for number in sorted(self.workers):
            worker, model = self.workers[number], self.model[number]
            kept = False
            if number in healthy:
                # `close` was a request like any other.
                model.sent()
                kept = model.due() is None
            assert (self.pool.current(number) is worker) is kept
            if not kept:
                assert not psutil.pid_exists(worker.process.pid)
                assert (number, "the test says so") in self.pool.replaced
                del self.workers[number], self.model[number]
        assert self.pool.exhausted is (self.deaths >= MAX_DEAD_IN_A_ROW)

    @rule()
    def settle(self) -> None:
        """A case went well: the row of deaths is broken."""
        self.pool.settle()
        self.deaths = 0
        assert not self.pool.exhausted

    @invariant()
    def a_worker_is_busy_exactly_when_it_owes_an_answer(self) -> None:
        for number, model in getattr(self, "model", {}).items():
            assert self.workers[number].busy is bool(model.open)

    def teardown(self) -> None:
        """Nothing is left, for every set of open sessions."""
        if not hasattr(self, "pool"):
            return
        started = time.monotonic()
        self.pool.close()
        assert time.monotonic() - started < busy(
            3 * (2 * DEADLINES.op + DEADLINES.quit + DEADLINES.terminate) + SLACK_S
        )
        assert not [pid for pid in self.pids if psutil.pid_exists(pid)]
        self.janitor.close()
        assert self.janitor._child.returncode == 0


class TestProtocol(Protocol.TestCase):  # type: ignore[misc, valid-type]
    """Hypothesis drives the machine."""

    settings = settings(max_examples=30, stateful_step_count=14, deadline=None, suppress_health_check=list(HealthCheck))


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
    assert first.event.kind.value in possible(ENTRIES[word], pipelined=True)
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
