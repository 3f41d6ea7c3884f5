"""Steps about the processes of an implementation, its time, its failpoints, and the broker that it speaks with."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

from holdfast.conformance.adapter.starvation import lost_since
from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.drive import Driver
from holdfast.conformance.cases.forms import (
    CONFIG,
    EXPECT,
    LABELLED,
    OF_A_WORKER,
    REPORTED,
    TEXT,
    WORKER,
    form,
    value_form,
)
from holdfast.conformance.cases.reading import CaseInterpreter
from holdfast.conformance.cases.record import Judgement, Record
from holdfast.conformance.cases.report import Report
from holdfast.conformance.cases.session import Action, Local, SessionScript, must_be_done
from holdfast.conformance.cases.values import shift
from holdfast.conformance.steps import kind, reported


@kind(form({"kill": WORKER, **OF_A_WORKER}, ("kill",)), worker=True)
def kill(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    """Send SIGKILL to a worker's process group."""
    killed = step["kill"]
    under_way = reading.state.under_way
    reading.state.under_way = {name: worker for name, worker in under_way.items() if worker != killed}
    yield from reading.session.kill(killed, note)


def _config_of(reading: CaseInterpreter, step: Mapping[str, Any]) -> dict[str, str]:
    """The members that a step adds to the config of the session."""
    config: dict[str, str] = reading.state.scope.resolve(step.get("config", {}))
    return config


def _judge_of(reading: CaseInterpreter, step: Mapping[str, Any]) -> Callable[[Record], Judgement | None]:
    """The judgement on the answer to the `open` of a step."""
    expect = {**ex.OK, **step.get("expect", {})}
    return lambda record: ex.judge_answer(record, expect, reading.state.scope, step=step, kind=reading.case.kind)


@kind(form({"reopen": WORKER, **OF_A_WORKER, "config": CONFIG, "expect": EXPECT}, ("reopen",)), worker=True)
def reopen(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    """Start a killed worker again on the same workdir."""
    config, judge = _config_of(reading, step), _judge_of(reading, step)
    yield from reading.session.reopen(step["reopen"], note, config=config, judge=judge)


@kind(form({"restart": WORKER, **OF_A_WORKER, "config": CONFIG, "expect": EXPECT}, ("restart",)), worker=True)
def restart(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    """Close a worker in order, end its process, and start it again on the same workdir."""
    notes = (f"{note}: close", f"{note}: stop", f"{note}: reopen")
    config, judge = _config_of(reading, step), _judge_of(reading, step)
    yield from reading.session.restart(step["restart"], notes, config=config, judge=judge)


_SPAN = r"[+-][0-9]+(?:\.[0-9]{1,6})?[smhd]"
_INSTANT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?Z"


@kind(form({"clock": {"type": "string", "pattern": f"^(?:{_SPAN}|{_INSTANT})$"}, **OF_A_WORKER}, ("clock",)))
def clock(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    """Move the time of every worker, by a span such as `+300s` or to an instant."""
    now = shift(reading.state.scope.now, step["clock"])
    reading.state.scope = reading.state.scope.at(now)
    yield from reading.session.clock(now, range(reading.workers), note)


# How often the harness checks for the failpoint's file.
POLL_S = 0.002


def point_file(driver: Driver, action: Action, end: str) -> Path:
    """The file by which adapter and harness signal a failpoint to each other."""
    return driver.workdir / "hold" / f"{action.operand['point']}.{end}"


def _wait(driver: Driver, action: Action) -> str | None:
    path, left, op = point_file(driver, action, "reached"), driver.budget.left, driver.deadlines.op
    began_ns, ends = time.monotonic_ns(), time.monotonic() + min(left, op)
    is_extended = False
    with driver.budget.spending():
        while not path.exists():
            if time.monotonic() > ends:
                why = f"within {op:.4g} s"
                if left < op:
                    why = f"before the {driver.budget.seconds:.4g} s of the session were used up"
                starved = lost_since(began_ns)
                if starved and not is_extended:
                    is_extended, ends = True, ends + min(left, op)
                    continue
                busy = f"the machine was too busy, {starved}: " if starved else ""
                return f"{busy}the failpoint {action.operand['point']} was not reached {why}"
            time.sleep(POLL_S)
    return None


REACHED = Local("reached", _wait)


@kind(form({"reached": TEXT, **OF_A_WORKER}, ("reached",)))
def reached(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    """Wait until the implementation stops at a failpoint."""
    del reading
    (record,) = yield Action(REACHED, note, operand={"point": step["reached"]})
    must_be_done(record)


def _let_go(driver: Driver, action: Action) -> str | None:
    if not point_file(driver, action, "reached").exists():
        return f"the failpoint {action.operand['point']} was never reached"
    point_file(driver, action, "release").touch()
    return None


RELEASE = Local("release", _let_go)


@kind(form({"release": TEXT, **OF_A_WORKER}, ("release",)))
def release(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    """Let an implementation that stopped at a failpoint go on."""
    del reading
    (record,) = yield Action(RELEASE, note, operand={"point": step["release"]})
    must_be_done(record)


def _arm(driver: Any, action: Action) -> None:
    driver.peer.arm(action.operand["answers"])


ANSWERS = Local("answers", _arm)
ANSWER: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "status": {"type": "integer", "minimum": 200, "maximum": 599},
        "body": {},
        "raw": {"type": "string"},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "how": {"enum": ["whole", "cut", "drop", "late", "drip", "twice", "half", "again"]},
        "through": {"const": True},
        # To one who connects by a WebSocket: the handshake, base64url, and whether it is to close the connection.
        "handshake": {"type": "string"},
        "closes": {"const": True},
    },
}


@kind(form({"answers": {"type": "array", "items": ANSWER}, **LABELLED}, ("answers",)))
def answers(reading: CaseInterpreter, step: Mapping[str, Any], note: str) -> SessionScript[None]:
    """What the broker that holdfast plays for a daemon says to the next requests."""
    del note
    told = reading.state.scope.resolve(step["answers"])
    (record,) = yield Action(ANSWERS, f"answers {len(told)}", operand={"answers": told})
    must_be_done(record)


RECEIVED = Report(
    name="received",
    do=lambda peer, operand: {"requests": peer.received()[operand.get("behind", 0) :]},
    schema=value_form(
        requests={
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["path", "headers", "body"],
                "properties": {
                    "path": {"type": "string"},
                    "headers": {"type": "object", "additionalProperties": {"type": "string"}},
                    "body": {"type": "string"},
                    # Of a WebSocket: the code with which the daemon closed it, null if it did not.
                    "close_code": {"type": ["integer", "null"]},
                },
            },
        }
    ),
    about=attrgetter("peer"),
)


# All requests that a daemon has sent to the broker that holdfast plays, byte for byte.
_RECEIVED_STEP = reported(
    RECEIVED, form({"received": {"const": "requests"}, **REPORTED}, ("received",)), lambda *_: {}, reports=True
)
