"""The exchanges of one side of a case as what happened in its sessions: calls, deaths, changes of the store. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from holdfast.reports.evidence import Exchange
from holdfast.specs import Contract
from holdfast.specs.cells import FAILED
from holdfast.specs.matrix import DATABASE, Matrix
from holdfast.specs.model import Group

ACCEPTED, REFUSED = "accepted", "refused"
_PHASE = re.compile(r"(?:given|when|then)\.[0-9]+ ")
_CHANGES = ("tamper", "place", "copy", "link")


@dataclass(frozen=True, slots=True)
class Called:
    """A call of a row of the matrix that ended. A command has a worker of its own, below 0.

    `process` counts the starts of processes in its session, and `newest` is the count when it was sent. `outcome` is
    None where no answer came; `is_new` says that it had an effect. `note` is that of the step.
    """

    row: str
    worker: int
    process: int
    newest: int
    args: Mapping[str, Any]
    outcome: str | None
    is_new: bool
    reason: str
    sent: int
    received: int
    now: datetime
    note: str


@dataclass(frozen=True, slots=True)
class Began:
    """A session on a fresh store, with the parameters that its config sets."""

    absent: bool
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Died:
    """The process of a worker was killed, maybe with a call under way; `later`: the store had been left before."""

    worker: int
    row: str | None
    later: bool


@dataclass(frozen=True, slots=True)
class Provoked:
    """A provocation that is no command, or what the harness did to a database."""

    name: str
    args: Mapping[str, Any]
    worker: int
    later: bool


@dataclass(frozen=True, slots=True)
class Observed:
    """The state that inertness is judged by (`is_state`), or anything else; `rows` are those of all lists in it."""

    rows: int
    is_state: bool


@dataclass(frozen=True, slots=True)
class Changed:
    """The harness changed a file; `newest` counts the starts of processes until then."""

    verb: str
    path: str
    note: str
    newest: int
    running: frozenset[int]


@dataclass(frozen=True, slots=True)
class Searched:
    """The harness looked for canaries."""


Happening = Called | Began | Died | Provoked | Observed | Changed | Searched


@dataclass(slots=True)
class _Live:
    """The session so far."""

    now: datetime
    started: int = 0
    ended: int = 0
    processes: dict[int, int] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)
    under_way: dict[int, tuple[Exchange, int, datetime]] = field(default_factory=dict)
    # The row that each worker was last accepted in: what a kill may cost.
    last: dict[int, str] = field(default_factory=dict)


class Walk:
    """Reads exchanges of one contract."""

    def __init__(self, contract: Contract, matrix: Matrix) -> None:
        self._methods, self._matrix = contract.methods, matrix
        found = (contract.inertness, *(role.inertness for role in contract.roles.values()))
        self._states = {inertness.observe for inertness in found if inertness is not None}

    def happenings(self, exchanges: Iterable[Exchange]) -> Iterator[Happening]:
        """What happened, in order."""
        live = _Live(datetime.min.replace(tzinfo=UTC))
        for exchange in exchanges:
            request = exchange.request
            op = None if request is None else request.get("op")
            if request is None:
                yield from self._local(exchange, live)
            elif op == "open":
                if request.get("state") == "fresh":
                    live = _Live(live.now)
                    yield Began(request.get("surface") == "absent", request.get("config", {}))
                live.now = instant_of(request.get("clock")) or live.now
                live.started += 1
                live.processes[exchange.worker] = live.started
                live.open.add(exchange.worker)
            elif op == "clock":
                live.now = instant_of(request.get("now")) or live.now
            elif op == "close":
                live.open.discard(exchange.worker)
            elif op == "call" and exchange.answer is None and exchange.event is None:
                live.under_way[exchange.worker] = exchange, live.started, live.now
            elif op == "call":
                yield from self._answered(exchange, exchange, live, live.started, live.now)

    def row_of(self, request: Mapping[str, Any]) -> str | None:
        """The row that a call belongs to; None for observations and other provocations."""
        name = str(request.get("method"))
        argument = self._matrix.commands.get(name)
        if argument is not None:
            words = request.get("args", {}).get(argument) or ["?"]
            return f"{name} {words[0]}"
        method = self._methods.get(name)
        return name if method is not None and method.group is Group.OPERATION else None

    def _answered(
        self, asked: Exchange, told: Exchange, live: _Live, newest: int, now: datetime
    ) -> Iterator[Happening]:
        request, answer = asked.request or {}, told.answer
        row = self.row_of(request)
        if row is not None:
            outcome, reason = _outcome(answer)
            if outcome == ACCEPTED:
                live.last[asked.worker] = row
            sent = asked.sent_us or 0
            worker, process = asked.worker, live.processes.get(asked.worker, 0)
            if " " in row:
                # Each command is a process of its own.
                live.started += 1
                worker, process = -live.started, live.started
            args = request.get("args", {})
            received = told.received_us or sent
            is_new = answer is not None and answer.get("effect") == "new"
            yield Called(row, worker, process, newest, args, outcome, is_new, reason, sent, received, now, asked.action)
            return
        method = self._methods.get(str(request.get("method")))
        if method is None:
            return
        if method.group is Group.PROVOCATION:
            yield Provoked(method.name, request.get("args", {}), asked.worker, live.ended > 0)
        elif answer is not None and answer.get("outcome") == "ok":
            yield Observed(_rows(answer.get("value")), method.name in self._states)

    def _local(self, exchange: Exchange, live: _Live) -> Iterator[Happening]:
        started = live.under_way.get(exchange.worker)
        if exchange.answer is not None or (
            started and exchange.event and exchange.event.kind not in ("done", "failed")
        ):
            if started is not None:
                del live.under_way[exchange.worker]
                yield from self._answered(started[0], exchange, live, *started[1:])
            return
        note = _PHASE.sub("", exchange.action, count=1)
        verb, _, rest = note.partition(" ")
        detail = "" if exchange.event is None else exchange.event.detail
        if verb == "kill" or note.endswith("died as expected"):
            yield from self._death(exchange, live)
        elif note.endswith(": stop"):
            live.ended += 1
            live.last.pop(exchange.worker, None)
        elif verb in _CHANGES:
            path = str(_json(detail).get("to", rest)) if verb == "copy" else rest
            yield Changed(verb, path, exchange.action, live.started, frozenset(live.open))
        elif verb == "inspect":
            rows = _json(detail).get("rows") or {} if len(detail) > 2 * self._matrix.volume else {}
            yield Observed(_rows(rows), is_state=True)
        elif verb == DATABASE:
            change, _, what = rest.partition(" ")
            yield Provoked(verb, {"change": change, "what": what}, exchange.worker, live.ended > 0)
        elif verb in ("search", "remains"):
            yield Searched()

    def _death(self, exchange: Exchange, live: _Live) -> Iterator[Happening]:
        worker = exchange.worker
        live.open.discard(worker)
        started = live.under_way.pop(worker, None)
        row = live.last.pop(worker, None)
        if started is not None:
            asked, newest, now = started
            row = self.row_of(asked.request or {}) or row
            yield from self._answered(asked, exchange, live, newest, now)
        yield Died(worker, row, live.ended > 0)
        live.ended += 1


def _outcome(answer: Mapping[str, Any] | None) -> tuple[str | None, str]:
    """The outcome of a call, and its reason. A command has an exit status."""
    if answer is None:
        return None, ""
    outcome = str(answer.get("outcome"))
    value = answer.get("value")
    if outcome == "ok" and isinstance(value, Mapping) and "status" in value:
        return (ACCEPTED, "") if value["status"] == 0 else (REFUSED, FAILED)
    return outcome, str(answer.get("reason", ""))


def _rows(value: Any) -> int:
    """How many rows stand in the lists of an object."""
    lists = value.values() if isinstance(value, Mapping) else ()
    return sum(len(each) for each in lists if isinstance(each, list))


def _json(detail: str) -> Mapping[str, Any]:
    try:
        value = json.loads(detail)
    except ValueError:
        return {}
    return value if isinstance(value, Mapping) else {}


def instant_of(text: object) -> datetime | None:
    """The instant that a text names; None for any other value."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
