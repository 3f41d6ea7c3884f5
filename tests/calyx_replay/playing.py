"""Suite tests of calyx-replay played in this process: the harness's own driver, with mailboxes in place of workers."""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

from holdfast.conformance.adapter.messages import Reply
from holdfast.conformance.adapter.pool import Workers
from holdfast.conformance.cases.action import Action
from holdfast.conformance.cases.drive import Driver
from holdfast.conformance.cases.record import Finding, Judgement, Record, Side
from holdfast.conformance.run.plan import suite_case_id, suite_tests
from holdfast.conformance.steps.insert import INSERT
from holdfast.conformance.steps.race import RACE
from holdfast.conformance.steps.reached import REACHED
from holdfast.conformance.suites.bench import Bench, Limits
from holdfast.reference_impl.answers import to_message
from holdfast.reference_impl.calyx_replay import operate
from holdfast.reference_impl.calyx_replay.command_line import CommandLine
from holdfast.reference_impl.calyx_replay.entry import CalyxReplay
from holdfast.reference_impl.calyx_replay.factory import REFERENCE, Factory
from holdfast.reference_impl.calyx_replay.service import Service
from holdfast.reference_impl.instants import parse_instant
from holdfast.reference_impl.session import OpenRequest, Session, StateWanted, SurfaceWanted
from holdfast.servers.folders import remove_tree
from holdfast.servers.serving import Launched
from holdfast.specs import load_contract

CONTRACT = "calyx-replay"


class Here(CommandLine):
    """The operator's command line, run in this process. `Machine` goes by another clock."""

    def run(self, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            status = operate.main(self.words(arguments, now=self.clock(now)))
        return {"status": status, "output": printed.getvalue()}

    def clock(self, now: datetime) -> datetime:
        """The time by which it goes."""
        return now


class _Held(BaseException):
    """The call stands at its failpoint, from which it does not return."""


def _held(point: object) -> NoReturn:
    raise _Held(str(point))


class Mailboxes(Driver):
    """A driver whose workers are sessions of one implementation in this process.

    A failpoint that holds ends the call here, past everything that a mailbox does about a failure: to the store it is
    the same, since a killed worker never goes on.
    """

    def __init__(self, implementation: CalyxReplay, config: Mapping[str, str]) -> None:
        pool = SimpleNamespace(deadlines=SimpleNamespace(session=1e6, op=1e6, start=1e6), epoch_ns=0)
        super().__init__(cast(Workers, pool), Path(tempfile.mkdtemp(prefix="hf-calyx-play-")), config=config)
        self._implementation = implementation
        self._sessions: dict[int, Session] = {}

    def execute(self, action: Action) -> Sequence[Record]:
        """One action; what needs processes is done at once."""
        if action.act is REACHED:
            self.locally(action, lambda: (None, ""))
        elif action.act is RACE:
            self.exchange(action)
        elif action.act is INSERT:
            # A look of the harness gave up the locks of this process on the store, and the row would cost the log.
            for session in self._sessions.values():
                cast(Service, session)._parts.store.close()
            return super().execute(action)
        else:
            return super().execute(action)
        return self.records[-max(1, len(action.requests)) :]

    def exchange(self, action: Action) -> None:
        for worker, request in action.requests:
            self.write_reply(action, worker, request, self._reply(worker, self.located(request)))

    def send(self, action: Action) -> None:
        ((worker, request),) = action.requests
        with contextlib.suppress(_Held):
            self._reply(worker, self.located(request))
        self._write(action, worker, request, None, None, 0, None)

    def _reply(self, worker: int, request: Mapping[str, Any]) -> Reply:
        sent_us = time.monotonic_ns() // 1000
        answer = dict(self._answer(worker, request))
        return Reply(answer, None, sent_us, time.monotonic_ns() // 1000)

    def _answer(self, worker: int, request: Mapping[str, Any]) -> Mapping[str, Any]:
        if request["op"] == "open":
            self._sessions[worker] = self._implementation.open(
                OpenRequest(
                    StateWanted(request["state"]),
                    SurfaceWanted(request["surface"]),
                    Path(request["workdir"]),
                    parse_instant(request["clock"]),
                    request["config"],
                )
            )
        elif request["op"] == "clock":
            self._sessions[worker].set_clock(parse_instant(request["now"]))
        elif request["op"] == "close":
            if worker not in self._sessions:
                return {"outcome": "fault", "detail": "no session is open"}
            self._sessions.pop(worker).close()
        else:
            session = self._sessions[worker]
            if request["method"] == "hold_at":
                cast(Any, session)._parts.failpoints.hold = _held
            return to_message(session.call(request["method"], request["args"]))
        return {"outcome": "ok"}

    def kill(self, number: int) -> None:
        """Its connections end, and with them an open transaction."""
        if number in self._sessions:
            self._sessions.pop(number).close()

    stop = kill

    def finish(self, judgement: Judgement) -> None:
        for worker in list(self._sessions):
            self.kill(worker)
        remove_tree(self.workdir)


def played(test: str, template: Launched, seed: str, *, factory: Factory = REFERENCE) -> tuple[Judgement, Bench]:
    """What a suite test says of the reference or of another factory, and the bench."""
    line = Here if issubclass(Here, factory.command_line) else type("Line", (factory.command_line, Here), {})
    implementation = CalyxReplay(replace(factory, command_line=line))
    function = {each.__name__: each for each, _ in suite_tests(CONTRACT)}[test]
    bench = Bench(
        contract=load_contract(CONTRACT),
        case=suite_case_id(CONTRACT, test),
        seed=seed,
        make_driver=lambda _: Mailboxes(implementation, template.ready.config),
        not_claimed={},
        limits=Limits(8, None),
    )
    try:
        function(bench)
        return bench.gravest(bench.conclude()).placed(Side.MAIN, None), bench
    except Finding as finding:
        return bench.gravest(finding.judgement).placed(Side.MAIN, None), bench
