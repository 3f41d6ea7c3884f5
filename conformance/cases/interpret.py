"""What a case means: one generator that asks for actions, takes their records, and ends in a judgement.

The live run drives it with a real adapter, the gate drives it with the records of the evidence. There is no second
reading of a case, so what was judged once can be judged again by anyone (DESIGN: "the same pure function").
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.cases import expect as ex
from conformance.cases.action import Action, Verb
from conformance.cases.inertness import STORE, TREE, judge_changed, judge_inert
from conformance.cases.looking import files_of, judge_seen, operand_of, state_of, store_path, value_of
from conformance.cases.match import mismatch, same
from conformance.cases.race import judge_race
from conformance.cases.record import Finding, Judgement, Record, Side
from conformance.cases.seen import TELLING
from conformance.cases.values import CaseError, Scope, at_path, is_missing, put_path, shift
from conformance.inspection.files import parts_of
from conformance.verdict import Verdict
from specs import Case, Contract, Method
from specs.model import Observer

# Every session starts here unless the case moves its clock; a date far from the machine's own, so that an
# implementation which reads the machine's clock shows.
START = "2026-01-01T00:00:00Z"
# Stands for the workdir in requests as they are recorded: the real path differs from run to run.
WORKDIR = "{workdir}"


def open_request(
    contract: str, state: str, *, clock: str, seed: str, config: Mapping[str, str], surface: str = "ready"
) -> dict[str, Any]:
    """An `open` as it is recorded, `fresh` or `existing`: with WORKDIR for the workdir, and nobody else's config."""
    return {
        "op": "open",
        "contract": contract,
        "state": state,
        "surface": surface,
        "workdir": WORKDIR,
        "clock": clock,
        "seed": seed,
        "config": dict(config),
    }


def located(request: Mapping[str, Any], workdir: Path, config: Mapping[str, str]) -> dict[str, Any]:
    """A request as it is sent: the real workdir is put in, and `config` under the session's own."""
    if request.get("op") != "open":
        return dict(request)
    return {**request, "workdir": str(workdir), "config": {**config, **request["config"]}}


Records = Sequence[Record]
Interpretation = Generator[Action, Records, Judgement]

CONFORMS = Judgement(Verdict.CONFORMS)
_TWIN_END = "the twin's step was never reached"


@dataclass(slots=True)
class _State:
    """What changes while a side goes on."""

    scope: Scope
    phase: str = "open"
    surface: str = "ready"
    config: Mapping[str, str] = field(default_factory=dict)
    # What was started and answered where it had to wait; judged when it is finished, by what it was answered.
    hasty: set[str] = field(default_factory=set)
    # The case itself changed the files of the store, or asked for none.
    damaged: bool = False
    # Why the side is at its end, and conforms: the store refused to hold what the case is about.
    ended: str | None = None


