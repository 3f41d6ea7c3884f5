"""Suite tests played in this process: the harness's own driver, with sessions of one implementation as its workers."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, Protocol, cast

from holdfast.conformance.adapter.messages import Reply
from holdfast.conformance.adapter.pool import WorkerPool
from holdfast.conformance.cases.drive import Driver
from holdfast.conformance.cases.record import Judgement, Record
from holdfast.conformance.cases.session import Action
from holdfast.conformance.steps.processes import REACHED
from holdfast.conformance.steps.race import RACE
from holdfast.reference_impl.answers import to_message
from holdfast.reference_impl.instants import parse_instant
from holdfast.reference_impl.session import OpenRequest, Session, StateWanted, SurfaceWanted
from holdfast.servers.folders import remove_tree


class Opens(Protocol):
    """An implementation of one contract."""

    def open(self, request: OpenRequest) -> Session:
        """A session."""


class _Held(BaseException):
    """The call stands at its failpoint, from which it does not return."""


def held(point: object) -> NoReturn:
    """What a failpoint does that holds: it ends the call, past everything that an implementation does about a failure.

    To the store it is the same, since a killed worker never goes on.
    """
    raise _Held(str(point))


class Sessions(Driver):
    """A driver whose workers are sessions in this process. A call that is only started is carried out at once."""

    def __init__(self, implementation: Opens, config: Mapping[str, str]) -> None:
        pool = SimpleNamespace(deadlines=SimpleNamespace(session=1e6, op=1e6, start=1e6), epoch_ns=0)
        super().__init__(cast(WorkerPool, pool), Path(tempfile.mkdtemp(prefix="hf-play-")), config=config)
        self._implementation = implementation
        self._owed: dict[int, Reply] = {}
        self.sessions: dict[int, Session] = {}

    def execute(self, action: Action) -> Sequence[Record]:
        """One action; what needs processes is done at once."""
        if action.act is REACHED:
            self.locally(action, lambda: (None, ""))
        elif action.act is RACE:
            self.exchange(action)
        else:
            return super().execute(action)
        return self.records[-max(1, len(action.requests)) :]

    def exchange(self, action: Action) -> None:
        for worker, request in action.requests:
            self.write_reply(action, worker, request, self._reply(worker, self.located(request)))

    def send(self, action: Action) -> None:
        ((worker, request),) = action.requests
        with contextlib.suppress(_Held):
            self._owed[worker] = self._reply(worker, self.located(request))
        self.write_reply(action, worker, request, Reply(None, None, 0, None))

    def receive(self, action: Action) -> None:
        self.write_reply(action, action.worker, None, self._owed.pop(action.worker))

    def _reply(self, worker: int, request: Mapping[str, Any]) -> Reply:
        sent_us = time.monotonic_ns() // 1000
        answer = dict(self.answered(worker, request))
        return Reply(answer, None, sent_us, time.monotonic_ns() // 1000)

    def answered(self, worker: int, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to a request."""
        if request["op"] == "open":
            self.sessions[worker] = self._implementation.open(
                OpenRequest(
                    StateWanted(request["state"]),
                    SurfaceWanted(request["surface"]),
                    Path(request["workdir"]),
                    parse_instant(request["clock"]),
                    request["config"],
                )
            )
        elif request["op"] == "clock":
            self.sessions[worker].set_clock(parse_instant(request["now"]))
        elif request["op"] == "close":
            if worker not in self.sessions:
                return {"outcome": "fault", "detail": "no session is open"}
            self.sessions.pop(worker).close()
        else:
            return to_message(self.sessions[worker].call(request["method"], request["args"]))
        return {"outcome": "ok"}

    def kill(self, number: int) -> None:
        """Its connections end, and with them an open transaction."""
        if number in self.sessions:
            self.sessions.pop(number).close()

    stop = kill

    def finish(self, judgement: Judgement) -> None:
        for worker in list(self.sessions):
            self.kill(worker)
        remove_tree(self.workdir)
