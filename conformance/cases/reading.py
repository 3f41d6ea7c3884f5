"""One side of a case while it is read: its sessions, its requests, and what is observed around a refusal."""

from __future__ import annotations

import copy
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.action import Action, Verb
from holdfast.conformance.cases.inertness import STORE, TREE
from holdfast.conformance.cases.looking import files_of, state_of, store_path, value_of
from holdfast.conformance.cases.record import Finding, Judgement, Record, Side
from holdfast.conformance.cases.request import START, open_request
from holdfast.conformance.cases.values import CaseError, Scope, at_path, is_missing, put_path
from holdfast.conformance.verdict import Verdict
from holdfast.specs import Case, Contract, Method
from holdfast.specs.model import Observer

Records = Sequence[Record]
Interpretation = Generator[Action, Records, Judgement]


@dataclass(slots=True)
class State:
    """What changes while a side goes on."""

    scope: Scope
    phase: str = "open"
    surface: str = "ready"
    config: Mapping[str, str] = field(default_factory=dict)
    # What was started and answered where it had to wait; judged when it is finished, by what it was answered.
    hasty: set[str] = field(default_factory=set)
    # The case itself changed the files of the store, or asked for none.
    damaged: bool = False
    # By name, the record that its value came with; by what was observed last, the record that shows it.
    bound_at: dict[str, int] = field(default_factory=dict)
    observed: dict[str, int] = field(default_factory=dict)
    # Why the side is at its end, and conforms: the store refused to hold what the case is about.
    ended: str | None = None


class Reading:
    """What the steps of one side share. `holdfast.conformance.cases.interpret` says what each of them means."""

    def __init__(self, contract: Contract, case: Case, side: Side, seed: str, not_claimed: Mapping[str, str]) -> None:
        self.contract = contract
        self.case = case
        self.side = side
        self.seed = seed
        self.not_claimed = not_claimed
        self.workers = worker_count(contract, case)
        scope = Scope(seed=seed, case=case.id, side=side.value, defined=case.values, opened=START, now=START)
        self.state = State(scope)

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
            raise Finding(replace(judgement, verdict=verdict, detail=f"{what}: {judgement.detail}", expected="ok"))

    def _declared(self, record: Record) -> None:
        """A session request too may only be unsupported if hello said so."""
        problem = None if record.answer is None else ex.undeclared(record.answer, self.not_claimed)
        if problem is not None:
            raise Finding(ex.garbled(record, problem))

    def _twin_ends_at(self, step: Mapping[str, Any]) -> bool:
        twin = self.case.twin
        return self.side is Side.TWIN and twin is not None and step.get("label") == twin.at

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

    def _bind(self, step: Mapping[str, Any], record: Record) -> None:
        self._bind_in(record.answer, step, record)

    def _bind_in(self, told: Mapping[str, Any] | None, step: Mapping[str, Any], record: Record) -> None:
        for name, path in step.get("bind", {}).items():
            found = at_path(told, path)
            if is_missing(found):
                detail = f"the answer has no {path}, which later steps need"
                raise Finding(Judgement(Verdict.NOT_REACHED, None, detail, path, ex.shown(record), n=record.n))
            self.state.scope = self.state.scope.bind(name, found)
            self.state.bound_at[name] = record.n

    def _hold(self, judgement: Judgement | None) -> None:
        if judgement is not None:
            raise Finding(judgement)

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
            self.state.observed[STORE] = looked[0].n
        if inertness.tree is not None:
            operand = {"path": inertness.tree}
            looked = yield Action(Verb.TREE, f"tree {when} [{note}]", operand=operand)
            seen[TREE] = files_of(value_of(Verb.TREE, looked[0], operand), when)
            self.state.observed[TREE] = looked[0].n
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
                why = f"{detail}: {judgement.detail}"
                raise Finding(replace(judgement, verdict=verdict, detail=why, expected="ok"))
            assert records[0].answer is not None
            self.state.observed[name] = records[0].n
            seen[name] = records[0].answer.get("value")
        return seen

    def _must_be_done(self, record: Record) -> None:
        if record.event is None or record.event["kind"] != "done":
            detail = str((record.event or {}).get("detail", "no record"))
            advice = "See docs/adapter-protocol.md, section Stop points."
            raise Finding(Judgement(Verdict.NOT_REACHED, None, detail, record.action, detail, advice, n=record.n))

    def _touches(self, path: str) -> None:
        """Take note of a file or folder that the case changes: the store may be unreadable from here on."""
        store = None if self.contract.inspection is None else self.contract.inspection.path
        if store is not None and (path.startswith(store) or store.startswith(f"{path}/")):
            self.state.damaged = True


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