class _Reader:
    """Reads one side of one case. Each step is a sub-generator."""

    def __init__(self, contract: Contract, case: Case, side: Side, seed: str, not_claimed: Mapping[str, str]) -> None:
        self.contract = contract
        self.case = case
        self.side = side
        self.seed = seed
        self.not_claimed = not_claimed
        self.workers = worker_count(contract, case)
        scope = Scope(seed=seed, case=case.id, side=side.value, defined=case.values, opened=START, now=START)
        self.state = _State(scope)

    def read(self) -> Interpretation:
        try:
            return (yield from self._steps())
        except Finding as finding:
            return self._demoted(finding.judgement)
        except CaseError as error:
            return Judgement(Verdict.KIT_FAULT, detail=f"the case has no meaning: {error}")

    def _demoted(self, judgement: Judgement) -> Judgement:
        """What goes wrong before the point of a case proves nothing about its clause."""
        setting_up = self.state.phase in {"open", "given"}
        if setting_up and not (judgement.verdict.is_incomplete or judgement.verdict is Verdict.KIT_FAULT):
            detail = f"the preparation did not go as expected: {judgement.detail}"
            return Judgement(
                Verdict.NOT_REACHED, judgement.silence, detail, judgement.expected, judgement.received, judgement.advice
            )
        return judgement

    def _steps(self) -> Interpretation:
        yield from self._open()
        for phase in ("given", "when", "then"):
            self.state.phase = phase
            for index, step in enumerate(getattr(self.case, phase)):
                yield from self._step(step, f"{phase}.{index}")
                if self.state.ended is not None:
                    yield from self._close()
                    return Judgement(Verdict.CONFORMS, detail=self.state.ended)
                if self._twin_ends_at(step):
                    yield from self._close()
                    return CONFORMS
        if self.side is Side.TWIN:
            return Judgement(Verdict.KIT_FAULT, detail=_TWIN_END)
        yield from self._close()
        return CONFORMS

    # Opening and closing

    def _open(self) -> Generator[Action, Records, None]:
        surface, config = self.case.surface, dict(self.case.config)
        twin = self.case.twin
        if self.side is Side.TWIN and twin is not None and twin.step == "open":
            target: dict[str, Any] = {"open": {"surface": surface, "config": config}}
            put_path(target, twin.path, self.state.scope.resolve(twin.value))
            surface, config = target["open"]["surface"], target["open"]["config"]
        self.state.surface, self.state.config = surface, config
        self.state.damaged = surface == "absent"
        for worker in range(self.workers):
            request = self._open_request("fresh" if worker == 0 else "existing", surface, config)
            records = yield Action(
                Verb.EXCHANGE, f"open worker {worker}", ((worker, request),), worker=worker, starting=True
            )
            self._must_be_ok(records[0], "open")

    def _open_request(self, state: str, surface: str, config: Mapping[str, str]) -> dict[str, Any]:
        scope = self.state.scope
        # Not the run's own seed: with it an adapter could compute which case and which side it is in.
        digits = scope.digits("adapter", "", 16)
        return open_request(self.contract.name, state, clock=scope.now, seed=digits, config=config, surface=surface)

    def _close(self) -> Generator[Action, Records, None]:
        for worker in reversed(range(self.workers)):
            records = yield Action(Verb.EXCHANGE, f"close worker {worker}", ((worker, {"op": "close"}),), worker=worker)
            self._must_be_ok(records[0], "close")

    def _must_be_ok(self, record: Record, what: str) -> None:
        silent = ex.silence_of(record)
        if silent is not None:
            raise Finding(silent)
        self._declared(record)
        judgement = ex.judge_answer(record, ex.OK, self.state.scope, step={}, kind=self.case.kind)
        if judgement is not None:
            verdict = Verdict.NOT_REACHED if not judgement.verdict.is_incomplete else judgement.verdict
            raise Finding(Judgement(verdict, judgement.silence, f"{what}: {judgement.detail}", "ok", ex.shown(record)))

    def _declared(self, record: Record) -> None:
        """A session request too may only be unsupported if hello said so."""
        problem = None if record.answer is None else ex.undeclared(record.answer, self.not_claimed)
        if problem is not None:
            raise Finding(ex.garbled(record, problem))

    def _twin_ends_at(self, step: Mapping[str, Any]) -> bool:
        twin = self.case.twin
        return self.side is Side.TWIN and twin is not None and step.get("label") == twin.at

    # Steps

    def _step(self, step: Mapping[str, Any], place: str) -> Generator[Action, Records, None]:
        step = self._changed(step)
        handlers = {
            "call": self._call,
            "observe": self._look,
            "provoke": self._look,
            "clock": self._clock,
            "kill": self._kill,
            "reopen": self._reopen,
            "restart": self._restart,
            "start": self._start,
            "unanswered": self._unanswered,
            "finish": self._finish,
            "reached": self._stop_point,
            "release": self._stop_point,
            "race": self._race,
            "tamper": self._tamper,
            **dict.fromkeys(TELLING, self._telling),
        }
        if "check" in step:
            self._check(step)
            return
        verb = next(name for name in handlers if name in step)
        yield from handlers[verb](step, f"{place} {verb} {step[verb]}")

    def _changed(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """The step as this side takes it: the twin changes one path and one expectation."""
        twin = self.case.twin
        if self.side is not Side.TWIN or twin is None or "label" not in step:
            return step
        # A copy in depth: the path may lead into a part that the contract's own step would share.
        changed = copy.deepcopy(dict(step))
        if step["label"] == twin.step:
            if twin.path == "args" or twin.path.startswith("args."):
                # Kept for after the arguments are resolved, because the path may lie inside a copied value.
                changed["$twin"] = (twin.path, twin.value)
            else:
                put_path(changed, twin.path, twin.value)
        if step["label"] == twin.at:
            changed["expect"] = twin.expect
            changed.pop("malformed", None)
        return changed

    def _request(self, step: Mapping[str, Any], name: str, scope: Scope) -> tuple[Method, dict[str, Any]]:
        method = self.contract.methods[name]
        target = {"args": scope.resolve(step.get("args", {}))}
        if "$twin" in step:
            path, value = step["$twin"]
            put_path(target, path, scope.resolve(value))
        fits = method.args.is_valid(target["args"])
        if fits == bool(step.get("malformed")):
            wrong = "fit the schema though marked malformed" if fits else "do not fit the schema of the method"
            raise CaseError(f"the arguments of {name} {wrong}")
        return method, {"op": "call", "method": name, "args": target["args"]}

    def _checked(self, record: Record, method: Method) -> None:
        if record.answer is None:
            return
        problem = ex.broken_answer(method, record.answer, self.not_claimed)
        if problem is not None:
            raise Finding(ex.garbled(record, problem))

    def _call(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        malformed = {"outcome": "refused", "reason": "REQUEST_MALFORMED"}
        expect = step.get("expect", malformed if step.get("malformed") else ex.ACCEPTED)
        worker = step.get("worker", 0)
        for index in range(step.get("repeat", 1)):
            scope = self.state.scope.bind("i", index) if "repeat" in step else self.state.scope
            method, request = self._request(step, step["call"], scope)
            guard = ex.expects_refusal(expect)
            proof = self._twin_ends_at(step) and not guard
            before = (yield from self._seen(worker, note, "before")) if guard or proof else None
            records = yield Action(Verb.EXCHANGE, note, ((worker, request),), worker=worker)
            yield from self._settle(records[0], method, expect, step, scope)
            answer = records[0].answer
            if answer is None or before is None:
                continue
            if answer["outcome"] == "refused":
                after = yield from self._seen(worker, note, "after")
                self._hold(judge_inert(self.contract, method, str(answer["reason"]), before, after))
            elif proof and answer.get("effect") == "new":
                after = yield from self._seen(worker, note, "after")
                self._hold(judge_changed(self.contract, before, after))
        self._bind(step, records[0])

    def _settle(
        self, record: Record, method: Method, expect: Mapping[str, Any], step: Mapping[str, Any], scope: Scope
    ) -> Generator[Action, Records, None]:
        """Judge one answer; an expected death of the worker is taken note of."""
        self._checked(record, method)
        judgement = ex.judge_answer(record, expect, scope, step=step, kind=self.case.kind)
        if judgement is not None:
            if self._twin_ends_at(step) and judgement.verdict in {Verdict.OVER_REFUSAL, Verdict.WRONG_REASON}:
                detail = f"the twin, which must be accepted, was not: {judgement.detail}; the refusal proves nothing"
                judgement = Judgement(
                    Verdict.OVER_REFUSAL, None, detail, judgement.expected, judgement.received, judgement.advice
                )
            raise Finding(judgement)
        if record.answer is None:
            yield Action(Verb.EXPECT_DEATH, f"worker {record.worker} died as expected", worker=record.worker)

    def _look(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        name = step["observe"] if "observe" in step else step["provoke"]
        worker = step.get("worker", 0)
        method, request = self._request(step, name, self.state.scope)
        records = yield Action(Verb.EXCHANGE, note, ((worker, request),), worker=worker)
        expect = {**ex.OK, **step.get("expect", {})}
        yield from self._settle(records[0], method, expect, step, self.state.scope)
        self._bind(step, records[0])

    def _bind(self, step: Mapping[str, Any], record: Record) -> None:
        self._bind_in(record.answer, step, record)

    def _bind_in(self, told: Mapping[str, Any] | None, step: Mapping[str, Any], record: Record) -> None:
        for name, path in step.get("bind", {}).items():
            found = at_path(told, path)
            if is_missing(found):
                detail = f"the answer has no {path}, which later steps need"
                raise Finding(Judgement(Verdict.NOT_REACHED, None, detail, path, ex.shown(record)))
            self.state.scope = self.state.scope.bind(name, found)

    def _hold(self, judgement: Judgement | None) -> None:
        if judgement is not None:
            raise Finding(judgement)

    # Observation around refusals

    def _seen(self, worker: int, note: str, when: str) -> Generator[Action, Records, dict[str, Any] | None]:
        inertness = self.contract.inertness
        if inertness is None:
            return None
        seen: dict[str, Any] = {}
        if inertness.by_harness:
            operand = {"path": store_path(self.contract)}
            looked = yield Action(Verb.INSPECT, f"inspect {when} [{note}]", operand=operand)
            value = value_of(Verb.INSPECT, looked[0], operand)
            seen[STORE] = state_of(value, when, damaged=self.state.damaged)
        if inertness.tree is not None:
            operand = {"path": inertness.tree}
            looked = yield Action(Verb.TREE, f"tree {when} [{note}]", operand=operand)
            seen[TREE] = files_of(value_of(Verb.TREE, looked[0], operand), when)
        # Through a worker that nothing else uses: looking at the one under test would refresh what it believes, write
        # out what it holds back, and tell it which calls are expected to be refused.
        if self.case.observer is Observer.APART:
            worker = self.case.workers
        for name in filter(None, (inertness.observe, inertness.audit)):
            request = {"op": "call", "method": name, "args": {}}
            records = yield Action(Verb.EXCHANGE, f"{name} {when} [{note}]", ((worker, request),), worker=worker)
            method = self.contract.methods[name]
            self._checked(records[0], method)
            judgement = ex.judge_answer(records[0], ex.OK, self.state.scope, step={}, kind=self.case.kind)
            if judgement is not None:
                verdict = judgement.verdict if judgement.verdict.is_incomplete else Verdict.NOT_REACHED
                detail = f"{name} cannot be observed {when} the call, so nothing shows that a refusal is inert"
                raise Finding(
                    Judgement(verdict, judgement.silence, f"{detail}: {judgement.detail}", "ok", ex.shown(records[0]))
                )
            assert records[0].answer is not None
            seen[name] = records[0].answer.get("value")
        return seen

    # Time and processes

    def _clock(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        now = shift(self.state.scope.now, step["clock"])
        self.state.scope = self.state.scope.at(now)
        request = {"op": "clock", "now": now}
        records = yield Action(Verb.EXCHANGE, note, tuple((worker, request) for worker in range(self.workers)))
        for record in records:
            self._must_be_ok(record, "clock")

    def _kill(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        records = yield Action(Verb.KILL, note, worker=step["kill"])
        self._must_be_done(records[0])

    def _reopen(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        worker = step["reopen"]
        config = {**self.state.config, **self.state.scope.resolve(step.get("config", {}))}
        request = self._open_request("existing", self.state.surface, config)
        records = yield Action(Verb.EXCHANGE, note, ((worker, request),), worker=worker, starting=True)
        self._declared(records[0])
        expect = {**ex.OK, **step.get("expect", {})}
        judgement = ex.judge_answer(records[0], expect, self.state.scope, step=step, kind=self.case.kind)
        if judgement is not None:
            # An implementation that does not come up again has lost what it held, unless it only fell silent.
            lost = not judgement.verdict.is_incomplete and self.state.phase != "given"
            verdict = Verdict.LOST_DURABILITY if lost else judgement.verdict
            raise Finding(
                Judgement(verdict, judgement.silence, f"reopen: {judgement.detail}", "ok", ex.shown(records[0]))
            )

    def _restart(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        worker = step["restart"]
        records = yield Action(Verb.EXCHANGE, f"{note}: close", ((worker, {"op": "close"}),), worker=worker)
        self._must_be_ok(records[0], "close")
        stopped = yield Action(Verb.STOP, f"{note}: stop", worker=worker)
        self._must_be_done(stopped[0])
        yield from self._reopen({**step, "reopen": worker}, f"{note}: reopen")

    # Concurrency

    def _start(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        worker = step.get("worker", 0)
        _, request = self._request(step, step["start"], self.state.scope)
        yield Action(Verb.START, note, ((worker, request),), worker=worker)
        self.state.scope = self.state.scope.bind(f"__{step['as']}", [worker, step["start"]])

    def _unanswered(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        worker, _ = self.state.scope.resolve(f"$__{step['unanswered']}")
        records = yield Action(Verb.UNANSWERED, note, worker=worker)
        if records[0].event is None or records[0].event["kind"] != "done":
            self.state.hasty.add(step["unanswered"])

    def _finish(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        worker, name = self.state.scope.resolve(f"$__{step['finish']}")
        records = yield Action(Verb.FINISH, note, worker=worker)
        expect = step.get("expect", ex.ACCEPTED)
        yield from self._settle(records[0], self.contract.methods[name], expect, step, self.state.scope)
        if step["finish"] in self.state.hasty:
            detail = f"{step['finish']} was answered before the outcome was known that its answer rests on"
            wrong = ex.wrong_value(self.case.kind, step)
            raise Finding(Judgement(wrong, None, detail, "an answer after that outcome", ex.shown(records[0])))
        self._bind(step, records[0])

    def _stop_point(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        verb = Verb.REACHED if "reached" in step else Verb.RELEASE
        records = yield Action(verb, note, operand={"point": step[verb.value]})
        self._must_be_done(records[0])

    def _must_be_done(self, record: Record) -> None:
        if record.event is None or record.event["kind"] != "done":
            detail = str((record.event or {}).get("detail", "no record"))
            advice = "See docs/adapter-protocol.md, section Stop points."
            raise Finding(Judgement(Verdict.NOT_REACHED, None, detail, record.action, detail, advice))

    def _race(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        requests = []
        for worker in range(self.case.workers):
            method, request = self._request(step, step["race"], self.state.scope.bind("i", worker))
            requests.append((worker, request))
        records = yield Action(Verb.RACE, note, tuple(requests))
        for record in records:
            self._checked(record, method)
            silent = ex.silence_of(record)
            if silent is not None:
                raise Finding(silent)
        outcome = judge_race(records, step, self.state.scope, kind=self.case.kind)
        if isinstance(outcome, Judgement):
            raise Finding(outcome)
        scope = self.state.scope.bind("winner", dict(outcome.winner.answer or {}))
        self.state.scope = scope.bind("losers", [dict(record.answer or {}) for record in outcome.losers])
        self._bind(step, outcome.winner)

    # Files, the store itself, and plain assertions

    def _telling(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        """What the harness sees or does itself; its record tells a value."""
        verb = next(verb for name, verb in TELLING.items() if name in step)
        operand = operand_of(verb, step, self.contract, self.state.scope)
        if verb in {Verb.PLACE, Verb.LINK}:
            self._touches(operand["path"])
        if verb is Verb.COPY:
            self._touches(operand["to"])
        records = yield Action(verb, note, operand=operand)
        value = value_of(verb, records[0], operand)
        twin = self.case.twin
        # A twin that puts in another row is there to show that the store holds that one.
        changed = self.side is Side.TWIN and twin is not None and step.get("label") == twin.step
        if step.get("unstorable") == "ends" and value["inserted"] is False and not changed:
            self.state.ended = f"{note}: a constraint of the store refuses the row: {value['error']}"
            return
        self._hold(judge_seen(verb, step, value, self.state.scope, kind=self.case.kind))
        self._bind_in({"value": value}, step, records[0])

    def _touches(self, path: str) -> None:
        """Take note of a file or folder that the case changes: the store may be unreadable from here on."""
        store = None if self.contract.inspection is None else self.contract.inspection.path
        if store is not None and (path.startswith(store) or store.startswith(f"{path}/")):
            self.state.damaged = True

    def _tamper(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        path = self.state.scope.resolve(step["tamper"])
        if not isinstance(path, str):
            raise CaseError(f"tamper {path!r} is no text")
        try:
            parts_of(path)
        except ValueError as error:
            raise CaseError(f"tamper: {error}") from error
        self._touches(path)
        how = ("flip", "truncate", "delete", "journal_mode")
        operand = {"tamper": path, **{key: step[key] for key in how if key in step}}
        records = yield Action(Verb.TAMPER, note, operand=operand)
        self._must_be_done(records[0])

    def _check(self, step: Mapping[str, Any]) -> None:
        scope = self.state.scope
        value = scope.resolve(step["check"])
        if "equals" in step:
            other = scope.resolve(step["equals"])
            problem = None if same(value, other) else f"{step['check']} is {value!r}, expected {other!r}"
        elif "differs" in step:
            other = scope.resolve(step["differs"])
            problem = f"{step['check']} must differ from {other!r}" if same(value, other) else None
        else:
            problem = mismatch(scope.resolve(step["matches"]), value)
        if problem is not None:
            raise Finding(
                Judgement(ex.wrong_value(self.case.kind, step), None, problem, "see detail", repr(value)[:600])
            )


def worker_count(contract: Contract, case: Case) -> int:
    """How many workers a case takes: its own, and one to observe through if it expects a refusal anywhere."""
    steps = (*case.given, *case.when, *case.then)
    refused = any(
        step.get("malformed") or ex.expects_refusal(step.get("expect", {})) for step in steps if "call" in step
    )
    # Where the harness looks into the store itself there may be nothing to ask.
    asks = contract.inertness is not None and bool(contract.inertness.observe or contract.inertness.audit)
    observed = asks and case.observer is Observer.APART and (refused or case.twin is not None)
    return case.workers + 1 if observed else case.workers


def interpret(
    contract: Contract, case: Case, side: Side, *, seed: str, not_claimed: Mapping[str, str] | None = None
) -> Interpretation:
    """The interpretation of one side of `case`: a generator of actions that returns the side's judgement.

    `seed` fixes every random suffix; `not_claimed` are the capabilities that hello said the adapter lacks.
    """
    return _Reader(contract, case, side, seed, not_claimed or {}).read()
