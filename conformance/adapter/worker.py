"""A worker: one adapter process after its hello. It numbers requests and matches the answers to them."""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast import __version__
from holdfast.conformance.adapter.messages import PROTOCOL, Event, Reply, decode_answer, encode_request
from holdfast.conformance.adapter.process import AdapterProcess, Deadlines, Start, in_a_new_process
from holdfast.conformance.adapter.wire import Sending, Wire
from holdfast.conformance.verdict import FailureMode
from holdfast.reports.evidence import Claimed
from holdfast.servers.janitor import Janitor
from holdfast.specs.strictjson import canonical


@dataclass(frozen=True, slots=True)
class AdapterCommand:
    """How to start an adapter: its argument list, its environment, its deadlines, and what makes its process."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    deadlines: Deadlines = field(default_factory=Deadlines)
    start: Start = in_a_new_process


@dataclass(frozen=True, slots=True)
class Greeting:
    """What an adapter said in its answer to hello."""

    implementation: Mapping[str, str]
    claims: tuple[Claimed, ...]
    max_workers: int

    def claim(self, contract: str) -> Claimed | None:
        """The claim of that contract, if there is one."""
        return next((claim for claim in self.claims if claim.contract == contract), None)


class GreetingError(Exception):
    """The adapter did not reach a valid hello; `event` says how it failed."""

    def __init__(self, event: Event, log: str) -> None:
        super().__init__(event.detail)
        self.event = event
        self.log = log


@dataclass(frozen=True, slots=True)
class Prepared:
    """A numbered request: its line, or the connection over which it goes in place of the line."""

    request_id: str
    line: bytes
    sending: Sending | None


class Worker:
    """One adapter process after its hello. Requests may be pipelined; answers are matched in order."""

    def __init__(self, command: AdapterCommand, *, janitor: Janitor, number: int, epoch_ns: int) -> None:
        """Start the process and say hello, without waiting for the answer. Raises StartError."""
        self.number, self.janitor = number, janitor
        self._deadlines = command.deadlines
        self._epoch_ns = epoch_ns
        self._count = 0
        self._outstanding: deque[tuple[str, int, Sending | None]] = deque()
        # What came over a socket before it was asked for.
        self._came: dict[str, Any] | Event | None = None
        # The operations that are asked for over a socket, as the session that is open has them.
        self.wires: Mapping[str, Wire] = {}
        self.dead: Event | None = None
        self.process = AdapterProcess(
            command.argv,
            janitor=janitor,
            environment=command.environment,
            deadlines=command.deadlines,
            start=command.start,
        )
        self._greeting: Greeting | None = None
        self._challenge = secrets.token_hex(16)
        self.send({"op": "hello", "protocol": PROTOCOL, "kit": f"holdfast/{__version__}", "challenge": self._challenge})

    def await_greeting(self, *, timeout: float | None = None) -> Greeting:
        """What the adapter says in its hello; waits for it the first time, the start deadline unless one is given.

        Raises GreetingError; the process is ended then.
        """
        if self._greeting is None:
            try:
                self._greeting = self._greet(self._deadlines.start if timeout is None else timeout)
            except BaseException:
                self.kill()
                raise
        return self._greeting

    @property
    def greeting(self) -> Greeting:
        """The same, for a worker that a pool handed out."""
        return self.await_greeting()

    def _greet(self, timeout: float) -> Greeting:
        reply = self.receive(timeout=timeout, hello=True)
        if reply.answer is None:
            assert reply.event is not None
            # The reader of the log may lag a moment after the end of the process.
            time.sleep(0.02)
            raise GreetingError(reply.event, self.process.log)
        said = reply.answer["ok"]
        if said["challenge"] != self._challenge:
            event = Event(
                FailureMode.GARBAGE,
                "the answer to hello repeats another challenge than it was given: a canned transcript?",
            )
            raise GreetingError(event, self.process.log)
        return Greeting(
            implementation=said["implementation"],
            claims=tuple(Claimed(**claim) for claim in said["claims"]),
            max_workers=said["limits"]["workers"],
        )

    def _now_us(self, moment_ns: int | None = None) -> int:
        return ((time.monotonic_ns() if moment_ns is None else moment_ns) - self._epoch_ns) // 1000

    def prepare(self, request: Mapping[str, Any], beside: Prepared | None = None) -> Prepared:
        """A numbered request, ready to be sent at once; prepared requests leave in their order.

        One over a WebSocket shares the connection of the one that was prepared `beside` it.
        """
        self._count += 1
        request_id = str(self._count)
        wire = self.wires.get(request["method"]) if request["op"] == "call" else None
        if wire is not None and not wire.route.carries(request["args"]):
            wire = None
        line = encode_request({"id": request_id, **request})
        if wire is None or self.dead is not None:
            return Prepared(request_id, line, None)
        shared = None if beside is None else beside.sending
        return Prepared(request_id, line, wire.connect(request["args"], timeout=self._deadlines.op, beside=shared))

    def send(self, request: Mapping[str, Any]) -> int:
        """Send one request without waiting; the microseconds from the run's begin to the sending."""
        return self.send_prepared(self.prepare(request))

    def send_prepared(self, prepared: Prepared) -> int:
        """Send a prepared request; the microseconds from the run's begin to the sending."""
        sent = self._now_us()
        self._outstanding.append((prepared.request_id, sent, prepared.sending))
        if prepared.sending is not None:
            prepared.sending.send()
        elif self.dead is None:
            self.dead = self.process.send(prepared.line, timeout=self._deadlines.op)
        return sent

    def receive(self, *, timeout: float, hello: bool = False) -> Reply:
        """The reply to the oldest request that is still open. After an Event the worker is dead."""
        request_id, sent, exchange = self._outstanding[0]
        if exchange is not None:
            # The absence of a reply over a socket says nothing of the process, which may still speak over its pipe.
            early, self._came = self._came, None
            reply: Mapping[str, Any] | Event = (
                self.process.wait_elsewhere(exchange.wait, timeout=timeout) if early is None else early
            )
            self._outstanding.popleft()
            if not isinstance(reply, Event):
                reply = decode_answer(canonical({"id": request_id, **reply}), expected_id=request_id)
            return _reply(reply, sent, self._now_us())
        if self.dead is not None:
            self._outstanding.popleft()
            return Reply(None, self.dead, sent, self._now_us())
        # Only now is the answer no longer owed: an interruption here leaves a worker that is known to be busy.
        got = self.process.receive(timeout=timeout)
        self._outstanding.popleft()
        if isinstance(got, Event):
            self.dead = got
            return Reply(None, got, sent, self._now_us())
        moment, line = got
        answer = decode_answer(line, expected_id=request_id, hello=hello)
        if not isinstance(answer, Event) and self._now_us(moment) < sent:
            answer = Event(
                FailureMode.GARBAGE, f"the answer to request {request_id!r} came before the request was sent"
            )
        if isinstance(answer, Event):
            self.dead = answer
        return _reply(answer, sent, self._now_us(moment))

    def has_answered(self, *, within: float) -> bool:
        """Whether anything comes `within` this number of seconds; `receive` takes it."""
        exchange = self._outstanding[0][2] if self._outstanding else None
        if exchange is not None:
            self._came = self._came or exchange.wait(within)
            return self._came is not None
        return self.dead is not None or self.process.has_output(within=within)

    def exchange(self, request: Mapping[str, Any], *, timeout: float, hello: bool = False) -> Reply:
        """Send one request and wait for its reply."""
        self.send(request)
        return self.receive(timeout=timeout, hello=hello)

    @property
    def busy(self) -> bool:
        """Whether an answer is outstanding."""
        return bool(self._outstanding)

    def kill(self) -> None:
        """SIGKILL to the worker's process group."""
        self.process.kill()
        self.dead = self.dead or Event(FailureMode.CRASH, "killed by holdfast")

    def shut_down(self) -> None:
        """`bye` if it still answers, then end of file, SIGTERM, SIGKILL."""
        if self.dead is None and not self.busy:
            self.exchange({"op": "bye"}, timeout=self._deadlines.op)
        self.process.shut_down()
        self.dead = self.dead or Event(FailureMode.EOF, "shut down by holdfast")


def _reply(came: Mapping[str, Any] | Event, sent: int, received: int) -> Reply:
    return Reply(None, came, sent, received) if isinstance(came, Event) else Reply(came, None, sent, received)
