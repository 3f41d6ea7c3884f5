"""Suite tests of rs4a-replay played in this process, on SQLite, with a session for each worker."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from holdfast.conformance.cases.action import Action
from holdfast.conformance.cases.drive import Driver
from holdfast.conformance.cases.record import Finding, Judgement, Record, Side
from holdfast.conformance.suites.bench import Bench, Limits
from holdfast.reference_impl.answers import to_message
from holdfast.reference_impl.rs4a_replay.entry import Rs4aReplay
from holdfast.reference_impl.session import OpenRequest, Session, StateWanted, SurfaceWanted
from holdfast.servers.serving import Launched
from holdfast.specs import load_contract

SEED = "5eed"


class PlayedDriver:
    """Stands in for `Driver`: a session of the reference takes the place of each process."""

    def __init__(self, launched: Launched, implementation: Rs4aReplay) -> None:
        self._config, self._implementation = launched.ready.config, implementation
        self._workdir = Path(tempfile.mkdtemp(prefix="hf-"))
        self._sessions: dict[int, Session] = {}
        self._owed: dict[int, dict[str, Any]] = {}
        self._at = 0

    def take_time(self) -> None:
        """See `Driver`."""

    def execute(self, action: Action) -> Sequence[Record]:
        """The records of one action. A call that is only started is carried out at once, and answered later."""
        self._at += 1000
        found = [
            Record(n, action.note, worker, request, self._answer(worker, request), None, self._at, self._at)
            for n, (worker, request) in enumerate(action.requests)
        ]
        if action.act.name == "start":
            self._owed[action.worker] = cast("dict[str, Any]", found[0].answer)
            return [replace(found[0], answer=None, received_us=None)]
        if action.act.name == "finish":
            return [
                Record(0, action.note, action.worker, None, self._owed.pop(action.worker), None, self._at, self._at)
            ]
        if found:
            return found
        self._sessions.pop(action.worker).close()
        return [Record(0, action.note, action.worker, None, None, {"kind": "done", "detail": ""}, self._at, self._at)]

    def _answer(self, worker: int, request: Mapping[str, Any]) -> dict[str, Any]:
        if request["op"] == "open":
            opened = OpenRequest(
                StateWanted(request["state"]),
                SurfaceWanted(request["surface"]),
                self._workdir,
                datetime.fromisoformat(request["clock"]),
                {**self._config, **request["config"]},
            )
            self._sessions[worker] = self._implementation.open(opened)
        elif request["op"] == "clock":
            self._sessions[worker].set_clock(datetime.fromisoformat(request["now"]))
        elif request["op"] == "call":
            return to_message(self._sessions[worker].call(request["method"], request["args"]))
        return {"outcome": "ok"}

    def finish(self, judgement: Judgement) -> None:
        """See `Driver`."""
        del judgement
        for session in self._sessions.values():
            session.close()
        shutil.rmtree(self._workdir)


def bench_of(launched: Launched, implementation: Rs4aReplay, *, seed: str = SEED) -> Bench:
    """A bench whose sessions are those of this implementation."""
    return Bench(
        contract=load_contract("rs4a-replay"),
        case="rs4a-replay/suite/played",
        seed=seed,
        make_driver=lambda _: cast("Driver", PlayedDriver(launched, implementation)),
        not_claimed={},
        limits=Limits(2, None),
    )


def judged(bench: Bench, test: Callable[[Bench], None]) -> Judgement:
    """What a test says at this bench."""
    try:
        test(bench)
        return bench.gravest(bench.conclude()).placed(Side.MAIN, None)
    except Finding as finding:
        return bench.gravest(finding.judgement).placed(Side.MAIN, None)
